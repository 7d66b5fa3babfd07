"""Read a large JSON body whose large lists and strings stay in place until their type is known.

The lists and strings are found by the brackets and quotes around them (`structure`) and replaced by
short marks; what is left is a small text for an ordinary parser. Bodies of regular numbers are read
faster by `sliced_body`.

Guarantees: time is linear in the body; beside the body, memory is a few megabytes.
"""

from __future__ import annotations

import bisect
import dataclasses
import json
import secrets
from collections.abc import Callable, Collection
from typing import Any

import orjson

from runtime.errors import InvalidArgumentError
from server.codec.large.large_values import (
    MAX_SLICE_BYTES,
    LargeList,
    LargeText,
    line_and_column,
)
from server.codec.large.structure import Bounds, Strings, outermost_lists

MIN_LIST_BYTES = 1 << 14
MAX_REST_BYTES = 1 << 20  # parsed in one call: at most 20 ms
_WORDS = (b"NaN", b"Infinity")

# Parses a small text; raises JsonFaultError.
Parse = Callable[[bytes], Any]


class JsonFaultError(Exception):
    """A fault at `position` of a text; `message(position, line, column)` is for the client."""

    def __init__(self, position: int, message: Callable[[int, int, int], str]) -> None:
        super().__init__()
        self.position = position
        self.message = message


@dataclasses.dataclass(slots=True)
class _Replaced:
    """A part of a body, and where its mark ends in the rest."""

    bounds: Bounds
    end_in_rest: int = 0


class LargeBody:
    """A body that is too large to be parsed as a whole."""

    def __init__(self, body: bytes, parse: Parse, parse_rest: Parse | None = None) -> None:
        """Read `body` with `parse`, and what is outside its large values with `parse_rest`."""
        self._body = body
        self._parse = parse
        self._parse_rest = parse_rest or parse
        self._strings: list[Bounds] = []

    def members(self, lazy: Collection[str] | None = None) -> dict[str, Any]:
        """Return the members of the object that the body is.

        Below the members `lazy`, by default all, large lists are LargeLists and large strings are
        LargeTexts.

        Raises InvalidArgumentError for faults outside these, and if anything else in the body is
        large.
        """
        strings = Strings()
        lists = outermost_lists(self._body, 0, len(self._body), MIN_LIST_BYTES, strings)
        self._strings = strings.bounds
        value = self._read(0, len(self._body), b"", b"", lists, self._strings_outside(lists))
        if isinstance(value, dict) and lazy is not None:
            for key, member in value.items():
                if key not in lazy:
                    value[key] = self._whole(member)
        members: dict[str, Any] = value
        return members

    def parse_part(self, body: bytes, start: int, end: int, opened: bytes, closed: bytes) -> Any:
        """Parse a part of a list, between these texts; see ParsePart."""
        if end - start <= MAX_SLICE_BYTES:
            return self._parsed(opened + body[start:end] + closed, start - len(opened), [])
        strings = self._strings_within(start, end)
        if end - start - sum(stop - begin for begin, stop in strings) <= MAX_REST_BYTES:
            return self._read(start, end, opened, closed, [], strings)
        lists = outermost_lists(body, start, end, MIN_LIST_BYTES, Strings())
        if lists and lists[0][0] == start and not opened:  # the list itself cannot be cut
            raise InvalidArgumentError(
                f"An element of a list has {end - start} bytes; {MAX_REST_BYTES} are read"
            )
        return self._read(
            start, end, opened, closed, lists, self._strings_outside(lists, start, end)
        )

    def _parse_apart(self, start: int, end: int) -> list[Any]:
        """Return the elements of the list in these bounds, of which large ones stay in place."""
        lists = outermost_lists(self._body, start + 1, end - 1, MIN_LIST_BYTES, Strings())
        strings = self._strings_outside(lists, start + 1, end - 1)
        elements: list[Any] = self._read(start + 1, end - 1, b"[", b"]", lists, strings)
        return elements

    def _strings_within(self, start: int, end: int) -> list[Bounds]:
        first = bisect.bisect_left(self._strings, (start, 0))
        last = bisect.bisect_left(self._strings, (end, 0))
        return self._strings[first:last]

    def _strings_outside(
        self, lists: list[Bounds], start: int = 0, end: int | None = None
    ) -> list[Bounds]:
        strings = self._strings_within(start, len(self._body) if end is None else end)
        ends = [stop for _, stop in lists]
        outside = []
        for bounds in strings:
            place = bisect.bisect_right(ends, bounds[0])
            if place == len(lists) or bounds[0] < lists[place][0]:
                outside.append(bounds)
        return outside

    def _read(
        self,
        start: int,
        end: int,
        opened: bytes,
        closed: bytes,
        lists: list[Bounds],
        strings: list[Bounds],
    ) -> Any:
        """Parse a part of the body in which these lists and strings stay in place."""
        body = self._body
        mark = secrets.token_hex(16)  # no client can know it and write it in its body
        values: dict[str, LargeList | LargeText] = {}
        pieces, size, position = [opened], len(opened), start
        replaced: list[_Replaced] = []
        for bounds in sorted([*lists, *strings]):
            begin, stop = bounds
            name = f"{mark}:{len(values)}"
            is_list = body[begin : begin + 1] == b"[" and bounds in lists
            if is_list:
                values[name] = LargeList(body, begin, stop, self.parse_part, self._parse_apart)
            else:
                values[name] = LargeText(body, begin, stop)
            text = f'["{name}"]' if is_list else name
            pieces += [body[position:begin], text.encode()]
            size += begin - position + len(text)
            replaced.append(_Replaced(bounds, size))
            position = stop
        pieces += [body[position:end], closed]
        size += end - position
        if size > MAX_REST_BYTES:
            raise InvalidArgumentError(
                f"The body has {size} bytes beside its large lists and strings; "
                f"{MAX_REST_BYTES} are read"
            )
        value = self._parsed(b"".join(pieces), start - len(opened), replaced)
        places = _Places(values)
        filled = places.filled(value)
        if places.count != len(values):  # in the name of a member
            raise InvalidArgumentError("The name of a member is too long")
        return filled

    def _parsed(self, text: bytes, offset: int, replaced: list[_Replaced]) -> Any:
        """Parse a text that begins at `offset` in the body, with marks for what was replaced."""
        is_rest = not offset and bool(replaced)
        try:
            return self._parse_rest(text) if is_rest else self._parse(text)
        except JsonFaultError as fault:
            position = fault.position + offset
            for each in replaced:
                if each.end_in_rest <= fault.position:
                    position = fault.position - each.end_in_rest + each.bounds[1]
            position = min(max(position, 0), len(self._body))
            line, column = line_and_column(self._body, position)
            raise InvalidArgumentError(fault.message(position, line, column)) from None

    def _whole(self, value: Any) -> Any:
        """Return a value without LargeLists and LargeTexts."""
        if isinstance(value, dict):
            return {key: self._whole(item) for key, item in value.items()}
        if isinstance(value, LargeText):
            return value.content(is_tolerant=True).decode("utf-8", "surrogateescape")
        if isinstance(value, LargeList):
            if len(value) > MAX_REST_BYTES:
                raise InvalidArgumentError(
                    f"A list of {len(value)} bytes is not expected there; {MAX_REST_BYTES} are read"
                )
            return value.whole()
        return list(map(self._whole, value)) if isinstance(value, list) else value


