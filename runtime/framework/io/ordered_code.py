"""Keys of a tensor's slices in a checkpoint's index, in an encoding that sorts as its parts do.

TF: tensorflow/core/lib/strings/ordered_code.h, util/saved_tensor_slice_util.cc
    (EncodeTensorNameSlice)
"""

from __future__ import annotations

from runtime.framework.io.tensor_slice import TensorSlice

_SLICE_KEY_TAG = 0  # comes before every name, so slices sort first
_ESCAPED = {0x00: b"\0\xff", 0xFF: b"\xff\0"}
_TERMINATOR = b"\0\1"


def slice_key(name: bytes, part: TensorSlice) -> bytes:
    """The key under which a slice of tensor `name` is stored."""
    key = _number(_SLICE_KEY_TAG) + _string(name) + _number(len(part.extents))
    for start, length in part.extents:
        key += _signed_number(start) + _signed_number(length)
    return key


def is_slice_key(key: bytes) -> bool:
    """Whether a key of the index is a slice's and no tensor's name."""
    return key.startswith(_number(_SLICE_KEY_TAG))


def _number(value: int) -> bytes:
    """The count of its bytes, then those bytes, the highest first."""
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(digits)]) + digits


def _string(value: bytes) -> bytes:
    """NUL and 0xff are escaped; the terminator sorts before every continuation."""
    return b"".join(_ESCAPED.get(byte, bytes([byte])) for byte in value) + _TERMINATOR


def _signed_number(value: int) -> bytes:
    """As many leading one bits as bytes (zero bits when negative), then the two's complement."""
    magnitude = ~value if value < 0 else value
    length = magnitude.bit_length() // 7 + 1
    width = 8 * length
    header = ((1 << width) - 1) ^ ((1 << (width - length)) - 1)
    return ((value & ((1 << width) - 1)) ^ header).to_bytes(length, "big")
