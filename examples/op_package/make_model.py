"""Write a SavedModel with the ops of this package: `python make_model.py FOLDER`.

A model that was exported with TensorFlow and the C++ ops of the same names has the same nodes.
"""

from __future__ import annotations

import pathlib
import sys

import protos as pb


def model() -> pb.SavedModel:
    """Return a model: `clamped` is x between -2 and 2, `count` the elements seen so far."""
    meta_graph = pb.MetaGraphDef()
    meta_graph.meta_info_def.tags.append("serve")
    nodes = meta_graph.graph_def.node
    x = nodes.add(name="x", op="Placeholder")
    x.attr["dtype"].type = pb.DT_FLOAT
    clamped = nodes.add(name="clamped", op="Clamped", input=["x"])
    clamped.attr["T"].type = pb.DT_FLOAT
    clamped.attr["limit"].f = 2.0
    nodes.add(name="count", op="RunningCount", input=["x"])
    signature = meta_graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    signature.inputs["x"].CopyFrom(_info("x:0", pb.DT_FLOAT))
    signature.outputs["clamped"].CopyFrom(_info("clamped:0", pb.DT_FLOAT))
    signature.outputs["count"].CopyFrom(_info("count:0", pb.DT_INT64))
    return pb.SavedModel(saved_model_schema_version=1, meta_graphs=[meta_graph])


def _info(name: str, dtype: int) -> pb.TensorInfo:
    info = pb.TensorInfo(name=name, dtype=dtype)
    info.tensor_shape.unknown_rank = True
    return info


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(model().SerializeToString())
