"""Write the responses of steps whose tensors are large, slice by slice.

A protobuf message owns its bytes, so a large tensor would be copied three times: into a bytes
object, into the message, and into the serialized form, each time with the interpreter held. Here
the parts of the serialized form are written one after the other and joined once; the join releases
the interpreter lock, because all parts are `bytes`.

TF: tensorflow/core/protobuf/master.proto; protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import protos as pb
from server.codec.large.slices import steps

LARGE_BYTES = 1 << 20  # a smaller tensor is copied in less time than writing its parts takes
_LENGTH_DELIMITED = 2  # the wire type of bytes, strings and messages
_ONE_BYTE = 0x80
_SHORT_VARINTS = [bytes((value,)) for value in range(_ONE_BYTE)]
Part = bytes


def is_large(value: object) -> bool:
    """Return whether a value is an array of numbers with at least LARGE_BYTES bytes."""
    return isinstance(value, np.ndarray) and value.dtype != object and value.nbytes >= LARGE_BYTES


def message_field(number: int, parts: Sequence[Part]) -> list[Part]:
    """Return the parts of a field of bytes or of a message, whose content is `parts`."""
    length = sum(map(len, parts))
    return [_varint(number << 3 | _LENGTH_DELIMITED) + _varint(length), *parts]


def tensor_parts(empty: pb.TensorProto, array: np.ndarray) -> list[Part]:
    """Return the parts of a serialized TensorProto with the content of `array`.

    `empty` has the element type and the shape, and no content.
    """
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    number = pb.TensorProto.DESCRIPTOR.fields_by_name["tensor_content"].number
    pieces = [content[begin:end].tobytes() for begin, end in steps(0, len(content))]
    return [empty.SerializeToString(), *message_field(number, pieces)]


def _varint(value: int) -> bytes:
    if value < _ONE_BYTE:
        return _SHORT_VARINTS[value]
    written = bytearray()
    while value >= _ONE_BYTE:
        written.append(value & (_ONE_BYTE - 1) | _ONE_BYTE)
        value >>= 7
    written.append(value)
    return bytes(written)
