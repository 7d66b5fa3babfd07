"""The exact shape of a nested JSON array, from its brackets and commas alone.

The punctuation of a regular array is known from its shape: the array of shape [2, 3] has the
punctuation `[[,,],[,,]]`. A text with another punctuation is ragged, or is no array of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from server.codec.large.slices import STEP_BYTES, count, find, pause_if_due, steps

MAX_NESTING = 32  # numpy's arrays may have more dimensions; no tensor of a model has
# Characters of numbers, of the words NaN, Inf and Infinity, and white space. Whether they make up
# numbers is checked by a parser.
_NOT_PUNCTUATION = b"0123456789+-.eE NaInfity\t\r\n"
_OPENING = re.compile(rb"\[+")


def array_shape(text: bytes, start: int, end: int) -> tuple[int, ...] | None:
    """Return the shape of the nested array that is `text[start:end]`.

    Returns None if the text is ragged or has other content than numbers. If a shape is returned,
    the brackets are balanced and the number of commas is right, but an element may be missing, as
    in `[1,]`, or may not be a number.
    """
    parts = (text[begin:stop] for begin, stop in steps(start, end, STEP_BYTES >> 2))
    punctuation = b"".join([part.translate(None, _NOT_PUNCTUATION) for part in parts])
    shape = _apparent_shape(punctuation)
    return shape if shape is not None and _has_shape(punctuation, shape) else None


def _apparent_shape(punctuation: bytes) -> tuple[int, ...] | None:
    """Return the shape that the first element of each level has, or None if there is none.

    The commas before the first `]`, the first `]]` and so on give the sizes from the innermost
    dimension outwards.
    """
    opening = _OPENING.match(punctuation, 0, MAX_NESTING + 1)
    if opening is None or opening.end() > MAX_NESTING:
        return None
    sizes: list[int] = []
    elements, position, commas = 1, 0, 0
    for level in range(1, opening.end() + 1):
        found = find(punctuation, b"]" * level, position, len(punctuation))
        if found < 0:
            return None
        commas += count(punctuation, b",", position, found)
        position = found
        size, rest = divmod(commas + 1, elements)
        if rest or not size:
            return None
        sizes.append(size)
        elements *= size
    return tuple(reversed(sizes))


def _has_shape(punctuation: bytes, shape: tuple[int, ...]) -> bool:
    position = 0
    for part in _parts(shape):
        pause_if_due()
        if not punctuation.startswith(part, position):
            return False
        position += len(part)
    return position == len(punctuation)


def _parts(shape: tuple[int, ...]) -> Iterator[bytes]:
    """Yield the punctuation of an array of this shape, in parts of at most STEP_BYTES or so."""
    if _length(shape) <= STEP_BYTES:
        yield _punctuation(shape)
        return
    size, inner = shape[0], shape[1:]
    yield b"["
    if _length(inner) < STEP_BYTES:
        element = _punctuation(inner)
        followed = element + b","
        together = STEP_BYTES // len(followed)
        many = followed * together
        for _ in range((size - 1) // together):
            yield many
        yield followed * ((size - 1) % together) + element
    else:
        yield from _parts(inner)
        for _ in range(size - 1):
            yield b","
            yield from _parts(inner)
    yield b"]"


def _punctuation(shape: tuple[int, ...]) -> bytes:
    text = b""
    for size in reversed(shape):
        text = b"[" + (text + b",") * (size - 1) + text + b"]"
    return text


def _length(shape: tuple[int, ...]) -> int:
    """Return the length of the punctuation of an array of this shape."""
    length = 0
    for size in reversed(shape):
        length = size * (length + 1) + 1
    return length
