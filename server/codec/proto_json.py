"""Read protobuf messages from bytes and from their JSON form."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from runtime.errors import InvalidArgumentError
from server.codec.json_body import type_name

M = TypeVar("M", bound=Message)
_MAX_DEPTH = 50


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
        return json_format.ParseDict(value, kind(), max_recursion_depth=_MAX_DEPTH)
    except (
        json_format.ParseError,
        ValueError,
        TypeError,
        OverflowError,  # infinity for an integer
        RecursionError,
    ) as error:
        name = kind.DESCRIPTOR.name
        text = _unknown_field(value, key, kind.DESCRIPTOR) or error
        raise InvalidArgumentError(f"{key} is not a {name}: {text}") from None


def _unknown_field(value: Any, place: str, kind: Any, depth: int = 0) -> str:
    """Return a sentence about the first key that is no field of its message, or "" without one.

    `kind` is the descriptor of the message, whose type depends on protobuf's implementation.
    protobuf's own lists the fields as `timeoutInMs`, where the documents say `timeout_in_ms`.
    """
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return ""
    known = {name: field for field in kind.fields for name in (field.name, field.json_name)}
    for name, inner in value.items():
        if name not in known:
            fields = ", ".join(field.name for field in kind.fields) or "no field"
            return f"{place} has no field {name!r:.80}; {kind.name} has {fields}"
        field = known[name]
        for each, where in _messages(inner, f"{place}.{field.name}", field):
            found = _unknown_field(each, where, field.message_type, depth + 1)
            if found:
                return found
    return ""


def _messages(value: Any, place: str, field: FieldDescriptor) -> list[tuple[Any, str]]:
    """Return the values of a field that are objects of this project's messages, with their places.

    Those of protobuf, such as Any, have a JSON form of their own; maps are left out.
    """
    kind = field.message_type
    if kind is None or kind.file.package.startswith("google.") or kind.GetOptions().map_entry:
        return []
    if isinstance(value, list):
        return [(each, f"{place}[{index}]") for index, each in enumerate(value)]
    return [(value, place)]
