"""Variable-length integers: seven bits in each byte, low bits first.

The high bit of a byte is 1 if another byte follows.

TF: tensorflow/core/platform/coding.h
"""

from __future__ import annotations

from runtime.foundation.errors import DataLossError

_MAX_BYTES = 10  # the number of groups of seven bits that hold 64 bits


def encode_varint(value: int) -> bytes:
    """Encode a non-negative integer below 2**64."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """Decode the integer at `position`; return (value, position after it).

    Raises DataLossError if the integer is truncated or does not fit in 64 bits.
    """
    value = 0
    for count, byte in enumerate(data[position : position + _MAX_BYTES]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if value >> 64:
                break
            return value, position + count + 1
    raise DataLossError("malformed variable-length integer")
