"""The OpDefs of every op that TensorFlow registers, and of the ops that programs and packages add.

TensorFlow's OpDefs are in `op_defs.pb.gz`, which `tools/record/op_defs.py` generates. Guarantees:
the file is read once, at first use; an OpDef never changes; look-ups are thread-safe.

TF: tensorflow/core/framework/op_def.proto, op.h (OpRegistry)
"""

from __future__ import annotations

import functools
import gzip
import importlib.resources
import socket
from collections.abc import Iterator, Mapping

import protos as pb
from runtime.foundation.errors import AlreadyExistsError, NotFoundError
from runtime.framework import op_packages

_added: dict[str, pb.OpDef] = {}  # needs no lock, because `get` and `setdefault` are atomic


@functools.cache
def all_op_defs() -> Mapping[str, pb.OpDef]:
    """Return TensorFlow's OpDefs by the name of the op."""
    packed = importlib.resources.files("runtime.framework").joinpath("op_defs.pb.gz").read_bytes()
    return _OpDefs(gzip.decompress(packed))


class _OpDefs(Mapping[str, pb.OpDef]):
    """The OpDefs of an OpList, each parsed at its first use, because all together take 4 MB."""

    def __init__(self, op_list: bytes) -> None:
        ops = pb.OpList.FromString(op_list).op
        self._packed = {op.name: op.SerializeToString() for op in ops}
        self._parsed: dict[str, pb.OpDef] = {}  # needs no lock: of two that parse, one is kept

    def __getitem__(self, name: str) -> pb.OpDef:
        found = self._parsed.get(name)
        if found is None:
            found = self._parsed.setdefault(name, pb.OpDef.FromString(self._packed[name]))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def register_op(op_def: pb.OpDef) -> None:
    """Add the OpDef of a custom op for every session of this process.

    The op's kernels are passed in `SessionOptions.kernels`. Raises AlreadyExistsError if an op with
    the same name is registered. TF: tensorflow/core/framework/op.h (REGISTER_OP)
    """
    if op_def.name in all_op_defs() or _added.setdefault(op_def.name, op_def) is not op_def:
        raise AlreadyExistsError(f"Op with name {op_def.name}")


def find(op: str) -> pb.OpDef | None:
    """Return the OpDef of `op`, or None if `op` is not registered."""
    return all_op_defs().get(op) or _added.get(op) or op_packages.package_op_defs().get(op)


def look_up(op: str) -> pb.OpDef:
    """Return the OpDef of `op`; raise NotFoundError with TensorFlow's text if there is none."""
    found = find(op)
    if found is None:
        raise NotFoundError(unknown_op_message(op))
    return found


def unknown_op_message(op: str) -> str:
    """Return TensorFlow's error text for an op that is not registered.

    A package of ops that can't be used may be why; then the text names it.
    """
    broken = "; ".join(f"{name}: {fault}" for name, fault in op_packages.faults().items())
    return (
        f"Op type not registered '{op}' in binary running on {socket.gethostname()}. "
        "Make sure the Op and Kernel are registered in the binary running in this process."
        + (f" Op packages that can't be used: {broken}." if broken else "")
    )
