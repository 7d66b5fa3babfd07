"""Write arrays in parts, so that no thread holds the interpreter for long.

The parts are joined by `b"".join`, which releases the interpreter lock where the result is large.
`%` and `+` don't.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from server.codec.large.slices import pause_if_due

LARGE_ANSWER_BYTES = 1 << 18  # arrays of this many bytes are written in parts
BLOCK_ELEMENTS = 1 << 13  # written at once; 0.3 ms of float32
BLOCK_STRINGS = 1 << 10
_BYTES_PER_GROUP = 3  # that base64 encodes together


def json_parts(array: np.ndarray, write: Callable[[np.ndarray], bytes]) -> Iterator[bytes]:
    """Yield the parts of an array as nested JSON lists.

    `write` returns the text of a block, which is an array of the same rank with fewer elements or
    an element of the first dimension. Brackets and commas without white space are expected.
    """
    pause_if_due()
    most = _block_size(array)
    if _weight(array.shape) <= most:
        yield write(array)
        return
    yield b"["
    row = _weight(array.shape[1:])
    if row > most:
        for index in range(len(array)):
            if index:
                yield b","
            yield from json_parts(array[index], write)
    else:
        rows = most // row
        for begin in range(0, len(array), rows):
            if begin:
                pause_if_due()
                yield b","
            yield write(array[begin : begin + rows])[1:-1]
    yield b"]"


def content_bytes(array: np.ndarray) -> int:
    """Return the bytes of an array's elements, or of its brackets if it has no elements.

    Object arrays have the bytes of their pointers.
    """
    return array.nbytes or 2 * _weight(array.shape)


def blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the elements of a C-contiguous array in row-major order, as flat blocks."""
    flat, most = array.reshape(-1), _block_size(array)
    for begin in range(0, len(flat), most):
        pause_if_due()
        yield flat[begin : begin + most]


def base64_parts(contents: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the base64 text, with padding, of the bytes that `contents` are together."""
    left = b""
    for content in contents:
        content = left + content
        whole = len(content) - len(content) % _BYTES_PER_GROUP
        yield base64.b64encode(content[:whole])
        left = content[whole:]
    yield base64.b64encode(left)


def _block_size(array: np.ndarray) -> int:
    return BLOCK_STRINGS if array.dtype == object else BLOCK_ELEMENTS


def _weight(shape: tuple[int, ...]) -> int:
    """Return about how long it takes to write an array; an empty list takes time as well."""
    return math.prod(max(size, 1) for size in shape)