class _Places:
    """Puts large values in the place of their marks; `count` is the number of those."""

    def __init__(self, values: dict[str, LargeList | LargeText]) -> None:
        self._values = values
        self.count = 0

    def filled(self, value: Any) -> Any:
        if not self._values:
            return value
        if isinstance(value, dict):
            for key, item in value.items():
                value[key] = self.filled(item)
            return value
        if isinstance(value, str):
            found = self._values.get(value)
            self.count += found is not None
            return value if found is None else found
        if not isinstance(value, list):
            return value
        if len(value) == 1 and isinstance(value[0], str):
            large = self._values.get(value[0])
            if isinstance(large, LargeList):
                self.count += 1
                return large
        value[:] = map(self.filled, value)
        return value


def parse_session_part(text: bytes) -> Any:
    """Parse a small JSON text, with bare NaN and Infinity too; raise JsonFaultError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        fault = error
    if any(word in text for word in _WORDS):
        try:
            return json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            if isinstance(error, json.JSONDecodeError):
                fault = error  # type: ignore[assignment] # orjson's is a subclass of it
    what = fault.msg
    raise JsonFaultError(
        _byte_position(text, fault.pos),
        lambda position, line, column: (
            f"The body is not valid JSON: {what}: line {line} column {column} (char {position})"
        ),
    )


def _byte_position(text: bytes, characters: int) -> int:
    """Return the position in bytes of a number of characters; they are equal in ASCII text."""
    if text.isascii():
        return characters
    return len(text.decode("utf-8", "replace")[:characters].encode())
