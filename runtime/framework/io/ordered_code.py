"""Encode the keys under which a checkpoint's index stores tensor slices.

The encoding preserves the sort order of names and numbers.

TF: tensorflow/core/lib/strings/ordered_code.h, util/saved_tensor_slice_util.cc
    (EncodeTensorNameSlice)
"""

from __future__ import annotations

from runtime.framework.io.tensor_slice import TensorSlice

# the encoded tag sorts before every tensor name, so slices come first in the index
_SLICE_KEY_TAG = 0
_ESCAPED = {0x00: b"\0\xff", 0xFF: b"\xff\0"}
_TERMINATOR = b"\0\1"


def slice_key(name: bytes, part: TensorSlice) -> bytes:
    """Return the key under which a checkpoint's index stores the slice `part` of tensor `name`."""
    key = _number(_SLICE_KEY_TAG) + _string(name) + _number(len(part.extents))
    for start, length in part.extents:
        key += _signed_number(start) + _signed_number(length)
    return key


def is_slice_key(key: bytes) -> bool:
    """Return whether `key` belongs to a slice; otherwise it is the name of a tensor."""
    return key.startswith(_number(_SLICE_KEY_TAG))


def _number(value: int) -> bytes:
    """Encode a non-negative number as a byte count and then the significant bytes, big-endian."""
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(digits)]) + digits


def _string(value: bytes) -> bytes:
    """Escape NUL and 0xff bytes and append a terminator that sorts before any other byte."""
    return b"".join(_ESCAPED.get(byte, bytes([byte])) for byte in value) + _TERMINATOR


def _signed_number(value: int) -> bytes:
    """Encode a signed number as big-endian two's complement with a length prefix.

    The first bits are the prefix: as many one bits as there are bytes in the encoding, or as many
    zero bits if the number is negative.
    """
    magnitude = ~value if value < 0 else value
    length = magnitude.bit_length() // 7 + 1
    width = 8 * length
    header = ((1 << width) - 1) ^ ((1 << (width - length)) - 1)
    return ((value & ((1 << width) - 1)) ^ header).to_bytes(length, "big")
