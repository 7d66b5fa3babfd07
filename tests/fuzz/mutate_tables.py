"""Mutations of sorted string tables: their entries, with right checksums, or their bytes.

Pure: the same random numbers give the same mutations.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from google.protobuf.message import DecodeError, Message

from runtime.framework.io.sstable import read_table, write_table
from tests.fuzz.mutate_bytes import mutated_bytes
from tests.fuzz.mutate_messages import mutate_message

_AS_BYTES = 0.25  # of the tables: most are refused because of a checksum
_VALUE_AS_BYTES = 0.2  # of the entries


def mutated_table(
    data: bytes, random_state: random.Random, kind: Callable[[bytes], type[Message]]
) -> bytes:
    """Return a table after some changes; `kind` is the class of the message of a key."""
    if random_state.random() < _AS_BYTES:
        return mutated_bytes(data, random_state)
    entries = dict(read_table(data))
    for _ in range(random_state.choice((1, 1, 2, 3))):
        key = random_state.choice(sorted(entries))
        change = random_state.randrange(10)
        if change == 0:
            del entries[key]
        elif change == 1:
            entries[mutated_bytes(key, random_state)] = entries[key]
        elif change == 2:
            entries[key] = entries[random_state.choice(sorted(entries))]
        else:
            entries[key] = _mutated_value(entries, key, random_state, kind(key))
        if not entries:
            break
    return write_table(sorted(entries.items()))


def _mutated_value(
    entries: Mapping[bytes, bytes], key: bytes, random_state: random.Random, kind: type[Message]
) -> bytes:
    if random_state.random() < _VALUE_AS_BYTES:
        return mutated_bytes(entries[key], random_state)
    try:
        message = kind.FromString(entries[key])
    except DecodeError:
        return mutated_bytes(entries[key], random_state)
    mutate_message(message, random_state)
    return message.SerializePartialToString()
