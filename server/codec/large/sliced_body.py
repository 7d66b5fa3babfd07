"""Read the large arrays of numbers in a JSON body in slices, and the rest of it as usual.

The body is not parsed as a whole: the arrays are found by the quotes and brackets around them,
parsed slice by slice (`number_slices`), and replaced by short marks; what is left is a small text
for an ordinary parser. A body with anything else that is large has to be read by that parser alone.

Guarantees: no call holds the interpreter lock for more than a few milliseconds; beside the body the
memory used is about that of the arrays; a body that is read has the value that the ordinary parser
gives.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import orjson

from runtime.errors import OpError
from server.codec.large.array_shape import MAX_NESTING, array_shape
from server.codec.large.number_array import NumberArray
from server.codec.large.number_slices import parse_numbers
from server.codec.large.slices import STEP_BYTES, count, find, rfind, steps

MIN_ARRAY_BYTES = 1 << 14  # shorter arrays are left in the rest; each one read apart takes 40 µs
MAX_REST_BYTES = 1 << 18  # the rest is parsed in one call
MAX_ELEMENTS_APART = 256  # of a ragged list, whose elements are read apart
_BYTES_PER_SEGMENT = 1 << 10  # if strings and braces are closer, a body has no large arrays
_BACKSLASH = b"\\"[0]
_MAX_BACKSLASHES = 64  # that are counted before a quote
_COMMA, _OPEN, _CLOSE = b",[]"


@dataclasses.dataclass(frozen=True, slots=True)
class UnusualJson:
    """The parser that a front has for JSON which orjson refuses.

    `words` are the spellings of NaN and infinities that `parse` accepts.
    """

    parse: Callable[[bytes], Any]
    words: Sequence[bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class _Array:
    start: int
    end: int
    numbers: NumberArray
    has_words: bool


def read_sliced(
    body: bytes, keys: Sequence[str], unusual: UnusualJson, member: str | None = None
) -> dict[str, Any] | None:
    """Return the JSON object `body`, in which large arrays of numbers are NumberArrays.

    Only values below the members `keys` can hold such arrays; if `member` is given, only the values
    of that member of the objects in the lists that `keys` are. Returns None if there is none, if
    something else in the body is large, or if the body may be faulty; it has to be read as a whole
    then.
    """
    candidates = _candidates(body)
    if len(body) - sum(end - start for start, end in candidates) > MAX_REST_BYTES:
        return None
    arrays = []
    rest_bytes = len(body)
    for start, end in candidates:
        for array in _read_arrays(body, start, end, unusual.words):
            arrays.append(array)
            rest_bytes -= array.end - array.start
    if not arrays or rest_bytes > MAX_REST_BYTES:
        return None
    mark = secrets.token_hex(16)  # no client can know it and write it in its body
    rest = _rest(body, arrays, mark)
    is_unusual = any(array.has_words for array in arrays) or any(
        word in rest for word in unusual.words
    )
    places = _Places(mark, [array.numbers for array in arrays])
    try:
        value = unusual.parse(rest) if is_unusual else orjson.loads(rest)
        if not isinstance(value, dict):
            return None
        for key in keys:
            if key in value and member is None:
                value[key] = places.filled(value[key])
            elif key in value:
                places.fill_members(value[key], member)
    except (ValueError, RecursionError, OpError):
        return None
    return value if places.are_all_filled() else None


def _candidates(body: bytes) -> list[tuple[int, int]]:
    """Return the bounds of what may be large arrays, or the elements of large ragged lists.

    They begin with `[`, end with `]`, and have as many of the one as of the other.
    """
    found = []
    for position, stop in _segments(body):
        if stop - position < MIN_ARRAY_BYTES:
            continue
        first, last = find(body, b"[", position, stop), rfind(body, b"]", position, stop)
        if not 0 <= first < last:
            continue
        # A list around the array may begin or end in this segment.
        surplus = count(body, b"[", first, last) - count(body, b"]", first, last) - 1
        for _ in range(min(abs(surplus), MAX_NESTING)):
            if surplus > 0:
                first = find(body, b"[", first + 1, stop)
            else:
                last = rfind(body, b"]", position, last)
        if 0 <= first <= last - MIN_ARRAY_BYTES:
            found.append((first, last + 1))
    return found


def _segments(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield the bounds of what is between strings and braces.

    Ends early if they are so close to each other that the body can have no large arrays.
    """
    end = len(body)
    position = 0
    upcoming = {b'"': -1, b"{": -1, b"}": -1}  # the next position of each
    for _ in range(end // _BYTES_PER_SEGMENT + 64):
        for mark, place in upcoming.items():
            if place < position:
                place = find(body, mark, position, end)
                upcoming[mark] = end if place < 0 else place
        stop = min(upcoming.values())
        yield position, stop
        position = _string_end(body, stop + 1) if stop == upcoming[b'"'] else stop + 1
        if stop == end or position < 0:
            return


def _string_end(body: bytes, position: int) -> int:
    """Return the position after the string whose content begins at `position`, or −1."""
    while True:
        quote = find(body, b'"', position, len(body))
        if quote < 0:
            return -1
        first = quote
        while first > position and body[first - 1] == _BACKSLASH:
            first -= 1
            if quote - first > _MAX_BACKSLASHES:
                return -1
        position = quote + 1
        if (quote - first) % 2 == 0:
            return position


def _read_arrays(body: bytes, start: int, end: int, words: Sequence[bytes]) -> Iterator[_Array]:
    """Yield the array `body[start:end]`, or the large elements of a list that is ragged."""
    array = _read_array(body, start, end, words)
    if array is not None:
        yield array
        return
    # The text is either several elements of a list, or one list.
    elements = _elements(body, start, end) or _elements(body, start + 1, end - 1)
    for begin, stop in elements:
        first, last = find(body, b"[", begin, stop), rfind(body, b"]", begin, stop)
        if 0 <= first <= last - MIN_ARRAY_BYTES:
            element = _read_array(body, first, last + 1, words)
            if element is not None:
                yield element


def _read_array(body: bytes, start: int, end: int, words: Sequence[bytes]) -> _Array | None:
    shape = array_shape(body, start, end)
    parsed = None if shape is None else parse_numbers(body, start, end, words)
    if shape is None or parsed is None:
        return None
    chunks, has_words = parsed
    # Fewer numbers than the shape has: an element is missing.
    if sum(map(len, chunks)) != math.prod(shape):
        return None
    return _Array(start, end, NumberArray(chunks, shape), has_words)


def _elements(body: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Return the bounds of what commas outside brackets separate.

    Returns an empty list if there is no such comma, or if there are many.
    """
    commas: list[int] = []
    depth = 0
    for begin, stop in steps(start, end, STEP_BYTES >> 2):
        characters = np.frombuffer(body, np.uint8, stop - begin, begin)
        change = (characters == _OPEN).astype(np.int32)
        change -= characters == _CLOSE
        depths = np.cumsum(change, dtype=np.int32)
        found = np.flatnonzero((characters == _COMMA) & (depths == -depth))
        commas += (found + begin).tolist()
        if len(commas) >= MAX_ELEMENTS_APART:
            return []
        depth += int(depths[-1])
    if not commas:
        return []
    return list(zip([start, *(comma + 1 for comma in commas)], [*commas, end], strict=True))


def _rest(body: bytes, arrays: Sequence[_Array], mark: str) -> bytes:
    """Return the body with a mark in place of each array: a list, which cannot be a key."""
    parts = []
    position = 0
    for index, array in enumerate(arrays):
        parts += [body[position : array.start], b'["%s:%d"]' % (mark.encode(), index)]
        position = array.end
    return b"".join([*parts, body[position:]])


class _Places:
    """Puts arrays in the place of their marks."""

    def __init__(self, mark: str, arrays: Sequence[NumberArray]) -> None:
        self._arrays = {f"{mark}:{index}": array for index, array in enumerate(arrays)}
        self._filled = 0

    def filled(self, value: Any) -> Any:
        """Return a value of the rest with its arrays; lists and objects are changed in place."""
        if isinstance(value, dict):
            for key, item in value.items():
                value[key] = self.filled(item)
            return value
        if not isinstance(value, list):
            return value
        array = self._array(value)
        if array is not None:
            return array
        value[:] = map(self.filled, value)
        return value

    def fill_members(self, items: Any, name: str | None) -> None:
        """Put arrays in their places if these are the member `name` of the objects in a list."""
        for item in items if isinstance(items, list) else ():
            array = self._array(item.get(name)) if isinstance(item, dict) else None
            if array is not None:
                item[name] = array

    def _array(self, value: Any) -> NumberArray | None:
        if not (isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)):
            return None
        array = self._arrays.get(value[0])
        self._filled += array is not None
        return array

    def are_all_filled(self) -> bool:
        """Return whether each array has a place: none is elsewhere, or was given twice."""
        return self._filled == len(self._arrays)
