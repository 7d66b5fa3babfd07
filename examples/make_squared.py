"""Write squared.json: a node to add to a session of the counter model.

    python examples/make_squared.py

No TensorFlow is needed: the graph is one node, `squared = get_counter * get_counter`.
"""

import base64
import json
import pathlib

import protos as pb
from runtime.api import DataType


def main() -> None:
    counter = "get_counter:0"
    squared = pb.NodeDef(
        name="squared",
        op="Mul",
        input=[counter, counter],
        attr={"T": pb.AttrValue(type=DataType.FLOAT)},
    )
    graph_def = pb.GraphDef(node=[squared], versions=pb.VersionDef(producer=2474))
    body = {"graph_def": base64.b64encode(graph_def.SerializeToString()).decode()}
    path = pathlib.Path(__file__).parent / "squared.json"
    path.write_text(json.dumps(body) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
