"""Parse JSON as TensorFlow Serving does, for bodies that a strict parser refuses.

The parser accepts the tokens NaN, Inf and Infinity (signed too), any content after the first value,
nesting up to `MAX_DEPTH` levels, and strings that are not UTF-8. Such strings are kept as lone
surrogates, so `encode(errors="surrogateescape")` restores the bytes. Of equal keys the last one
holds, as in the bodies that orjson reads (in RapidJSON the first one does). Every other fault is
reported with RapidJSON's text and byte offset, because clients may compare them.

Guarantees: no recursion, so no depth overflows the stack; time is linear in the body.
"""

from __future__ import annotations

import math
import re
from typing import Any

from runtime.errors import InvalidArgumentError

MAX_DEPTH = 1_000_000  # levels of lists and objects inside each other
MAX_UINT64 = (1 << 64) - 1  # a larger integer is read as a float, as RapidJSON does

_SPACE = re.compile(r"[ \t\r\n]*")
# Matches a complete number. `_number` raises if the fraction or the exponent has no digits.
_NUMBER = re.compile(
    r"-?(?:(?P<special>NaN|Inf(?:inity|(?!i)))|(?P<whole>0|[1-9][0-9]*)"
    r"(?P<fraction>\.[0-9]*)?(?P<exponent>[eE][+-]?[0-9]*)?)"
)
_STRING = re.compile(r'[^"\\\x00-\x1f]*')
_LITERALS = (("true", True), ("false", False), ("null", None))
_NON_FINITE = ("NaN", "Infinity")
_ESCAPES = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")

TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_EMPTY = "The document is empty."
_NOT_ALONE = "The document root must not be followed by other values."
_BAD_VALUE = "Invalid value."
_NO_NAME = "Missing a name for object member."
_NO_COLON = "Missing a colon after a name of object member."
_NO_COMMA_IN_OBJECT = "Missing a comma or } after an object member."
_NO_COMMA_IN_ARRAY = "Missing a comma or ] after an array element."
_NO_FRACTION = "Miss fraction part in number."
_NO_EXPONENT = "Miss exponent in number."
_TOO_BIG = "Number too big to be stored in double."
_NO_QUOTE = "Missing a closing quotation mark in string."
_BAD_CHARACTER = "Invalid encoding in string."
_BAD_ESCAPE = "Invalid escape character in string."
_BAD_HEX = "Incorrect hex digit after \\u escape in string."
_BAD_SURROGATE = "The surrogate pair in string is invalid."


def parse_tolerant(body: bytes, *, is_whole: bool = False) -> Any:
    """Parse the first JSON value in `body`; if `is_whole`, nothing may follow it.

    Raises InvalidArgumentError `JSON Parse error: <what> at offset: <byte>`.
    """
    reader = _Reader(body)
    value = reader.read()
    if is_whole:
        reader.expect_end()
    return value


