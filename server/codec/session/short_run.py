"""Read and write the `:run` bodies that come most often: nested lists of numbers in and out.

What changes between the runs of a step is only the numbers. A ShortRun keeps the rest: the compiled
step, the types and shapes of the feeds and the names and types of the fetches. Each function
returns None for a body or a value of any other kind, for which the caller must use `json_steps`;
that alone reports what is wrong with a body. What is accepted here has the same meaning there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from runtime.api import DataType, ShortStep
from runtime.errors import OpError
from server.codec.serving.tensor_reader import TensorReader
from server.codec.session.step_parts import Shape, StepSession, fetch_types

_READER = TensorReader(exact_range=True)
_WRITABLE = frozenset({
    DataType.HALF, DataType.FLOAT, DataType.DOUBLE, DataType.BOOL,
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
})  # fmt: skip


class StepNames(NamedTuple):
    """The names of a step, as a client spells them."""

    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]


def read_short_body(body: bytes) -> tuple[StepNames, Collection[Any]] | None:
    """Parse a body that has feeds, fetches and targets only; return the names and the values."""
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if type(members) is not dict:
        return None
    feeds = members.pop("feeds", {})
    fetches, targets = members.pop("fetches", []), members.pop("targets", [])
    if members or type(feeds) is not dict or type(fetches) is not list or type(targets) is not list:
        return None
    for name in fetches + targets:
        if type(name) is not str:
            return None
    return StepNames(tuple(feeds), tuple(fetches), tuple(targets)), feeds.values()


@dataclasses.dataclass(frozen=True, slots=True)
class ShortRun:
    """One step of a session, and what `read` and `write` require of it."""

    step: ShortStep
    names: StepNames
    feeds: tuple[tuple[DataType, Shape], ...]
    fetches: tuple[tuple[bytes, np.dtype], ...]  # the text before the shape, and the type

    def read(self, values: Iterable[Any]) -> list[np.ndarray] | None:
        """Read the arrays of the feeds, which must be numbers, or regular lists of numbers."""
        arrays = []
        for value, (data_type, shape) in zip(values, self.feeds, strict=True):
            array = _READER.fast_array(value, data_type)
            if array is None or not _fits(array.shape, shape):
                return None
            arrays.append(array)
        return arrays

    def write(self, values: Sequence[Any]) -> bytes | None:
        """Write the response, if the values are arrays of finite numbers."""
        parts = []
        for value, (head, dtype) in zip(values, self.fetches, strict=True):
            array = np.asarray(value)
            if array.dtype != dtype or not array.flags.c_contiguous:
                return None
            # The index makes a scalar of an array of rank 0, which orjson does not write.
            data = orjson.dumps(array[()], option=orjson.OPT_SERIALIZE_NUMPY)
            if b"null" in data:  # which orjson writes for NaN and infinities
                return None
            parts.append(b'%b%b,"data":%b}' % (head, orjson.dumps(array.shape), data))
        return b'{"outputs":{%b}}' % b",".join(parts)


def make_short_run(names: StepNames, session: StepSession) -> ShortRun | None:
    """Return the short run of a step; None if it has a name or a type that `json_steps` must see.

    The names of the fetches must differ, because they are the keys of the response.
    """
    try:
        feeds = tuple(map(session.tensor_info, names.feeds))
        types = fetch_types(names.fetches, session.tensor_info)
    except OpError:
        return None
    step = session.session.short_step(*names)
    if step is None or not _WRITABLE.issuperset(types) or len(set(names.fetches)) < len(types):
        return None
    return ShortRun(step, names, feeds, tuple(map(_head, names.fetches, types)))


def _head(name: str, data_type: DataType) -> tuple[bytes, np.dtype]:
    type_name = orjson.dumps(data_type.name_on_wire)
    return b'%b:{"dtype":%b,"shape":' % (orjson.dumps(name), type_name), data_type.numpy


def _fits(shape: tuple[int, ...], wanted: Shape) -> bool:
    if wanted is None:
        return True
    if len(shape) != len(wanted):
        return False
    for size, expected in zip(shape, wanted, strict=True):  # noqa: SIM110 - all() takes 1 µs more
        if expected not in (-1, size):
            return False
    return True
