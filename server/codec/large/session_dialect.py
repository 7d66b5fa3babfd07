"""The JSON of all bodies but TensorFlow Serving's: strict, but for bare NaN and Infinity.

orjson decides what is valid and what a fault is called. It knows no NaN, so numbers stand in its
place for the check, and Python's parser gives the values.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from runtime.errors import InvalidArgumentError
from server.codec.json_parts import load_part
from server.codec.large.dialect import JsonDialect, JsonFaultError
from server.codec.large.slices import count, count_characters, rfind

MAX_DEPTH = 1024  # of orjson
_MAX_UINT64, _MIN_INT64 = (1 << 64) - 1, -(1 << 63)
_TOO_DEEP = "depth limit exceeded"
_NO_MEMORY = "failed to allocate memory"
# A number as long as each word, between spaces: what a word stuck to is refused.
_STAND_INS = tuple((word, b" 0".ljust(len(word))) for word in (b"-Infinity", b"Infinity", b"NaN"))


def check_session_text(text: bytes) -> None:
    """Raise JsonFaultError for the first fault of a text."""
    try:
        load_part(text)
        return
    except orjson.JSONDecodeError as error:
        fault = error
    spelled = text
    for word, number in _STAND_INS:
        spelled = spelled.replace(word, number)
    if spelled != text:
        try:
            load_part(spelled)
            return
        except orjson.JSONDecodeError as error:
            fault = error
    if fault.msg == _NO_MEMORY:
        # orjson estimates its memory from the size of the text, too low for many open brackets.
        try:
            load_part(spelled + b" " * (64 * MAX_DEPTH + 16 * len(spelled)))
            return
        except orjson.JSONDecodeError as error:
            fault = error
    position = min(_byte_position(spelled, fault.pos), len(text))
    if spelled[position : position + 1] != text[position : position + 1]:
        position -= 1  # the space before a stand-in is where the word begins
    raise JsonFaultError(position, fault.msg)


def parse_session_text(text: bytes) -> Any:
    """Return the value of a text; raise JsonFaultError for its first fault."""
    try:
        return load_part(text)
    except orjson.JSONDecodeError:
        check_session_text(text)
    return parse_words(text)


def parse_words(text: bytes) -> Any:
    """Parse a text that is valid but for bare NaN, Infinity and -Infinity."""
    try:
        return json.loads(text.decode(), parse_int=_integer)
    except RecursionError:  # Python's parser may go less deep, depending on its caller
        raise JsonFaultError(0, _TOO_DEEP) from None


def _integer(text: str) -> int | float:
    """Return an integer of 64 bits, or a float as orjson does."""
    if len(text) > 20:  # a uint64 has at most 20 digits
        return float(text)
    value = int(text)
    return value if _MIN_INT64 <= value <= _MAX_UINT64 else float(text)


def session_error(body: bytes, fault: JsonFaultError) -> InvalidArgumentError:
    """Make the error of a fault, with its place in characters."""
    position = fault.position
    last = rfind(body, b"\n", 0, position)
    place = count_characters(body, 0, position)
    line = count(body, b"\n", 0, position) + 1
    column = count_characters(body, last + 1, position) + 1
    return InvalidArgumentError(
        f"The body is not valid JSON: {fault.what}: line {line} column {column} (char {place})"
    )


def _byte_position(text: bytes, characters: int) -> int:
    """Return the position in bytes of a number of characters; they are equal in ASCII text."""
    if text.isascii():
        return characters
    return len(text.decode("utf-8", "replace")[:characters].encode())


SESSION_JSON = JsonDialect(
    check=check_session_text,
    parse=parse_session_text,
    scalar=parse_session_text,
    error=session_error,
    max_depth=MAX_DEPTH,
    too_deep=_TOO_DEEP,
    ends_after_value=False,
    is_utf8=True,
    skips_byte_order_mark=False,
)
