"""The signatures of every op that TensorFlow registers, read from `op_defs.pb.gz`.

`tools/record_op_defs.py` regenerates the file. Guarantees: the table is read once, at first use,
and never changes afterwards; look-ups are safe from any thread.

TF: tensorflow/core/framework/op_def.proto, op.h (OpRegistry)
"""

from __future__ import annotations

import functools
import gzip
import importlib.resources
import socket
from collections.abc import Mapping

import protos as pb
from runtime.foundation.errors import NotFoundError


@functools.cache
def all_op_defs() -> Mapping[str, pb.OpDef]:
    """Every registered op by name."""
    packed = importlib.resources.files("runtime.framework").joinpath("op_defs.pb.gz").read_bytes()
    return {op.name: op for op in pb.OpList.FromString(gzip.decompress(packed)).op}


def find(op: str) -> pb.OpDef | None:
    """The signature of `op`, or None."""
    return all_op_defs().get(op)


def look_up(op: str) -> pb.OpDef:
    """The signature of `op`; NotFoundError with TensorFlow's text when there is none."""
    found = find(op)
    if found is None:
        raise NotFoundError(unknown_op_message(op))
    return found


def unknown_op_message(op: str) -> str:
    """TensorFlow's text for an op that nobody registered."""
    return (
        f"Op type not registered '{op}' in binary running on {socket.gethostname()}. "
        "Make sure the Op and Kernel are registered in the binary running in this process."
    )