class _Reader:
    """Parses one body; `_position` is the index of the next character to read."""

    def __init__(self, body: bytes) -> None:
        if body.startswith(b"\xef\xbb\xbf"):  # skip the byte order mark
            body = body[3:]
        self._text = body.decode("utf-8", "surrogateescape")
        self._position = 0

    def read(self) -> Any:
        """Read values until the outermost one is complete, and return it."""
        stack: list[tuple[Any, str | None]] = []  # open containers, each with its key in its parent
        container: list[Any] | dict[str, Any] | None = None
        key: str | None = None
        self._skip_space()
        if self._position == len(self._text):
            raise self._error(_EMPTY)
        while True:
            opener = self._peek()
            if opener in ("[", "{"):
                self._position += 1
                if len(stack) >= MAX_DEPTH:
                    raise self._error(TOO_DEEP)
                value: Any = [] if opener == "[" else {}
                if not self._closes(value):
                    stack.append((container, key))
                    container, key = value, self._key_in(value)
                    continue
            else:
                value = self._scalar(opener)
            # A value is complete: store it, and close the containers that it completes.
            while True:
                if container is None:
                    return value
                if isinstance(container, list):
                    container.append(value)
                elif key is not None:
                    container[key] = value  # of equal keys the last one is kept
                if not self._ends(container):
                    key = self._key_in(container)
                    break
                value = container
                container, key = stack.pop()

    def expect_end(self) -> None:
        """Raise an error unless only white space is left."""
        self._skip_space()
        if self._position < len(self._text):
            raise self._error(_NOT_ALONE)

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self._position)
        if match:
            self._position = match.end()

    def _closes(self, value: list[Any] | dict[str, Any]) -> bool:
        """Return whether the container that was just opened is empty; if so, read its end."""
        self._skip_space()
        if self._peek() != ("]" if isinstance(value, list) else "}"):
            return False
        self._position += 1
        return True

    def _ends(self, container: list[Any] | dict[str, Any]) -> bool:
        """Read what follows an element; return False for a comma, True for the container's end."""
        self._skip_space()
        is_list = isinstance(container, list)
        mark = self._peek()
        if mark == ",":
            self._position += 1
            self._skip_space()
            return False
        if mark != ("]" if is_list else "}"):
            raise self._error(_NO_COMMA_IN_ARRAY if is_list else _NO_COMMA_IN_OBJECT)
        self._position += 1
        return True

    def _key_in(self, container: list[Any] | dict[str, Any]) -> str | None:
        """Read the name before the next member of an object; return None in a list."""
        if isinstance(container, list):
            return None
        if self._peek() != '"':
            raise self._error(_NO_NAME)
        key = self._string()
        self._skip_space()
        if self._peek() != ":":
            raise self._error(_NO_COLON)
        self._position += 1
        self._skip_space()
        return key

    def _scalar(self, first: str) -> Any:
        if first == '"':
            return self._string()
        match = _NUMBER.match(self._text, self._position)
        if match:
            return self._number(match)
        for word, value in _LITERALS:
            if self._text.startswith(word, self._position):
                self._position += len(word)
                return value
        words: tuple[str, ...] = (*(word for word, _ in _LITERALS), *_NON_FINITE)
        if first == "-":
            self._position += 1
            words = _NON_FINITE
        self._skip_common_prefix(words)
        raise self._error(_BAD_VALUE)

    def _skip_common_prefix(self, words: tuple[str, ...]) -> None:
        """Advance to the first character that matches no word; RapidJSON reports this position."""
        first = self._peek()
        word = next((word for word in words if first and word.startswith(first)), "")
        for expected in word:
            if self._peek() != expected:
                return
            self._position += 1

    def _number(self, match: re.Match[str]) -> float | int:
        text = match.group()
        if match["special"]:
            self._position = match.end()
            return float(text)
        if match["fraction"] == ".":
            self._position = match.end("fraction")
            raise self._error(_NO_FRACTION)
        exponent = match["exponent"]
        if exponent and not exponent[-1].isdigit():
            self._position = match.end("exponent")
            raise self._error(_NO_EXPONENT)
        if exponent or match["fraction"] or len(text) > 20:  # a uint64 has at most 20 digits
            value: float | int = float(text)
        else:
            value = int(text)
            if not -(1 << 63) <= value <= MAX_UINT64:
                value = float(text)
        if isinstance(value, float) and math.isinf(value):
            raise self._error(_TOO_BIG)
        self._position = match.end()
        return value

    def _string(self) -> str:
        self._position += 1
        parts: list[str] = []
        while True:
            match = _STRING.match(self._text, self._position)
            if match:
                parts.append(match.group())
                self._position = match.end()
            mark = self._peek()
            if mark == '"':
                self._position += 1
                return "".join(parts)
            if mark == "\\":
                parts.append(self._escape())
            elif mark in ("", "\x00"):
                raise self._error(_NO_QUOTE)
            else:
                raise self._error(_BAD_CHARACTER)

    def _escape(self) -> str:
        start = self._position
        letter = self._text[start + 1 : start + 2]
        if letter in _ESCAPES:
            self._position = start + 2
            return _ESCAPES[letter]
        if letter != "u":
            raise self._error(_BAD_ESCAPE)
        code = self._hex4(start)
        if 0xDC00 <= code <= 0xDFFF:
            raise self._error(_BAD_SURROGATE, start)
        if 0xD800 <= code <= 0xDBFF:
            if not self._text.startswith("\\u", self._position):
                raise self._error(_BAD_SURROGATE, start)
            low = self._hex4(start)
            if not 0xDC00 <= low <= 0xDFFF:
                raise self._error(_BAD_SURROGATE, start)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        return chr(code)

    def _hex4(self, escape_start: int) -> int:
        """Read the `\\uXXXX` at the current position, and return its number."""
        match = _HEX4.match(self._text, self._position + 2)
        if match is None:
            raise self._error(_BAD_HEX, escape_start)
        self._position = match.end()
        return int(match.group(), 16)

    def _offset(self, position: int | None = None) -> int:
        """Return the byte offset of a character position."""
        end = self._position if position is None else position
        return len(self._text[:end].encode("utf-8", "surrogateescape"))

    def _error(self, what: str, position: int | None = None) -> InvalidArgumentError:
        return InvalidArgumentError(f"JSON Parse error: {what} at offset: {self._offset(position)}")
