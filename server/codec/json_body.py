"""JSON bodies: parse those of clients, bare NaN and Infinity included; write compact ones."""

from __future__ import annotations

import json
from typing import Any

import orjson

from runtime.errors import InvalidArgumentError


def parse_json(body: bytes) -> Any:
    """The value of a JSON text; an empty body is an empty object.

    `NaN`, `Infinity` and `-Infinity` are read as numbers, as in TensorFlow Serving. Raises
    InvalidArgumentError with the position of the fault.
    """
    if not body.strip():
        return {}
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if b"NaN" not in body and b"Infinity" not in body:
            raise InvalidArgumentError(f"The body is not valid JSON: {error}") from None
    try:
        return json.loads(body)  # slower, but accepts the bare tokens
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"The body is not valid JSON: {error}") from None


def parse_object(body: bytes, known: frozenset[str]) -> dict[str, Any]:
    """The JSON object of a body whose keys must all be in `known`."""
    value = parse_json(body)
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
}


def type_name(value: object) -> str:
    """JSON's name for the kind of a parsed value, for error messages."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def to_json(value: Any) -> bytes:
    """Compact JSON; numpy arrays that are C-contiguous and finite are written as nested lists."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
