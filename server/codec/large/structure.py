"""The brackets, braces and commas of a large JSON text outside its strings, step by step.

Nothing is parsed, and a fault of the text is not noticed here: only a parser of the parts finds it.
Until the first fault the structure is right, so that the part with the first fault is the first one
that a parser refuses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from server.codec.large.slices import steps

SCANNED_BYTES = 1 << 18  # looked at together: 1 ms
MIN_STRING = 1 << 16  # shorter strings are parsed with what is around them
_QUOTE, _BACKSLASH = b'"\\'
OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT, COMMA = b"[]{},"
_IS_MARK = np.zeros(256, np.bool_)
_IS_MARK[list(b"[]{},")] = True
_NO_POSITIONS = np.empty(0, np.int64)
Bounds = tuple[int, int]


@dataclasses.dataclass(slots=True)
class Strings:
    """Collects the bounds of the contents of the strings of at least MIN_STRING bytes."""

    bounds: list[Bounds] = dataclasses.field(default_factory=list)
    open_start: int = -1  # where the content begins of a string in which the text ends


def marks(
    body: bytes, start: int, end: int, strings: Strings | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the positions and the characters of `[`, `]`, `{`, `}` and `,` outside strings.

    The text `body[start:end]` must begin outside a string.
    """
    strings = Strings() if strings is None else strings
    string_start = -1  # the position of the quote of an open string
    is_escaped = False  # whether a backslash precedes the step that makes its first character text
    for begin, stop in steps(start, end, SCANNED_BYTES):
        characters = np.frombuffer(body, np.uint8, stop - begin, begin)
        quotes = np.flatnonzero(characters == _QUOTE)
        if is_escaped or body.find(b"\\", begin, stop) >= 0:
            quotes, is_escaped = _real_quotes(characters, quotes, is_escaped)
        found = np.flatnonzero(_IS_MARK[characters])
        is_inside = string_start >= 0
        if len(quotes):
            parity = np.zeros(len(characters), np.uint8)
            parity[quotes] = 1
            np.cumsum(parity, dtype=np.uint8, out=parity)
            found = found[(parity[found] & 1) == is_inside]
        elif is_inside:
            found = _NO_POSITIONS
        string_start = _note_strings(quotes + begin, string_start, strings)
        yield found + begin, characters[found]
    strings.open_start = string_start + 1 if string_start >= 0 else -1


def _real_quotes(
    characters: np.ndarray, quotes: np.ndarray, is_escaped: bool
) -> tuple[np.ndarray, bool]:
    """Return the quotes that no backslash escapes, and whether the next step's first character is.

    The last of a run of backslashes escapes the next character if their number is odd.
    """
    slashes = np.flatnonzero(characters == _BACKSLASH)
    if is_escaped:
        quotes = quotes[quotes != 0]
        slashes = slashes[slashes != 0]
    if not len(slashes):
        return quotes, False
    is_first = np.empty(len(slashes), np.bool_)
    is_first[0] = True
    np.not_equal(np.diff(slashes), 1, out=is_first[1:])
    firsts = np.flatnonzero(is_first)
    lengths = np.diff(np.append(firsts, len(slashes)))
    after_odd = slashes[firsts][lengths % 2 == 1] + lengths[lengths % 2 == 1]
    return (
        np.setdiff1d(quotes, after_odd, assume_unique=True),
        bool(len(after_odd) and after_odd[-1] == len(characters)),
    )


def _note_strings(quotes: np.ndarray, string_start: int, strings: Strings) -> int:
    """Note the large strings that end in a step; return where the open one begins, or −1."""
    if string_start >= 0:
        quotes = np.concatenate(([string_start], quotes))
    closed = len(quotes) // 2 * 2
    starts, ends = quotes[:closed:2], quotes[1:closed:2]
    is_large = ends - starts > MIN_STRING
    if is_large.any():
        strings.bounds += zip((starts[is_large] + 1).tolist(), ends[is_large].tolist(), strict=True)
    return int(quotes[-1]) if len(quotes) % 2 else -1


def list_depths(characters: np.ndarray, depth: int) -> np.ndarray:
    """Return the number of open lists after each mark; `depth` is that before the first one."""
    change = (characters == OPEN_LIST).astype(np.int32)
    change -= characters == CLOSE_LIST
    return np.cumsum(change, dtype=np.int32) + depth


def object_depths(characters: np.ndarray, depth: int) -> np.ndarray:
    """Return the number of open objects after each mark; `depth` is that before the first one."""
    change = (characters == OPEN_OBJECT).astype(np.int32)
    change -= characters == CLOSE_OBJECT
    return np.cumsum(change, dtype=np.int32) + depth


def outside_objects(
    positions: np.ndarray, characters: np.ndarray, depth: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the marks outside objects, and the number of open objects after the last mark."""
    is_brace = (characters == OPEN_OBJECT) | (characters == CLOSE_OBJECT)
    if not is_brace.any():
        if depth:
            return positions[:0], characters[:0], depth
        return positions, characters, depth
    depths = object_depths(characters, depth)
    is_outside = (depths == 0) & ~is_brace
    return positions[is_outside], characters[is_outside], int(depths[-1])


def outermost_lists(
    body: bytes, start: int, end: int, least: int, strings: Strings
) -> list[Bounds]:
    """Return the bounds, brackets included, of the lists of `least` bytes that are in no list."""
    found: list[Bounds] = []
    depth, opened = 0, -1
    for positions, characters in marks(body, start, end, strings):
        if not len(positions):
            continue
        depths = list_depths(characters, depth)
        opens = positions[(characters == OPEN_LIST) & (depths == 1)]
        closes = positions[(characters == CLOSE_LIST) & (depths == 0)]
        if opened >= 0:
            opens = np.concatenate(([opened], opens))
        count = min(len(opens), len(closes))
        is_large = closes[:count] - opens[:count] >= least
        found += zip(
            opens[:count][is_large].tolist(), (closes[:count][is_large] + 1).tolist(), strict=True
        )
        depth = int(depths[-1])
        opened = int(opens[-1]) if len(opens) > len(closes) else -1
    return found
