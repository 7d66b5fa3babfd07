"""Parse the JSON bodies of clients, with bare NaN and Infinity too, and write compact JSON."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson

from runtime.errors import InvalidArgumentError
from server.codec.json_parts import LARGE_BODY_BYTES, load_part
from server.codec.large.dialect import JsonFaultError
from server.codec.large.large_body import LargeBody
from server.codec.large.large_values import LargeList, LargeText
from server.codec.large.number_array import NumberArray
from server.codec.large.number_slices import PYTHON_WORDS
from server.codec.large.session_dialect import SESSION_JSON, parse_session_text, session_error
from server.codec.large.sliced_body import UnusualJson, read_sliced
from server.codec.large.slices import steps


def load_json(body: bytes) -> Any:
    """Parse a JSON text with orjson, without the collector if it is large.

    Raises orjson.JSONDecodeError.
    """
    return orjson.loads(body) if len(body) < LARGE_BODY_BYTES else load_part(body)


def parse_json(body: bytes) -> Any:
    """Parse a JSON text and return its value; return an empty object if `body` is empty.

    `NaN`, `Infinity` and `-Infinity` are read as numbers, as in TensorFlow Serving. Raises
    InvalidArgumentError with the position of the fault if `body` is not valid JSON.
    """
    if not body.strip():
        return {}
    try:
        return load_json(body)
    except orjson.JSONDecodeError:
        return _parse_unusual(body)


def parse_large_json(body: bytes, lazy: Collection[str]) -> Any:
    """Parse a large body as `parse_json` does, with LargeLists and LargeTexts below `lazy`.

    Raises InvalidArgumentError also if anything else in the body is large.
    """
    if not any(body[begin:stop].strip() for begin, stop in steps(0, len(body))):
        return {}
    return LargeBody(body, SESSION_JSON).value(lazy)


def _parse_unusual(body: bytes) -> Any:
    try:
        return parse_session_text(body)
    except JsonFaultError as fault:
        raise session_error(body, fault) from None


_UNUSUAL = UnusualJson(_parse_unusual, PYTHON_WORDS)


def parse_object(body: bytes, known: frozenset[str]) -> dict[str, Any]:
    """Parse a body that must be a JSON object with no other keys than those in `known`.

    Raises InvalidArgumentError if `body` is not such an object.
    """
    return _checked_object(parse_json(body), known)


def parse_sliced_object(body: bytes, known: frozenset[str], key: str) -> dict[str, Any] | None:
    """Parse a large body as `parse_object` does, with NumberArrays for large arrays in `key`.

    Returns None if the body has to be read with `parse_object`: it has no such
    array, or something else in it is large or may be faulty. Raises InvalidArgumentError for an
    unknown key.
    """
    sliced = read_sliced(body, (key,), _UNUSUAL)
    return None if sliced is None else _checked_object(sliced, known)


def parse_sliced_members(body: bytes, key: str, member: str) -> dict[str, Any] | None:
    """Parse a large object with NumberArrays for large arrays, whatever its keys are.

    They are the member `member` of the objects in the list `key`. Returns None if there is none, or
    the body has to be read with `parse_json`: something else in it is large or may be faulty.
    """
    return read_sliced(body, (key,), _UNUSUAL, member)


def parse_large_object(body: bytes, known: frozenset[str], key: str) -> dict[str, Any]:
    """Parse a large body as `parse_object` does, with LargeLists and LargeTexts below `key`.

    Raises InvalidArgumentError also if anything else in the body is large.
    """
    return _checked_object(parse_large_json(body, (key,)), known)


def _checked_object(value: Any, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidArgumentError(
            f"The body must be a JSON object, got {type_name(value)}; known keys are "
            f"{', '.join(sorted(known))}"
        )
    if not value.keys() <= known:
        unknown = ", ".join(sorted(value.keys() - known))
        raise InvalidArgumentError(
            f"Unknown keys: {unknown}; known keys are {', '.join(sorted(known))}"
        )
    return value


_TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number with a fraction",
    type(None): "null",
    LargeList: "a list",
    NumberArray: "a list",
    LargeText: "a string",
}


def type_name(value: object) -> str:
    """Return what error messages call the JSON kind of a parsed value, for example "a list"."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def to_json(value: Any) -> bytes:
    """Write a value as compact JSON; numpy arrays become nested lists.

    The arrays must be C-contiguous. NaN and infinities in them are written as null.
    """
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
