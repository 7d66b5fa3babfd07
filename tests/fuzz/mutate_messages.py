"""Mutations of protobuf messages of any type by their descriptors, and smaller forms of them.

Pure: the same random numbers give the same mutations.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.fuzz.mutate_bytes import mutated_bytes

INTEGERS = (
    *(0, 1, -1, 2, 3, 5, 7, 16, 100, 127, 128, 255, 1000, 1 << 16, 1 << 20, (1 << 31) - 1),
    *(-(1 << 31), 1 << 31, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1),
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.0, -1.5, 1e-40, 1e30, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "",
    "x",
    "x:0",
    ":",
    "^x",
    "a/b",
    "\0",
    "é",
    "\N{PILE OF POO}",
    "x" * 5000,
    "-1",
    "%s",
    "..",
)
_SIGNED = {
    *(FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SFIXED32),
    *(FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_SINT64, FieldDescriptor.TYPE_SFIXED64),
}  # fmt: skip
_UNSIGNED = {
    *(FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32),
    *(FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64),
}
_IN_32_BITS = {
    *(FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SFIXED32),
    *(FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32),
}
_FLOATING = {FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE}


def mutate_message(
    message: Message, random_state: random.Random, donors: Sequence[Message] = ()
) -> None:
    """Change one field of a message, or of a message in it.

    `donors` are messages of the same type: the field may get what it is there.
    """
    if donors and random_state.random() < 0.15:
        _take_field(message, random_state.choice(donors), random_state)
        return
    chosen = random_state.choice(list(_messages(message)))
    # Fields that are set are of more interest than those that nobody has set.
    is_set = [field for field, _ in chosen.ListFields()]
    fields = is_set if is_set and random_state.random() < 0.75 else chosen.DESCRIPTOR.fields
    if fields:
        _mutate_field(chosen, random_state.choice(list(fields)), random_state)


def smaller_messages(message: Message) -> Iterator[Message]:
    """Yield copies of a message that lack one field, or one element of a repeated field."""
    paths = list(_removals(message, ()))
    for path in paths:
        copied = type(message)()
        copied.CopyFrom(message)
        _remove(copied, path)
        yield copied


def _messages(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if _is_map(field):
            if _is_message(_value_field(field)):
                for key in sorted(value):
                    yield from _messages(value[key])
        elif _is_message(field):
            for each in value if field.is_repeated else (value,):
                yield from _messages(each)


def _is_map(field: FieldDescriptor) -> bool:
    return _is_message(field) and field.message_type.GetOptions().map_entry


def _is_message(field: FieldDescriptor) -> bool:
    return field.type in (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP)


def _value_field(field: FieldDescriptor) -> FieldDescriptor:
    return field.message_type.fields_by_name["value"]


def _mutate_field(message: Message, field: FieldDescriptor, random_state: random.Random) -> None:
    if random_state.random() < 0.1:
        message.ClearField(field.name)
    elif _is_map(field):
        _mutate_map(message, field, random_state)
    elif field.is_repeated:
        _mutate_list(message, field, random_state)
    elif _is_message(field):
        getattr(message, field.name).SetInParent()
    else:
        given = getattr(message, field.name)
        setattr(message, field.name, _scalar(field, given, random_state))


def _mutate_map(message: Message, field: FieldDescriptor, random_state: random.Random) -> None:
    entries = getattr(message, field.name)
    keys = sorted(entries)
    new = _scalar(field.message_type.fields_by_name["key"], keys[0] if keys else "", random_state)
    value_field = _value_field(field)
    if keys and random_state.random() < 0.3:
        del entries[random_state.choice(keys)]
    elif _is_message(value_field):
        if keys:
            value = type(entries[keys[0]])()
            value.CopyFrom(entries[random_state.choice(keys)])
            entries[new].CopyFrom(value)
        else:
            entries[new].SetInParent()
    else:
        given = entries[random_state.choice(keys)] if keys else value_field.default_value
        entries[new] = _scalar(value_field, given, random_state)


def _mutate_list(message: Message, field: FieldDescriptor, random_state: random.Random) -> None:
    items = getattr(message, field.name)
    kind = random_state.randrange(4)
    at = random_state.randrange(len(items)) if items else 0
    if kind == 0 and items:
        del items[at]
    elif kind == 1 and items:
        times = random_state.choice((1, 1, 2, 20))
        if _is_message(field):
            for _ in range(times):
                items.add().CopyFrom(items[at])
        else:
            items.extend([items[at]] * times)
    elif _is_message(field):
        items.add()
    elif kind == 2 and items:
        items[at] = _scalar(field, items[at], random_state)
    else:
        items.append(_scalar(field, field.default_value or _zero(field), random_state))


def _zero(field: FieldDescriptor) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return ""
    return b"" if field.type == FieldDescriptor.TYPE_BYTES else 0


def _scalar(field: FieldDescriptor, given: Any, random_state: random.Random) -> Any:
    if field.type in _SIGNED or field.type in _UNSIGNED:
        width = 32 if field.type in _IN_32_BITS else 64
        number = random_state.choice((*INTEGERS, int(given) + 1, int(given) - 1, int(given) * 2))
        least = -(1 << width - 1) if field.type in _SIGNED else 0
        return max(least, min(number, least + (1 << width) - 1))
    if field.type in _FLOATING:
        return random_state.choice(FLOATS)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return not given
    if field.type == FieldDescriptor.TYPE_ENUM:
        known = [value.number for value in field.enum_type.values]
        return random_state.choice((*known, 7777, -1))
    if field.type == FieldDescriptor.TYPE_STRING:
        if given and random_state.random() < 0.5:
            return mutated_bytes(given.encode(), random_state).decode(errors="ignore")
        return random_state.choice(TEXTS)
    return mutated_bytes(bytes(given), random_state)


def _take_field(message: Message, donor: Message, random_state: random.Random) -> None:
    fields = [field for field, _ in donor.ListFields()]
    if not fields:
        return
    field = random_state.choice(fields)
    part = type(message)()
    part.CopyFrom(donor)
    for other in fields:
        if other is not field:
            part.ClearField(other.name)
    if not field.is_repeated or random_state.random() < 0.5:
        message.ClearField(field.name)
    message.MergeFrom(part)


# --- smaller forms ----------------------------------------------------------------------------

_Path = tuple[tuple[str, Any], ...]  # names of fields, each with an index or key, or None


def _removals(message: Message, path: _Path) -> Iterator[_Path]:
    """Yield the paths of everything that can be removed, large parts first."""
    fields = message.ListFields()
    for field, value in fields:
        yield (*path, (field.name, None))
        if _is_map(field):
            yield from ((*path, (field.name, key)) for key in sorted(value))
        elif field.is_repeated:
            yield from ((*path, (field.name, at)) for at in reversed(range(len(value))))
    for field, value in fields:
        if not _is_message(field):
            continue
        if _is_map(field):
            if _is_message(_value_field(field)):
                for key in sorted(value):
                    yield from _removals(value[key], (*path, (field.name, key)))
        elif field.is_repeated:
            for at, each in enumerate(value):
                yield from _removals(each, (*path, (field.name, at)))
        else:
            yield from _removals(value, (*path, (field.name, None)))


def _remove(message: Any, path: _Path) -> None:
    for name, key in path[:-1]:
        message = getattr(message, name) if key is None else getattr(message, name)[key]
    name, key = path[-1]
    if key is None:
        message.ClearField(name)
    else:
        del getattr(message, name)[key]
