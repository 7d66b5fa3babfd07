"""Parse a nested JSON array of numbers slice by slice, without Python objects for the numbers.

A slice of the text ends before a comma. With the brackets that are open at its two ends it is a
complete JSON array, which simdjson parses to a flat buffer. orjson parses the slice where simdjson
is not installed, or refuses an integer of more than 64 bits.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson

from server.codec.large.number_array import narrowed
from server.codec.large.slices import SLICE_BYTES, count, pause_if_due

# The words for NaN and infinities that each reader of unusual JSON accepts, longest first.
PYTHON_WORDS = (b"NaN", b"-Infinity", b"Infinity")  # Python's json
RAPIDJSON_WORDS = (b"-NaN", b"NaN", b"-Infinity", b"Infinity", b"-Inf", b"Inf")
# Letters that occur once in each spelling of NaN and of infinity.
_COMMA, _MINUS, _LETTER_OF_NAN, _LETTER_OF_INF = b",-aI"
_NUMBERS = frozenset({int, float})

# Parses a text that is a nested array; returns the numbers, or None if it is no array of numbers.
SliceParser = Callable[[bytes], np.ndarray | None]


def parse_numbers(
    text: bytes, start: int, end: int, words: Sequence[bytes]
) -> tuple[list[np.ndarray], bool] | None:
    """Parse the nested array `text[start:end]`, whose brackets must be balanced.

    Returns the numbers in order, as the chunks of a NumberArray, and whether one of them is one of
    the `words`. Returns None if the text is not a JSON array of numbers and `words`.
    """
    parse = slice_parser()
    chunks = []
    depth, has_words = 0, False
    position = start
    while position < end:
        pause_if_due()
        stop = end
        if end - position > SLICE_BYTES:
            stop = text.rfind(b",", position, position + SLICE_BYTES)
            if stop < 0:
                return None  # a number is not as long as a slice
        part = text[position:stop]
        opened = b"[" * depth
        depth += count(part, b"[", 0, len(part)) - count(part, b"]", 0, len(part))
        closed = b"]" * depth
        chunk = parse(opened + part + closed)
        if chunk is None:
            spelled = _without_words(part, words)
            chunk = None if spelled is None else parse(opened + spelled + closed)
            chunk = None if chunk is None else _with_words(chunk, part)
            if chunk is None:
                return None
            has_words = True
        chunks.append(chunk)
        position = stop + 1
    return chunks, has_words


@functools.cache
def slice_parser() -> SliceParser:
    """Return the fastest parser that is installed."""
    try:
        import simdjson  # it takes 12 ms, which only a server of large bodies has to spend
    except ImportError:
        return parse_with_orjson
    return functools.partial(_parse_with_simdjson, simdjson.Parser)


def _parse_with_simdjson(make_parser: Callable[[], Any], text: bytes) -> np.ndarray | None:
    # A parser for each slice, because threads must not share one, nor may a result outlive it.
    try:
        array = make_parser().parse(text)
        if b"." not in text and b"e" not in text and b"E" not in text:
            return narrowed(np.frombuffer(array.as_buffer(of_type="i"), np.int64))
        return np.frombuffer(array.as_buffer(of_type="d"), np.float64)
    except (ValueError, TypeError, RuntimeError):
        return parse_with_orjson(text)


def parse_with_orjson(text: bytes) -> np.ndarray | None:
    """Parse a slice with orjson, which takes four times as long as simdjson."""
    try:
        level = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    kinds = set(map(type, level))
    while list in kinds:
        # A slice may begin with fewer brackets than it has inside, so numbers stand beside lists.
        level = list(
            itertools.chain.from_iterable(item if type(item) is list else (item,) for item in level)
        )
        kinds = set(map(type, level))
    if not level or not kinds <= _NUMBERS:
        return None
    if kinds == {int}:
        low, high = min(level), max(level)
        if high < 1 << 63:
            return narrowed(np.array(level, np.int64))
        if low >= 0:
            return np.array(level, np.uint64)
    return np.array(level, np.float64)


def _without_words(part: bytes, words: Sequence[bytes]) -> bytes | None:
    """Return `part` with a number in place of each word, or None if there is no word.

    The number stands between spaces, so that a parser refuses what a word stuck to.
    """
    spelled = part
    for word in words:
        spelled = spelled.replace(word, b" 0.0 ")
    return None if spelled is part or spelled == part else spelled


def _with_words(numbers: np.ndarray, part: bytes) -> np.ndarray | None:
    """Return `numbers` with the values of the words of `part`, in which they were replaced.

    Returns None if `part` has empty elements.
    """
    characters = np.frombuffer(part, np.uint8)
    commas = np.flatnonzero(characters == _COMMA)
    if len(numbers) != len(commas) + 1:
        return None
    numbers = numbers.copy()
    for letter, before, value in ((_LETTER_OF_NAN, 2, np.nan), (_LETTER_OF_INF, 1, np.inf)):
        places = np.flatnonzero(characters == letter)
        is_negative = characters[places - before] == _MINUS
        numbers[np.searchsorted(commas, places)] = np.where(is_negative, -value, value)
    return numbers
