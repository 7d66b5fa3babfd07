"""Write JSON in the layout of RapidJSON's PrettyWriter, which TensorFlow Serving uses.

Each level is indented by four spaces. While `single_line_arrays` is true, the elements of a list
are written on one line. The option takes effect when an element or a bracket is written, not when
the list is opened. This is why TensorFlow Serving's `predictions` end with a bracket on a separate
line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from server.codec.large.large_values import LargeList, LargeText

INDENT = "    "
DEBUG_STRING_CHARACTERS = 256  # an error message is cut at the first token after this length
_MAX_PARTS = 1 << 14  # that are joined at once; to join millions would block other threads
_DEBUG_STRING_LIMIT = 512  # the hard limit, because one token may be as long as the body

_ESCAPES = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    ord('"'): '\\"', ord("\\"): "\\\\", 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r",
}  # fmt: skip


def quoted(text: str) -> str:
    """Return `text` as a JSON string, in which only the characters that require it are escaped."""
    return f'"{text.translate(_ESCAPES)}"'


class PrettyWriter:
    """Writes JSON token by token; `text()` returns the result."""

    def __init__(self, single_line_arrays: bool = False) -> None:
        self.single_line_arrays = single_line_arrays
        self.size = 0  # number of characters written so far
        self._parts: list[str] = []
        self._encoded: list[bytes] = []  # the text before `_parts`
        self._levels: list[list[Any]] = []  # [is a list, token count] per open container

    def text(self) -> str:
        """Return the text written so far."""
        return self.encoded().decode("utf-8", "surrogateescape")

    def encoded(self) -> bytes:
        """Return the text written so far; a lone surrogate gives back the byte it stands for."""
        self._encode_parts()
        return b"".join(self._encoded)

    def _encode_parts(self) -> None:
        self._encoded.append("".join(self._parts).encode("utf-8", "surrogateescape"))
        self._parts.clear()

    def start_array(self) -> None:
        """Open a list."""
        self._prefix()
        self._levels.append([True, 0])
        self._put("[")

    def end_array(self) -> None:
        """Close a list."""
        _, count = self._levels.pop()
        if count and not self.single_line_arrays:
            self._new_line()
        self._put("]")

    def start_object(self) -> None:
        """Open an object."""
        self._prefix()
        self._levels.append([False, 0])
        self._put("{")

    def end_object(self) -> None:
        """Close an object."""
        _, count = self._levels.pop()
        if count:
            self._new_line()
        self._put("}")

    def string(self, text: str) -> None:
        """Write a string value or the name of a member."""
        self.raw(quoted(text))

    def raw(self, text: str) -> None:
        """Write `text`, which must be a JSON value; if it is empty, write the separator only."""
        self._prefix()
        self._put(text)
        if len(self._parts) > _MAX_PARTS:
            self._encode_parts()

    def _prefix(self) -> None:
        """Write the separator between the previous token and the next one."""
        if not self._levels:
            return
        level = self._levels[-1]
        is_list, count = level
        if is_list:
            if count:
                self._put(", " if self.single_line_arrays else ",")
            if not self.single_line_arrays:
                self._new_line()
        elif count % 2:
            self._put(": ")
        else:
            if count:
                self._put(",")
            self._new_line()
        level[1] += 1

    def _new_line(self) -> None:
        self._put("\n" + INDENT * len(self._levels))

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self.size += len(text)


def debug_string(value: Any) -> str:
    """Write a parsed JSON value for an error message, cut after about 256 characters.

    The text may end in the middle of the value. It is then not valid JSON.
    """
    writer = PrettyWriter(single_line_arrays=True)
    for method, argument in _tokens(value):
        if writer.size >= DEBUG_STRING_CHARACTERS:
            break
        if argument is None:
            method(writer)
        else:
            method(writer, argument)
            if not argument:  # RapidJSON stops at NaN and infinities
                break
    text = writer.text()[:_DEBUG_STRING_LIMIT]
    # Bytes that are not UTF-8 were decoded to lone surrogates. They are replaced here, because it
    # must be possible to encode an error message as UTF-8.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _tokens(value: Any) -> Iterator[tuple[Any, str | None]]:
    """Yield the calls of PrettyWriter that write a value.

    There is no recursion, because values may be nested very deep.
    """
    stack: list[Iterator[tuple[Any, Any]]] = [iter([(None, value)])]
    ends: list[Any] = []
    while stack:
        for key, part in stack[-1]:
            item = part.beginning() if isinstance(part, LargeList | LargeText) else part
            if key is not None:
                yield PrettyWriter.raw, quoted(key)
            if isinstance(item, list):
                yield PrettyWriter.start_array, None
                ends.append(PrettyWriter.end_array)
                stack.append(iter([(None, element) for element in item]))
                break
            if isinstance(item, dict):
                yield PrettyWriter.start_object, None
                ends.append(PrettyWriter.end_object)
                stack.append(iter(item.items()))
                break
            yield PrettyWriter.raw, scalar_text(item)
        else:
            stack.pop()
            if ends:
                yield ends.pop(), None


_WORDS = {True: "true", False: "false", None: "null"}


def scalar_text(value: Any) -> str:
    """Write a JSON scalar; return an empty text for NaN and infinities."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, bool) or value is None:
        return _WORDS[value]
    return str(value)


def _double_text(value: float) -> str:
    """Write `value` with the fewest digits that read back the same, as RapidJSON does.

    An exponent is used only for the numbers for which RapidJSON uses one.
    """
    if not math.isfinite(value):
        return ""
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return sign + "0.0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)  # number of digits before the point
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return f"{sign}{digits}{'0' * (point - len(digits))}.0"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1}"
