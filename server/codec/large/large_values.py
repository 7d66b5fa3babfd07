"""Large lists and strings of a JSON body that are read when their element type is known.

Until then they are only places in the body. They are parsed slice by slice, so that neither the
whole list nor its text as Python objects exists at any time.

Guarantees: no call holds the interpreter lock for more than a few milliseconds; a slice takes a few
megabytes.
"""

from __future__ import annotations

import binascii
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from runtime.errors import InvalidArgumentError
from server.codec.large.list_levels import MAX_LEVELS, ListLevels, list_levels
from server.codec.large.slices import find, pause_if_due

TEXT_BYTES = 1 << 18  # of a string, decoded at once
MAX_SLICE_BYTES = 1 << 20  # a larger part that cannot be cut is read as a body of its own
_BASE64_GROUP = 4
_LONGEST_ESCAPE = 12  # a surrogate pair
_HIGH_SURROGATE = re.compile(rb"\\u[dD][89abAB]")
# Parses one JSON value in a body: takes the body, the bounds of the value, and the texts put before
# and after it. Raises the error of a fault, whose place is in the body.
ParsePart = Callable[[bytes, int, int, bytes, bytes], Any]


class LargeText:
    """A long string of a body, between its quotes."""

    def __init__(self, body: bytes, start: int, end: int) -> None:
        self._body, self._start, self._end = body, start, end

    def __len__(self) -> int:
        """Return the number of bytes between the quotes."""
        return self._end - self._start

    def parts(self, *, is_tolerant: bool = False) -> Iterator[bytes]:
        """Yield the UTF-8 bytes that the string stands for.

        If `is_tolerant`, bytes that are not UTF-8 are kept. Raises InvalidArgumentError if the
        string is not valid JSON.
        """
        position = self._start
        try:
            while position < self._end:
                pause_if_due()
                stop = self._cut(position)
                part = self._body[position:stop]
                if b"\\" in part:
                    part = orjson.loads(b'"%b"' % part).encode()
                else:
                    if any(map(part.__contains__, _CONTROLS)):
                        raise ValueError("control characters must be escaped")
                    if not is_tolerant and not part.isascii():
                        part.decode()
                yield part
                position = stop
        except ValueError as error:
            raise InvalidArgumentError(
                f"The body is not valid JSON: {error} (in the string at char {self._start - 1})"
            ) from None

    def _cut(self, position: int) -> int:
        """Return where the next part ends: not within a character or an escape sequence."""
        body, stop = self._body, min(position + TEXT_BYTES, self._end)
        if stop == self._end:
            return stop
        while stop > position + 1 and body[stop] & 0xC0 == 0x80:  # within a character
            stop -= 1
        near = body.find(b"\\", stop - _LONGEST_ESCAPE, stop)
        if near < 0:
            return stop
        first = position + len(body[position:near].rstrip(b"\\"))  # of the run of backslashes
        if first == position:
            return position + (near - position) // 2 * 2
        half = first - _LONGEST_ESCAPE // 2  # where the first half of a surrogate pair may begin
        before = body[position:half].rstrip(b"\\")
        is_pair = _HIGH_SURROGATE.match(body, half) and (half - position - len(before)) % 2 == 0
        return half if is_pair and half > position else first

    def __repr__(self) -> str:
        """Return the begin of the string."""
        return repr(self.beginning())

    def content(self, *, is_tolerant: bool = False) -> bytes:
        """Return the UTF-8 bytes that the string stands for; see `parts`."""
        return b"".join(self.parts(is_tolerant=is_tolerant))

    def base64(self, *, is_tolerant: bool = False) -> bytes | bytearray:
        """Decode the string as base64.

        If `is_tolerant`, white space and missing padding are accepted. Raises binascii.Error.
        """
        decoded = bytearray()
        left = b""
        length = 0
        for part in self.parts(is_tolerant=is_tolerant):
            for begin in range(0, len(part), TEXT_BYTES):
                pause_if_due()
                text = part[begin : begin + TEXT_BYTES]
                if is_tolerant:
                    text = text.translate(None, b" \t\r\n\f\v")
                length += len(text)
                text = left + text
                whole = (len(text) - 1) // _BASE64_GROUP * _BASE64_GROUP  # the last group may end
                decoded += _whole_groups(text[:whole])
                left = text[whole:]
        if is_tolerant:
            left += b"=" * (-length % _BASE64_GROUP)
        if left.strip(b"=") or not decoded:  # binascii accepts padding after whole groups
            decoded += binascii.a2b_base64(left, strict_mode=True)
        return decoded

    def beginning(self) -> str:
        """Return the begin of the string, for error messages."""
        return self._body[self._start : self._start + 1024].decode("utf-8", "surrogateescape")


