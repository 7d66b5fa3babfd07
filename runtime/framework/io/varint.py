"""Variable-length integers: seven bits in each byte, low bits first; the high bit means "more".

TF: tensorflow/core/platform/coding.h
"""

from __future__ import annotations

from runtime.foundation.errors import DataLossError

_MAX_BYTES = 10  # 64 bits in groups of seven


def encode_varint(value: int) -> bytes:
    """The encoding of a non-negative integer below 2**64."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """(value, position after it); DataLossError when it is truncated or above 64 bits."""
    value = 0
    for count, byte in enumerate(data[position : position + _MAX_BYTES]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if value >> 64:
                break
            return value, position + count + 1
    raise DataLossError("malformed variable-length integer")
