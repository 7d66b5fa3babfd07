"""The outputs of kernels that join their inputs, checked against the limit of one tensor.

Most kernels whose output can be larger than their inputs call `check_allocation` themselves. Those
that join their inputs need nothing but the inputs, so nothing else checks what they make before it
exists. Each function of JOINS takes the inputs and raises ResourceExhaustedError if the output must
exceed `tensor_limit()`; inputs that the kernel refuses may raise anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from runtime.framework.allocation import check_allocation, check_bytes
from runtime.framework.memory_account import STRING_OVERHEAD
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import (
    POINTER,
    broadcast_shape,
    elements,
    number,
    shape_of,
    text_in,
    volume,
)

V = TensorValue
CheckJoin: TypeAlias = Callable[..., None]


def _concatenated(values: Sequence[V], axis: V) -> None:
    shape, dim = list(shape_of(values[0])), number(axis)
    shape[dim] = sum(shape_of(each)[dim] for each in values)
    _check(shape, values)


def _concat(axis: V, *values: V) -> None:
    _concatenated(values, axis)


def _concat_v2(*values_and_axis: V) -> None:
    _concatenated(values_and_axis[:-1], values_and_axis[-1])


def _pack(*values: V) -> None:
    _check((len(values), *shape_of(values[0])), values)


def _parallel_concat(*values: V) -> None:
    _check((len(values), *shape_of(values[0])[1:]), values)


def _check(shape: Sequence[int], values: Sequence[V]) -> None:
    """Check an output of this shape that has the elements of `values`."""
    dtype = np.asarray(values[0]).dtype
    check_allocation(shape, dtype)
    if dtype.hasobject:
        _check_text(shape, sum(map(text_in, values)))


def _string_join(*inputs: V) -> None:
    shape = broadcast_shape(*map(shape_of, inputs))
    count = volume(shape)
    _check_text(shape, sum(text_in(each) * count // max(elements(each), 1) for each in inputs))


def _check_text(shape: Sequence[int], text: int) -> None:
    """Check a string tensor whose strings have `text` bytes together, as `bytes_of` counts it."""
    needed = volume(shape) * (POINTER + STRING_OVERHEAD) + text
    check_bytes(shape, np.dtype(object), needed)


JOINS: dict[str, CheckJoin] = {
    "Concat": _concat,
    "ConcatV2": _concat_v2,
    "Pack": _pack,
    "ParallelConcat": _parallel_concat,
    "StringJoin": _string_join,
}
