"""Write runtime/framework/op_defs.pb.gz from an installed TensorFlow.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record_op_defs.py

The file is a gzip-compressed OpList: the signature of every op that TensorFlow registers, without
its documentation. TensorFlow serializes it; this project's messages have the same field numbers.
"""

import gzip
import pathlib

from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import op_def_registry

TARGET = pathlib.Path(__file__).parent.parent / "runtime" / "framework" / "op_defs.pb.gz"


def main() -> None:
    buffer = pywrap_tf_session.TF_GetAllOpList()
    ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer))
    stripped = op_def_pb2.OpList()
    for op in sorted(ops.op, key=lambda each: each.name):
        copy = stripped.op.add()
        copy.CopyFrom(op)
        copy.summary = copy.description = ""
        for part in (*copy.input_arg, *copy.output_arg, *copy.attr):
            part.description = ""
            if hasattr(part, "experimental_full_type"):
                part.ClearField("experimental_full_type")
    data = stripped.SerializeToString(deterministic=True)
    TARGET.write_bytes(gzip.compress(data, 9, mtime=0))
    assert op_def_registry.get("MatMul") is not None
    print(f"{len(stripped.op)} ops, {len(data)} bytes, {TARGET.stat().st_size} compressed")


if __name__ == "__main__":
    main()