_CONTROLS = range(0x20)


def _whole_groups(text: bytes) -> bytes:
    """Decode base64 that more base64 follows, so that it must not have padding."""
    if b"=" in text:
        binascii.a2b_base64(text + b"AAAA", strict_mode=True)  # raises
        raise binascii.Error("Excess data after padding")
    return binascii.a2b_base64(text, strict_mode=True)


class LargeList:
    """A large list of a body, with its brackets."""

    def __init__(
        self,
        body: bytes,
        start: int,
        end: int,
        parse: ParsePart,
        parse_apart: Callable[[int, int], list[Any]],
    ) -> None:
        self._body, self._start, self._end = body, start, end
        self._parse = parse
        self._parse_apart = parse_apart

    def __len__(self) -> int:
        """Return the number of bytes of the text."""
        return self._end - self._start

    @functools.cached_property
    def levels(self) -> ListLevels:
        """The shape of the list, and where it can be cut.

        Raises InvalidArgumentError if lists are nested too deep.
        """
        levels = list_levels(self._body, self._start, self._end)
        if levels.is_too_deep:
            raise InvalidArgumentError(f"Lists are nested over {MAX_LEVELS} deep")
        return levels

    def leaves(self) -> Iterator[list[Any]]:
        """Yield the elements that are no lists, in order."""
        start, opened = self._start, 0
        for stop, depth in [*self.levels.cuts, (self._end, 0)]:
            pause_if_due()
            value = self._parse(self._body, start, stop, b"[" * opened, b"]" * depth)
            yield _flat(value)
            start, opened = stop + 1, depth

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the elements of the list, each time several, with the index of the first one."""
        start, opened, index = self._start, b"", 0
        for stop, count in [*self.levels.row_cuts, (self._end, 0)]:
            pause_if_due()
            closed = b"" if stop == self._end else b"]"
            rows = self._parse(self._body, start, stop, opened, closed)
            yield index, rows
            start, opened, index = stop + 1, b"[", count

    def __repr__(self) -> str:
        """Return the begin of the list."""
        return repr(self.beginning())

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.levels.levels[0].size

    def elements(self) -> list[Any]:
        """Return the elements, of which large lists are LargeLists; they must be few."""
        return self._parse_apart(self._start, self._end)

    def whole(self) -> Any:
        """Return the list, which must not be large."""
        return self._parse(self._body, self._start, self._end, b"", b"")

    def beginning(self) -> list[Any]:
        """Return the list, cut after its first part, for error messages."""
        levels = list_levels(self._body, self._start, self._end)
        stop, depth = [*levels.cuts, (self._end, 0)][0]
        if levels.is_too_deep or stop - self._start > MAX_SLICE_BYTES:
            return []
        value: list[Any] = self._parse(self._body, self._start, stop, b"", b"]" * depth)
        return value


def _flat(value: Any) -> list[Any]:
    """Return what is in lists inside each other, in order."""
    level = value
    while list in set(map(type, level)):
        level = list(
            itertools.chain.from_iterable(item if type(item) is list else (item,) for item in level)
        )
    flat: list[Any] = level
    return flat


def line_and_column(body: bytes, position: int) -> tuple[int, int]:
    """Return the line and the column, from 1, of a position."""
    lines, last, place = 1, -1, 0
    while True:
        place = find(body, b"\n", place, position)
        if place < 0:
            return lines, position - last
        lines, last, place = lines + 1, place, place + 1
