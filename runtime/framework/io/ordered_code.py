"""Keys of tensor slices in a checkpoint's index, in an encoding that preserves the sort order.

TF: tensorflow/core/lib/strings/ordered_code.h, util/saved_tensor_slice_util.cc
    (EncodeTensorNameSlice)
"""

from __future__ import annotations

from runtime.framework.io.tensor_slice import TensorSlice

_SLICE_KEY_TAG = 0  # its encoding sorts before every tensor name, so slices come first
_ESCAPED = {0x00: b"\0\xff", 0xFF: b"\xff\0"}
_TERMINATOR = b"\0\1"


def slice_key(name: bytes, part: TensorSlice) -> bytes:
    """The key under which a slice of tensor `name` is stored."""
    key = _number(_SLICE_KEY_TAG) + _string(name) + _number(len(part.extents))
    for start, length in part.extents:
        key += _signed_number(start) + _signed_number(length)
    return key


def is_slice_key(key: bytes) -> bool:
    """Whether a key of the index is that of a slice, not the name of a tensor."""
    return key.startswith(_number(_SLICE_KEY_TAG))


def _number(value: int) -> bytes:
    """The number of significant bytes, then those bytes, big-endian."""
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(digits)]) + digits


def _string(value: bytes) -> bytes:
    """The bytes with NUL and 0xff escaped, and a terminator that sorts before any other byte."""
    return b"".join(_ESCAPED.get(byte, bytes([byte])) for byte in value) + _TERMINATOR


def _signed_number(value: int) -> bytes:
    """The two's complement after a unary count of its bytes: one bits, or zero bits if negative."""
    magnitude = ~value if value < 0 else value
    length = magnitude.bit_length() // 7 + 1
    width = 8 * length
    header = ((1 << width) - 1) ^ ((1 << (width - length)) - 1)
    return ((value & ((1 << width) - 1)) ^ header).to_bytes(length, "big")
