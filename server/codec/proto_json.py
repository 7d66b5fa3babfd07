"""Read protobuf messages from bytes and from their JSON form."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from runtime.errors import InvalidArgumentError
from server.codec.json_body import type_name

M = TypeVar("M", bound=Message)


def read_proto(content: bytes, kind: type[M]) -> M:
    """Parse a message; raise InvalidArgumentError if the bytes are not a serialized `kind`."""
    message = kind()
    try:
        message.ParseFromString(content)
    except DecodeError as error:
        name = kind.DESCRIPTOR.name
        raise InvalidArgumentError(f"The bytes are not a serialized {name}: {error}") from None
    return message


def read_json_proto(value: Any, key: str, kind: type[M]) -> M:
    """Parse the JSON form of a `kind`; `key` names the value in error messages.

    Raises InvalidArgumentError if `value` is not an object or has a field that `kind` does not
    have.
    """
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{key} must be an object, got {type_name(value)}")
    try:
        return json_format.ParseDict(value, kind(), max_recursion_depth=50)
    except (
        json_format.ParseError,
        ValueError,
        TypeError,
        OverflowError,  # infinity for an integer
        RecursionError,
    ) as error:
        name = kind.DESCRIPTOR.name
        raise InvalidArgumentError(f"{key} is not a {name}: {error}") from None
