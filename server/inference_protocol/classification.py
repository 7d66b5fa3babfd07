"""Triton's classification extension: the highest elements of an output as strings.

Each string is `<value>:<index>`; no labels follow, because a SavedModel has none. Values are
written with six digits after the point, as Triton writes them, and integers as they are.

Source: Triton's classification extension
"""

from __future__ import annotations

import math

import numpy as np

from runtime.errors import InvalidArgumentError


def classes(array: np.ndarray, count: int, *, is_batch: bool) -> np.ndarray:
    """Return the `count` highest elements as strings, the highest first.

    The result has shape `[k]`, or `[n, k]` if the first dimension of `array` is that of a batch of
    n; k is `count` or, if that is less, the number of elements. Of equal elements the first one
    comes first. Raises InvalidArgumentError if the elements are not real numbers.
    """
    if array.dtype.kind not in "iuf":
        try:
            array = array.astype(np.float32)  # bfloat16
        except (TypeError, ValueError):
            raise InvalidArgumentError(
                f"Classification requires numbers, the output has {array.dtype}"
            ) from None
    is_batch = is_batch and array.ndim > 1
    width = math.prod(array.shape[1:]) if is_batch else array.size
    rows = array.reshape(len(array) if is_batch else 1, width)
    count = min(count, rows.shape[1])
    best = np.argsort(_descending(rows), axis=1, kind="stable")[:, :count]
    found = np.empty((len(rows), count), object)
    for row, indices in enumerate(best.tolist()):
        found[row] = [_class(rows[row, index], index) for index in indices]
    return found if is_batch else found[0]


def _descending(rows: np.ndarray) -> np.ndarray:
    """Return keys whose ascending order is the descending order of `rows`."""
    return -rows if rows.dtype.kind == "f" else ~rows


def _class(value: np.generic, index: int) -> bytes:
    text = f"{float(value):.6f}" if value.dtype.kind == "f" else str(value)
    return f"{text}:{index}".encode()
