"""CRC-32C checksums, and the masked form in which files store them.

A CRC of data that contains CRCs detects fewer errors. Therefore files never store a plain CRC.

TF: tensorflow/core/lib/hash/crc32c.h (Mask, Unmask)
"""

from __future__ import annotations

import google_crc32c
import numpy as np

_DELTA = 0xA282EAD8
# The extension keeps the GIL for as long as a call takes: 64 MB at once delay every other thread by
# 10 ms, or many times that if the caller's thread has low priority and the cores are busy.
_PIECE_BYTES = 1 << 18


def crc32c(data: bytes | np.ndarray, crc: int = 0) -> int:
    """Return the CRC-32C of `data`, which is bytes or a contiguous uint8 array.

    `crc` is the checksum of the bytes that precede `data`, 0 if there are none. Other threads can
    run in between.
    """
    if len(data) > _PIECE_BYTES:
        array = np.frombuffer(data, np.uint8)
        for begin in range(0, len(array), _PIECE_BYTES):
            crc = google_crc32c.extend(crc, array[begin : begin + _PIECE_BYTES])
        return int(crc)
    return int(google_crc32c.extend(crc, data))


def mask(crc: int) -> int:
    """Return the masked form of the checksum `crc`, which is what files store."""
    rotated = (crc >> 15) | (crc << 17)
    return (rotated + _DELTA) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """Return the checksum whose masked form is `masked`."""
    rotated = (masked - _DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF
