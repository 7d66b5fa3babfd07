"""CRC-32C as stored data carries it: masked, so that a checksum of checksums stays strong.

TF: tensorflow/core/lib/hash/crc32c.h (Mask, Unmask)
"""

from __future__ import annotations

import google_crc32c
import numpy as np

_DELTA = 0xA282EAD8


def crc32c(data: bytes | np.ndarray, crc: int = 0) -> int:
    """CRC-32C of bytes or of a contiguous array of bytes, continuing from `crc`."""
    return int(google_crc32c.extend(crc, data))


def mask(crc: int) -> int:
    """The form that is stored."""
    rotated = (crc >> 15) | (crc << 17)
    return (rotated + _DELTA) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """The checksum of a stored form."""
    rotated = (masked - _DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF
