"""Write runtime/framework/op_defs.pb.gz from an installed TensorFlow.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record/op_defs.py
    python tools/record/op_defs.py tensorflow_text runtime/op_packages/text/op_defs.pb.gz

With a module and a path, the ops that importing the module adds are written to the path instead. A
module may also be the path of a library of ops (`….so`). The file is a gzip-compressed OpList: the
signature of every op that TensorFlow registers, without its documentation. TensorFlow serializes
it; this project's messages have the same field numbers.
"""

import gzip
import importlib
import pathlib
import sys

from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import load_library, op_def_registry

TARGET = pathlib.Path(__file__).parents[2] / "runtime" / "framework" / "op_defs.pb.gz"


def registered_ops() -> list[op_def_pb2.OpDef]:
    buffer = pywrap_tf_session.TF_GetAllOpList()
    ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer)).op
    return sorted(ops, key=lambda each: each.name)


def added_by(module: str) -> list[op_def_pb2.OpDef]:
    """Return the ops that TensorFlow registers when `module` is imported or loaded."""
    before = {op.name for op in registered_ops()}
    if module.endswith(".so"):
        load_library.load_op_library(module)
    else:
        importlib.import_module(module)
    return [op for op in registered_ops() if op.name not in before]


def write(ops: list[op_def_pb2.OpDef], target: pathlib.Path) -> None:
    stripped = op_def_pb2.OpList()
    for op in ops:
        copy = stripped.op.add()
        copy.CopyFrom(op)
        copy.summary = copy.description = ""
        for part in (*copy.input_arg, *copy.output_arg, *copy.attr):
            part.description = ""
            if hasattr(part, "experimental_full_type"):
                part.ClearField("experimental_full_type")
    data = stripped.SerializeToString(deterministic=True)
    target.write_bytes(gzip.compress(data, 9, mtime=0))
    print(f"{len(stripped.op)} ops, {len(data)} bytes, {target.stat().st_size} compressed")


if __name__ == "__main__":
    assert op_def_registry.get("MatMul") is not None
    if sys.argv[1:]:
        module, path = sys.argv[1:]
        write(added_by(module), pathlib.Path(path))
    else:
        write(registered_ops(), TARGET)
