"""String tensors (object arrays of bytes): construction, reading and element-wise mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np


def string_tensor(items: Iterable[bytes], shape: Sequence[int] | None = None) -> np.ndarray:
    """An object array of `items` in row-major order; a vector unless `shape` is given."""
    listed = list(items)
    array = np.empty(len(listed), object)
    array[:] = listed
    return array if shape is None else array.reshape(shape)


def as_strings(value: np.ndarray | bytes) -> np.ndarray:
    """A string tensor as an object array; a bare `bytes` becomes an array of rank 0."""
    return np.asarray(value, object)


def items_of(value: np.ndarray | bytes) -> list[bytes]:
    """The elements of a string tensor in row-major order."""
    flat: list[bytes] = np.asarray(value, object).ravel().tolist()
    return flat


def map_strings(function: Callable[[bytes], bytes], value: np.ndarray | bytes) -> np.ndarray:
    """A string tensor of the same shape with `function` applied to every element."""
    array = np.asarray(value, object)
    return string_tensor(map(function, array.ravel().tolist()), array.shape)


def scalar_string(value: np.ndarray | bytes) -> bytes:
    """The element of a string tensor that has one element."""
    item: bytes = np.asarray(value, object).item()
    return item
