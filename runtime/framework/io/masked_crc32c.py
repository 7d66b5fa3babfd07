"""CRC-32C checksums, and the masked form in which files store them.

A CRC of data that contains CRCs detects fewer errors. Therefore files never store a plain CRC.

TF: tensorflow/core/lib/hash/crc32c.h (Mask, Unmask)
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import pathlib
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import google_crc32c
import numpy as np

from runtime.foundation.native_calls import LONG_CALL_BYTES, native_call, pieces

_DELTA = 0xA282EAD8
# Above this size the library is called without the GIL. The extension keeps it for as long as a
# call takes: 64 MB at once delay every other thread by 10 ms, or many times that if the caller's
# thread has low priority and the cores are busy. Without the library, the extension gets pieces.
_PIECE_BYTES = 1 << 18
Extend: TypeAlias = Callable[[int, int, int], int]  # takes the address and the number of bytes


def crc32c(data: bytes | np.ndarray, crc: int = 0) -> int:
    """Return the CRC-32C of `data`, which is bytes or a contiguous uint8 array.

    `crc` is the checksum of the bytes that precede `data`, 0 if there are none. Other threads can
    run in between.
    """
    if len(data) > _PIECE_BYTES:
        array = np.frombuffer(data, np.uint8)
        extend = extend_without_gil()
        if extend is not None:
            if len(array) < LONG_CALL_BYTES:
                return extend(crc, array.ctypes.data, len(array))
            for begin, end in pieces(len(array)):
                crc = native_call(extend, crc, array.ctypes.data + begin, end - begin)
            return crc
        for begin in range(0, len(array), _PIECE_BYTES):
            crc = google_crc32c.extend(crc, array[begin : begin + _PIECE_BYTES])
        return int(crc)
    return int(google_crc32c.extend(crc, data))


@functools.cache
def extend_without_gil() -> Extend | None:
    """Return the function of the library that the extension's wheel brings; None if there is none.

    Source: https://github.com/google/crc32c, include/crc32c/crc32c.h (crc32c_extend)
    """
    folder = pathlib.Path(google_crc32c.__file__).parents[1] / "google_crc32c.libs"
    for path in folder.glob("libcrc32c*.so*"):
        with contextlib.suppress(OSError, AttributeError):
            extend: Any = ctypes.CDLL(str(path)).crc32c_extend
            extend.argtypes = (ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t)
            extend.restype = ctypes.c_uint32
            return cast("Extend", extend)
    return None


def mask(crc: int) -> int:
    """Return the masked form of the checksum `crc`, which is what files store."""
    rotated = (crc >> 15) | (crc << 17)
    return (rotated + _DELTA) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """Return the checksum whose masked form is `masked`."""
    rotated = (masked - _DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF
