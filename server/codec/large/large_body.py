"""Read a large JSON body whose large lists and strings stay in place until their type is known.

The body is checked first (`first_fault`), so that nothing later meets a fault. The lists and
strings are found by the brackets and quotes around them (`structure`) and replaced by short marks;
what is left is a small text for an ordinary parser. Bodies of regular numbers are read faster by
`sliced_body`.

Guarantees: the value and the fault are those of the parser of small bodies, but for the limits of
what is neither a large list nor a large string; time is linear in the body; beside the body, memory
is a few megabytes.
"""

from __future__ import annotations

import bisect
import secrets
from collections.abc import Collection
from typing import Any

from runtime.errors import InvalidArgumentError
from server.codec.large.dialect import JsonDialect
from server.codec.large.first_fault import scalar_text, value_bounds
from server.codec.large.large_values import MAX_SLICE_BYTES, LargeList, LargeText
from server.codec.large.structure import Bounds, Strings, outermost_lists

MIN_LIST_BYTES = 1 << 14
MAX_REST_BYTES = 1 << 20  # parsed in one call: at most 20 ms


class LargeBody:
    """A body that is too large to be parsed as a whole."""

    def __init__(self, body: bytes, dialect: JsonDialect) -> None:
        self._body = body
        self._parse = dialect.parse
        self._dialect = dialect
        self._strings: list[Bounds] = []

    def value(self, lazy: Collection[str] | None = None) -> Any:
        """Return the value of the body.

        Below the members `lazy` of the object that it is, by default all, large lists are
        LargeLists and large strings are LargeTexts.

        Raises InvalidArgumentError if the body is not valid JSON, and if anything else in it is
        large.
        """
        start, end = value_bounds(self._body, self._dialect)
        if end is None:
            return self._dialect.scalar(scalar_text(self._body, start))
        strings = Strings()
        lists = outermost_lists(self._body, start, end, MIN_LIST_BYTES, strings)
        self._strings = strings.bounds
        value = self._read(start, end, b"", b"", lists, self._strings_outside(lists))
        if isinstance(value, dict) and lazy is not None:
            for key, member in value.items():
                if key not in lazy:
                    value[key] = self._whole(member)
        return value

    def parse_part(self, body: bytes, start: int, end: int, opened: bytes, closed: bytes) -> Any:
        """Parse a part of a list, between these texts; see ParsePart."""
        if end - start <= MAX_SLICE_BYTES:
            return self._parse(opened + body[start:end] + closed)
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
        for bounds in sorted([*lists, *strings]):
            begin, stop = bounds
            name = f"{mark}:{len(values)}"
            is_list = body[begin : begin + 1] == b"[" and bounds in lists
            if is_list:
                values[name] = LargeList(body, begin, stop, self.parse_part, self._parse_apart)
            else:
                values[name] = LargeText(body, begin, stop, self._parse)
            text = f'["{name}"]' if is_list else name
            pieces += [body[position:begin], text.encode()]
            size += begin - position + len(text)
            position = stop
        pieces += [body[position:end], closed]
        size += end - position
        if size > MAX_REST_BYTES:
            raise InvalidArgumentError(
                f"The body has {size} bytes beside its large lists and strings; "
                f"{MAX_REST_BYTES} are read"
            )
        return _filled(self._parse(b"".join(pieces)), values)

    def _whole(self, value: Any) -> Any:
        """Return a value without LargeLists and LargeTexts."""
        if isinstance(value, dict):
            return {key: self._whole(item) for key, item in value.items()}
        if isinstance(value, LargeText):
            return value.text()
        if isinstance(value, LargeList):
            if len(value) > MAX_REST_BYTES:
                raise InvalidArgumentError(
                    f"A list of {len(value)} bytes is not expected there; {MAX_REST_BYTES} are read"
                )
            return value.whole()
        return list(map(self._whole, value)) if isinstance(value, list) else value


def _filled(value: Any, large: dict[str, LargeList | LargeText]) -> Any:
    """Return `value` with large values in the place of their marks."""
    if not large:
        return value
    if isinstance(value, dict):
        if not large.keys().isdisjoint(value):  # names of members that are long strings
            value = {_name(key, large): item for key, item in value.items()}
        for key, item in value.items():
            value[key] = _filled(item, large)
        return value
    if isinstance(value, str):
        return large.get(value, value)
    if not isinstance(value, list):
        return value
    if len(value) == 1 and isinstance(value[0], str):
        found = large.get(value[0])
        if isinstance(found, LargeList):
            return found
    value[:] = [_filled(item, large) for item in value]
    return value


def _name(key: str, large: dict[str, LargeList | LargeText]) -> str:
    found = large.get(key)
    return found.text() if isinstance(found, LargeText) else key
