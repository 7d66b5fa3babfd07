"""Find the first fault of a large JSON body, and where its value ends, part by part.

The body is cut after brackets, braces and commas outside strings. What is open at the two ends of a
part is put around it, so that a parser of small texts checks it. Long strings are checked apart.

Guarantees: the fault is the one that the parser would find in the whole; beside the body, memory is
a few megabytes (and a bit per open bracket).
"""

from __future__ import annotations

import codecs
import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from server.codec.large.dialect import BYTE_ORDER_MARK, JsonDialect, JsonFaultError
from server.codec.large.large_values import string_parts
from server.codec.large.slices import first_content, pause_if_due, steps
from server.codec.large.structure import (
    CLOSE_LIST,
    CLOSE_OBJECT,
    COMMA,
    OPEN_LIST,
    OPEN_OBJECT,
    Bounds,
    Strings,
    marks,
)

_NOT_UTF8 = "str is not valid UTF-8: surrogates not allowed"  # orjson's words
# A part in which brackets are deeper is checked in smaller ones: orjson parses 1024 levels, and a
# parser of more takes a hundred times as long.
_MAX_CHANGE = 900
_LONGEST_SCALAR = 1 << 20  # a longer number or word is cut; no parser accepts either


def value_bounds(body: bytes, dialect: JsonDialect) -> tuple[int, int | None]:
    """Return where the JSON value of a body begins and ends.

    The end is None if the value is no list, no object and no long string; see `scalar_text`.
    Raises InvalidArgumentError for the first fault.
    """
    start = 0
    if dialect.skips_byte_order_mark and body.startswith(BYTE_ORDER_MARK):
        start = len(BYTE_ORDER_MARK)
    try:
        if dialect.is_utf8:
            _check_utf8(body)
        start = first_content(body, start, len(body))
        return start, _Check(body, start, dialect).value_end()
    except JsonFaultError as fault:
        raise dialect.error(body, fault) from None


def scalar_text(body: bytes, start: int) -> bytes:
    """Return the text of a body that is no list, no object and no long string."""
    stop = min(start + _LONGEST_SCALAR, len(body))
    while stop < len(body) and body[stop] & 0xC0 == 0x80 and stop > start + _LONGEST_SCALAR - 3:
        stop -= 1  # not within a character
    return body[start:stop]


