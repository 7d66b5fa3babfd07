"""The JSON of TensorFlow Serving's REST API, in parts of large bodies.

`tolerant_json` says what is accepted. It is slow, so orjson and Python's parser read what they can:
a part is spelled for orjson so that it refuses what `tolerant_json` refuses, and no less.
"""

from __future__ import annotations

import orjson

from runtime.errors import InvalidArgumentError
from server.codec.json_parts import load_part
from server.codec.large.dialect import BYTE_ORDER_MARK, JsonDialect, JsonFaultError
from server.codec.large.number_slices import RAPIDJSON_WORDS
from server.codec.large.session_dialect import parse_words
from server.codec.serving.tolerant_json import MAX_DEPTH, TOO_DEEP, parse_tolerant

_AT_OFFSET = " at offset: "
_PREFIX = "JSON Parse error: "
# Bytes of other characters than ASCII's, valid or not, as a letter: in strings all are accepted.
_ASCII = bytes(range(128)) + b"x" * 128


def check_serving_text(text: bytes) -> None:
    """Raise JsonFaultError for the first fault of a text."""
    try:
        load_part(_spelled(text))
    except orjson.JSONDecodeError:
        _parse_tolerant(text)


def parse_serving_text(text: bytes) -> object:
    """Return the first value of a text without faults."""
    try:
        return load_part(text)
    except orjson.JSONDecodeError:
        pass
    if any(word in text for word in RAPIDJSON_WORDS):
        try:
            return parse_words(text)
        except (ValueError, JsonFaultError):
            pass
    return _parse_tolerant(text)


def serving_error(body: bytes, fault: JsonFaultError) -> InvalidArgumentError:
    """Make the error of a fault; a byte order mark does not count."""
    skipped = len(BYTE_ORDER_MARK) if body.startswith(BYTE_ORDER_MARK) else 0
    return InvalidArgumentError(f"{_PREFIX}{fault.what}{_AT_OFFSET}{fault.position - skipped}")


def _spelled(text: bytes) -> bytes:
    if not text.isascii():
        text = text.translate(_ASCII)
    for word in RAPIDJSON_WORDS:
        text = text.replace(word, b" 0 ")
    return text


def _first_value(text: bytes) -> object:
    return _parse_tolerant(text, is_whole=False)


def _parse_tolerant(text: bytes, *, is_whole: bool = True) -> object:
    try:
        return parse_tolerant(text, is_whole=is_whole)
    except InvalidArgumentError as error:
        what, _, offset = error.message.removeprefix(_PREFIX).rpartition(_AT_OFFSET)
        raise JsonFaultError(int(offset), what) from None


SERVING_JSON = JsonDialect(
    check=check_serving_text,
    parse=parse_serving_text,
    scalar=_first_value,
    error=serving_error,
    max_depth=MAX_DEPTH,
    too_deep=TOO_DEEP,
    ends_after_value=True,
    is_utf8=False,
    skips_byte_order_mark=True,
)
