"""SharedArea: memory that two processes have, for the tensors of one message at a time.

What goes through a socket is copied twice, a quarter of a megabyte at a time, and both sides wake
up for each part: 0.3 ms for the picture of a MobileNetV2 step, 0.13 ms through an area. It is a
file without a name (memfd): it ends with the processes, and it can't shrink, so that nobody is
left with memory that is no longer there. `/dev/shm`, which containers keep small, is not part
of it.

Guarantees: one process puts, the other looks; what was put stays until the next `begin`, which the
one who puts calls when the other has looked at everything (the caller's business).
"""

from __future__ import annotations

import math
import mmap
import os

import numpy as np

LEAST_BYTES = 1 << 14  # of an array that is put; smaller ones go with the message
_MOST_BYTES = 1 << 26  # of an area; what does not fit goes with the message
_ALIGNMENT = 64  # bytes


class SharedArea:
    """One side of an area; `fd` is its file, which is the area's from now on.

    Where the system has no such files `fd` is −1, and nothing fits.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._bytes = np.empty(0, np.uint8)  # that this side has mapped
        self._used = 0

    @classmethod
    def create(cls) -> SharedArea:
        """A new one."""
        try:
            import fcntl  # not on every system

            fd = os.memfd_create("runstep", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        except (OSError, AttributeError, ImportError):
            return cls(-1)
        return cls(fd)

    def begin(self) -> None:
        """Forget what was put."""
        self._used = 0

    def put(self, array: np.ndarray) -> int | None:
        """Copy a contiguous array; where it is, None when it does not fit. Not for objects."""
        begin = self._used
        end = begin + array.nbytes
        if end > _MOST_BYTES:
            return None
        if end > len(self._bytes):
            try:
                os.ftruncate(self.fd, min(_MOST_BYTES, 1 << (end - 1).bit_length()))
            except OSError:
                return None
            self._map()
        self._bytes[begin:end].view(array.dtype)[:] = array.reshape(-1)
        self._used = -(-end // _ALIGNMENT) * _ALIGNMENT
        return begin

    def look(self, begin: int, shape: list[int], dtype: np.dtype) -> np.ndarray:
        """The array that was put there, read-only, until the next `begin`."""
        end = begin + math.prod(shape) * dtype.itemsize
        if end > len(self._bytes):
            self._map()
        array = self._bytes[begin:end].view(dtype).reshape(shape)
        array.flags.writeable = False
        return array

    def _map(self) -> None:
        """Map the whole file. Arrays of an older map keep that one alive."""
        self._bytes = np.frombuffer(mmap.mmap(self.fd, os.fstat(self.fd).st_size), np.uint8)

    def close(self) -> None:
        """Let go of the file."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
