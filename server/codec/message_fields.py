"""Read a field of a serialized message without parsing the message, whose tensors may be large.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from google.protobuf.message import DecodeError

import protos as pb

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_LONGEST_VARINT = 10  # bytes
_RUN_STEP_OPTIONS = pb.RunStepRequest.DESCRIPTOR.fields_by_name["options"].number
_MOST_FIELDS = 10_000  # of a message: 5 ms; event loops look at them


def bytes_fields(data: bytes | memoryview, number: int) -> Iterator[bytes]:
    """Yield each value of a field of strings, bytes or messages.

    Raises DecodeError if it is none, or the message has more than 10,000 fields.

    Of a string the last value holds; of a message all values together, one after the other.
    """
    at, end = 0, len(data)
    for count in itertools.count():
        if at >= end:
            return
        if count == _MOST_FIELDS:
            raise DecodeError(f"The message has more than {_MOST_FIELDS} fields")
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            size, at = _varint(data, at)
            if at + size > end:
                raise DecodeError("A field is longer than the message")
            if tag >> 3 == number:
                yield bytes(data[at : at + size])
            at += size
        elif kind == _VARINT:
            _, at = _varint(data, at)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            at += 8 if kind == _EIGHT_BYTES else 4
        else:
            raise DecodeError(f"A field has the wire type {kind}")


def timeout_of_run_step(data: bytes | memoryview) -> int:
    """Return the timeout in the options of a RunStepRequest in milliseconds; 0 if there is none."""
    try:
        options = pb.RunOptions.FromString(b"".join(bytes_fields(data, _RUN_STEP_OPTIONS)))
    except DecodeError:
        return 0
    return max(0, options.timeout_in_ms)


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise DecodeError("A number does not end")
