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

from runtime.api import MAX_RANK
from runtime.errors import InvalidArgumentError
from server.codec.large.list_levels import ListLevels, list_levels
from server.codec.large.slices import pause_if_due

TEXT_BYTES = 1 << 18  # of a string, decoded at once
MAX_SLICE_BYTES = 1 << 20  # a larger part that cannot be cut is read as a body of its own
_BASE64_GROUP = 4
_LONGEST_CHARACTER = 4  # bytes
_LONGEST_ESCAPE = 12  # a surrogate pair
_HIGH_SURROGATE = re.compile(rb"\\u[dD][89abAB]")
# Parses one JSON value in a body: takes the body, the bounds of the value, and the texts put before
# and after it.
ParsePart = Callable[[bytes, int, int, bytes, bytes], Any]


def string_parts(body: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of parts of a string's content; none ends in a character or an escape."""
    position = start
    while position < end:
        pause_if_due()
        stop = _cut(body, position, end)
        yield position, stop
        position = stop


def _cut(body: bytes, position: int, end: int) -> int:
    stop = min(position + TEXT_BYTES, end)
    if stop == end:
        return stop
    for _ in range(_LONGEST_CHARACTER - 1):
        if stop > position + 1 and body[stop] & 0xC0 == 0x80:  # within a character
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


class DeepListError(InvalidArgumentError):
    """An element of a list, of this index, has lists inside each other than no tensor has.

    `depth` is how many are open in the innermost one, the list itself included.
    """

    def __init__(self, index: int, depth: int) -> None:
        super().__init__(f"Lists are nested over {MAX_RANK} deep")
        self.index = index
        self.depth = depth


class LargeText:
    """A long string of a body, between its quotes; `parse` parses its parts as JSON."""

    def __init__(self, body: bytes, start: int, end: int, parse: Callable[[bytes], Any]) -> None:
        self._body, self._start, self._end = body, start, end
        self._parse = parse

    def __len__(self) -> int:
        """Return the number of bytes between the quotes."""
        return self._end - self._start

    def parts(self) -> Iterator[bytes]:
        """Yield the bytes that the string stands for, as they were sent if they are not UTF-8."""
        for begin, stop in string_parts(self._body, self._start, self._end):
            part = self._body[begin:stop]
            if b"\\" in part:
                text: str = self._parse(b'"%b"' % part)
                part = text.encode("utf-8", "surrogateescape")
            yield part

    def __repr__(self) -> str:
        """Return the begin of the string."""
        return repr(self.beginning())

    def content(self) -> bytes:
        """Return the bytes that the string stands for; see `parts`."""
        return b"".join(self.parts())

    def text(self) -> str:
        """Return the string; bytes that are not UTF-8 are lone surrogates."""
        return self.content().decode("utf-8", "surrogateescape")

    def base64(self, *, is_tolerant: bool = False) -> bytes | bytearray:
        """Decode the string as base64.

        If `is_tolerant`, white space and missing padding are accepted. Raises binascii.Error.
        """
        decoded = bytearray()
        left = b""
        length = 0
        for part in self.parts():
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
        # Whether padding may follow whole groups depends on Python's version.
        before = b"AAAA" if decoded else b""
        decoded += binascii.a2b_base64(before + left, strict_mode=True)[len(before) * 3 // 4 :]
        return decoded

    def beginning(self) -> str:
        """Return the begin of the string, for error messages."""
        first = next(self.parts(), b"")
        return first.decode("utf-8", "surrogateescape")[:1024]


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
        """The shape of the list, and where it can be cut."""
        return list_levels(self._body, self._start, self._end)

    def leaves(self) -> Iterator[list[Any]]:
        """Yield the elements that are no lists, in order; no list may be too deep."""
        start, opened = self._start, 0
        for stop, depth in [*self.levels.cuts, (self._end, 0)]:
            pause_if_due()
            value = self._parse(self._body, start, stop, b"[" * opened, b"]" * depth)
            yield _flat(value)
            start, opened = stop + 1, depth

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the elements of the list, each time several, with the index of the first one.

        Raises DeepListError for the first element that has lists too deep.
        """
        start, opened, index = self._start, b"", 0
        for stop, count in [*self.levels.row_cuts, (self._end, 0)]:
            pause_if_due()
            if stop == self._end and self.levels.is_too_deep:
                raise DeepListError(index, self.levels.depth)
            closed = b"" if stop == self._end else b"]"
            rows = self._parse(self._body, start, stop, opened, closed)
            yield index, rows
            start, opened, index = stop + 1, b"[", count

    def __repr__(self) -> str:
        """Return the begin of the list."""
        return repr(self.beginning())

    @property
    def size(self) -> int:
        """The number of elements; of a list that is too deep, up to the one which is."""
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


# What a list or a string of a body may be. Constants, because making a union takes 0.2 µs.
LISTS = (list, LargeList)
TEXTS = (str, LargeText)


def _flat(value: Any) -> list[Any]:
    """Return what is in lists inside each other, in order."""
    level = value
    while list in set(map(type, level)):
        level = list(
            itertools.chain.from_iterable(item if type(item) is list else (item,) for item in level)
        )
    flat: list[Any] = level
    return flat
