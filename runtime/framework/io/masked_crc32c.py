"""CRC-32C, and its masked form in files: checksums of data that contains checksums stay strong.

TF: tensorflow/core/lib/hash/crc32c.h (Mask, Unmask)
"""

from __future__ import annotations

import google_crc32c
import numpy as np

_DELTA = 0xA282EAD8


def crc32c(data: bytes | np.ndarray, crc: int = 0) -> int:
    """CRC-32C of bytes or a contiguous uint8 array; `crc` is that of the bytes before them."""
    return int(google_crc32c.extend(crc, data))


def mask(crc: int) -> int:
    """The masked form of a checksum, as it is stored."""
    rotated = (crc >> 15) | (crc << 17)
    return (rotated + _DELTA) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """The checksum of a masked form."""
    rotated = (masked - _DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF
