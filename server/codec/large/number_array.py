"""NumberArray: the numbers of a nested JSON array, before the element type of the tensor is known.

Integers are kept exactly, in the narrowest type that holds the integers of a slice of the text, so
that an array takes little more memory than its text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from runtime.errors import InvalidArgumentError
from server.codec.large.slices import pause_if_due

_NARROW = (np.int8, np.int16, np.int32)
_SHOWN = 64  # numbers in an error message


def narrowed(integers: np.ndarray) -> np.ndarray:
    """Return integers in the narrowest signed type that holds them, or as they are."""
    low, high = int(integers.min()), int(integers.max())
    for dtype in _NARROW:
        info = np.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return integers.astype(dtype)
    return integers


class NumberArray:
    """A regular array of JSON numbers of at least one dimension, none of which is 0.

    `chunks` are the numbers in row-major order: flat arrays of float64 if a number of the chunk has
    a fraction or an exponent, else of integers. Numbers that no 64-bit integer holds are float64.
    """

    def __init__(self, chunks: Sequence[np.ndarray], shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.chunks = chunks
        self._has_fractions = any(chunk.dtype.kind == "f" for chunk in chunks)

    def __repr__(self) -> str:
        """Return the first numbers, for error messages."""
        return repr(self.chunks[0][:_SHOWN].tolist())

    def floats(self, dtype: np.dtype) -> np.ndarray:
        """Return the array as `dtype`, through float64; values beyond its range become infinite."""
        array = np.empty(math.prod(self.shape), dtype)
        with np.errstate(over="ignore"):
            for place, chunk in self._placed():
                array[place] = chunk.astype(np.float64, copy=False).astype(dtype, copy=False)
        return array.reshape(self.shape)

    def integers(self, dtype: np.dtype, low: int, high: int) -> np.ndarray | None:
        """Return the array as the integers `dtype`, which wrap.

        Returns None if a number has a fraction or an exponent, or is not within `low` to `high`.
        """
        if self._has_fractions:
            return None
        for chunk in self.chunks:
            if int(chunk.min()) < low or int(chunk.max()) > high:
                return None
        array = np.empty(math.prod(self.shape), dtype)
        for place, chunk in self._placed():
            array[place] = chunk.astype(dtype)
        return array.reshape(self.shape)

    def rows(self, count: int) -> list[NumberArray]:
        """Return the elements of the first dimension.

        Raises InvalidArgumentError unless there are `count` and they are lists.
        """
        if self.shape[0] != count or len(self.shape) == 1:
            raise InvalidArgumentError(
                f"Expected {count} lists, got numbers of shape {list(self.shape)}"
            )
        inner = self.shape[1:]
        size = math.prod(inner)
        rows: list[NumberArray] = []
        parts: list[np.ndarray] = []
        missing = size
        for chunk in self.chunks:
            begin = 0
            while begin < len(chunk):
                part = chunk[begin : begin + missing]
                parts.append(part)
                begin += len(part)
                missing -= len(part)
                if not missing:
                    rows.append(NumberArray(parts, inner))
                    parts, missing = [], size
        return rows

    def _placed(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the chunks with their places in the flat array."""
        begin = 0
        for chunk in self.chunks:
            pause_if_due()
            yield slice(begin, begin + len(chunk)), chunk
            begin += len(chunk)


def stacked(values: Sequence[Any]) -> NumberArray | None:
    """Return the array of these elements, or None unless all are NumberArrays of one shape."""
    arrays = [value for value in values if isinstance(value, NumberArray)]
    shape = arrays[0].shape if arrays else ()
    if len(arrays) < len(values) or any(array.shape != shape for array in arrays):
        return None
    chunks = [chunk for array in arrays for chunk in array.chunks]
    return NumberArray(chunks, (len(arrays), *shape))