def _shallow(
    found: Iterable[tuple[np.ndarray, np.ndarray]],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the same marks, few at a time where the depth changes by more than _MAX_CHANGE."""
    for positions, characters in found:
        depths = np.cumsum(_changes(characters), dtype=np.int32)
        size = max(len(depths), 1)
        if size > _MAX_CHANGE and int(depths.max()) - int(depths.min()) > _MAX_CHANGE:
            size = _MAX_CHANGE
        for begin in range(0, len(positions), size):
            yield positions[begin : begin + size], characters[begin : begin + size]


def _changes(characters: np.ndarray) -> np.ndarray:
    """Return how each mark changes the number of open brackets."""
    is_open = (characters == OPEN_LIST) | (characters == OPEN_OBJECT)
    is_close = (characters == CLOSE_LIST) | (characters == CLOSE_OBJECT)
    change: np.ndarray = is_open.astype(np.int32)
    change -= is_close
    return change


@dataclasses.dataclass(slots=True)
class _Part:
    """What is known of the marks of one part: where it ends, and how the open brackets change."""

    end: int
    least: int  # brackets before the part that are open throughout
    opened: bytes  # brackets of the part that are open after it
    is_last: bool = False


class _Check:
    """Checks one body; `_begin` is where the next part begins, `_open` are the open brackets."""

    def __init__(self, body: bytes, start: int, dialect: JsonDialect) -> None:
        self._body = body
        self._begin = start
        self._dialect = dialect
        self._open = bytearray()
        self._strings = Strings()
        self._strings_done = 0

    def value_end(self) -> int | None:
        """Return where the value ends; see `value_bounds`."""
        body = self._body
        if body[self._begin : self._begin + 1] not in (b"[", b"{"):
            return self._check_scalar(self._begin)
        for positions, characters in _shallow(marks(body, self._begin, len(body), self._strings)):
            pause_if_due()
            part, deep = self._next_part(positions, characters)
            self._check_part(part)
            if deep >= 0:
                raise JsonFaultError(deep, self._dialect.too_deep)
            if part.is_last:
                return self._end_after(part.end)
        self._check_rest()
        return len(body)

    def _next_part(self, positions: np.ndarray, characters: np.ndarray) -> tuple[_Part, int]:
        """Return the part up to the last of these marks, the value's end or a bracket too deep.

        The second value is the position after that bracket, or −1.
        """
        changes = _changes(characters)
        is_open = changes > 0
        depths = np.cumsum(changes, dtype=np.int32) + len(self._open)
        stops = np.flatnonzero((depths <= 0) | (depths > self._dialect.max_depth))
        deep = -1
        is_last = False
        last = len(positions) - 1
        if len(stops):
            last = int(stops[0])
            is_last = bool(depths[last] <= 0)
            deep = -1 if is_last else int(positions[last]) + 1
            is_open, depths = is_open[: last + 1], depths[: last + 1]
        after = np.minimum.accumulate(depths[::-1])[::-1]  # the least depth from here on
        opened = characters[: last + 1][is_open & (depths == after)]
        least = min(len(self._open), int(depths.min()))
        return _Part(int(positions[last]) + 1, least, opened.tobytes(), is_last), deep

    def _check_part(self, part: _Part) -> None:
        """Check the text up to the end of a part, and note what is open there."""
        before = self._open[max(part.least - 1, 0) :]
        after = self._open[max(part.least - 1, 0) : part.least] + part.opened
        last = self._body[part.end - 1]
        closing = b""
        if last == COMMA:
            closing = b'"":0' if after[-1] == OPEN_OBJECT else b"0"
        closing += bytes(_CLOSED_BY[bracket] for bracket in reversed(after))
        self._check_text(part.end, self._opening(before), b"" if part.is_last else closing)
        del self._open[part.least :]
        self._open += part.opened
        self._begin = part.end

    def _opening(self, brackets: bytes | bytearray) -> bytes:
        """Return a text that leaves these brackets open, in the state in which the part begins."""
        if not brackets:
            return b""
        text = b"".join([_OUTER[bracket] for bracket in brackets[:-1]])
        mark, bracket = self._body[self._begin - 1], brackets[-1]
        text += bytes((bracket,))
        if mark in (OPEN_LIST, OPEN_OBJECT):
            return text
        # A number would go on with a digit after it.
        text += b'"":[]' if bracket == OPEN_OBJECT else b"[]"
        return text + b"," if mark == COMMA else text

    def _check_text(self, end: int, opening: bytes, closing: bytes) -> None:
        """Check the text up to `end`, between these texts; of two faults the first is raised."""
        strings = [
            bounds for bounds in self._strings.bounds[self._strings_done :] if bounds[1] < end
        ]
        self._strings_done += len(strings)
        pieces, position = [opening], self._begin
        for begin, stop in strings:
            pieces.append(self._body[position:begin])
            position = stop
        pieces += [self._body[position:end], closing]
        fault = None
        try:
            self._dialect.check(b"".join(pieces))
        except JsonFaultError as error:
            place = self._begin + error.position - len(opening)
            for begin, stop in strings:
                if place > begin:
                    place += stop - begin
            fault = JsonFaultError(min(place, end), error.what)
        for bounds in strings:
            if fault is None or bounds[0] < fault.position:
                self._check_string(bounds)
        if fault is not None:
            raise fault

    def _check_string(self, bounds: Bounds, *, is_open: bool = False) -> None:
        """Check the content of a string, which has no closing quote if `is_open`."""
        for begin, stop in string_parts(self._body, *bounds):
            quote = b"" if is_open and stop == bounds[1] else b'"'
            try:
                self._dialect.check(b'"%b%b' % (self._body[begin:stop], quote))
            except JsonFaultError as fault:
                raise JsonFaultError(begin + fault.position - 1, fault.what) from None

    def _check_scalar(self, content: int) -> int | None:
        """Check a body that is no list and no object; see `value_bounds`."""
        text = scalar_text(self._body, content)
        if text.startswith(b'"'):
            end = self._check_long_string(content)
            if end is not None:
                return end
        space = b" " if content else b""  # so that no byte order mark is at its begin
        try:
            self._dialect.scalar(space + text)
        except JsonFaultError as fault:
            position = content + fault.position - len(space)
            raise JsonFaultError(position, fault.what) from None
        return None

    def _check_rest(self) -> None:
        """Raise the fault of the text after the last mark, where the body ends too early."""
        open_string = self._strings.open_start
        end = len(self._body) if open_string < 0 else open_string
        try:
            self._check_text(end, self._opening(self._open[-1:]), b"")
        except JsonFaultError as fault:
            if open_string >= 0 and fault.position >= end:
                self._check_string((open_string, len(self._body)), is_open=True)
            raise

    def _check_long_string(self, content: int) -> int | None:
        """Check a body that is one long string; return None if it is something else."""
        body = self._body
        for _ in marks(body, content, len(body), self._strings):
            if self._strings.bounds:
                break
        is_open = not self._strings.bounds
        begin, end = (self._strings.open_start, len(body)) if is_open else self._strings.bounds[0]
        if begin != content + 1:
            return None
        self._check_string((begin, end), is_open=is_open)
        return None if is_open else self._end_after(end + 1)

    def _end_after(self, end: int) -> int:
        """Return where the value ends; raise the fault of what follows it."""
        if self._dialect.ends_after_value:
            return end
        content = first_content(self._body, end, len(self._body))
        if content < len(self._body):
            try:
                self._dialect.check(b"[]0")
            except JsonFaultError as fault:
                raise JsonFaultError(content, fault.what) from None
        return end


_CLOSED_BY = {OPEN_LIST: CLOSE_LIST, OPEN_OBJECT: CLOSE_OBJECT}
_OUTER = {OPEN_LIST: b"[", OPEN_OBJECT: b'{"":'}


def _check_utf8(body: bytes) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for begin, stop in steps(0, len(body)):
            decoder.decode(body[begin:stop], final=stop == len(body))
    except UnicodeDecodeError:
        raise JsonFaultError(0, _NOT_UTF8) from None
