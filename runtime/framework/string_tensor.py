"""String tensors: object arrays of bytes, made from lists and mapped element by element."""

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
    """A string tensor as an array, also when it came as a bare `bytes`."""
    return np.asarray(value, object)


def items_of(value: np.ndarray | bytes) -> list[bytes]:
    """The elements of a string tensor in row-major order."""
    flat: list[bytes] = np.asarray(value, object).ravel().tolist()
    return flat


def map_strings(function: Callable[[bytes], bytes], value: np.ndarray | bytes) -> np.ndarray:
    """`function` of every element, in the same shape."""
    array = np.asarray(value, object)
    return string_tensor(map(function, array.ravel().tolist()), array.shape)


def scalar_string(value: np.ndarray | bytes) -> bytes:
    """The only element of a string tensor."""
    item: bytes = np.asarray(value, object).item()
    return item
