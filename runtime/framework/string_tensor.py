"""String tensors (object arrays of bytes): construction, reading and element-wise mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from runtime.foundation.running_task import BLOCK, check_task, checked_list


def string_tensor(items: Iterable[bytes], shape: Sequence[int] | None = None) -> np.ndarray:
    """Return an object array of `items` in row-major order; a vector unless `shape` is given."""
    listed = checked_list(items)
    array = np.empty(len(listed), object)
    array[:] = listed
    return array if shape is None else array.reshape(shape)


def as_strings(value: np.ndarray | bytes) -> np.ndarray:
    """Return a string tensor as an object array; a `bytes` object becomes an array of rank 0."""
    return np.asarray(value, object)


def items_of(value: np.ndarray | bytes) -> list[bytes]:
    """Return the elements of a string tensor in row-major order."""
    flat: list[bytes] = np.asarray(value, object).ravel().tolist()
    return flat


def string_blocks(strings: np.ndarray) -> Iterator[list[bytes]]:
    """Yield lists of the next BLOCK elements in row-major order; call `check_task` after each.

    So neither other threads nor the end of the step wait for a list of all elements.
    """
    flat = strings.reshape(-1)
    for first in range(0, len(flat), BLOCK):
        yield flat[first : first + BLOCK].tolist()
        check_task()


def map_strings(function: Callable[[bytes], bytes], value: np.ndarray | bytes) -> np.ndarray:
    """Return a string tensor of the same shape with `function` applied to every element."""
    array = np.asarray(value, object)
    return string_tensor(map(function, array.ravel().tolist()), array.shape)


def scalar_string(value: np.ndarray | bytes) -> bytes:
    """Return the only element of a string tensor."""
    item: bytes = np.asarray(value, object).item()
    return item
