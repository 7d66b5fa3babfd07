"""SharedArea: memory shared by two processes, for the tensors of one message at a time.

A socket copies data twice, in chunks of a quarter of a megabyte, and wakes both sides for each
chunk: 0.3 ms for the image of a MobileNetV2 step, against 0.13 ms through shared memory. The area
is an anonymous file (memfd). It is freed when both processes have ended. It is sealed against
shrinking, so that no mapping can lose its memory. It does not count against `/dev/shm`, which is
small in containers.

One process must call only `begin` and `put`, the other process only `look`. An array stays valid
until the next `begin`; before it calls `begin`, a caller must ensure that the other process no
longer uses any array.
"""

from __future__ import annotations

import math
import mmap
import os

import numpy as np

LEAST_BYTES = 1 << 14  # smaller arrays are sent in the message
_MOST_BYTES = 1 << 26  # size limit of an area; arrays that do not fit are sent in the message
_ALIGNMENT = 64  # the offset of each array is a multiple of this number of bytes


_PIECE_BYTES = 1 << 18  # copied between two looks at whether another thread is to run; 0.1 ms
# Returns at once if no other thread waits for this processor.
_let_others_run = getattr(os, "sched_yield", lambda: None)


def copy_in_pieces(target: np.ndarray, source: np.ndarray) -> None:
    """Copy a flat array; a thread that wakes on this processor waits for at most a piece.

    Linux may let a thread that makes no system call run on to the next tick of its timer, 4 ms.
    """
    count = max(1, _PIECE_BYTES // max(1, source.itemsize))
    for begin in range(0, len(source), count):
        target[begin : begin + count] = source[begin : begin + count]
        _let_others_run()


class SharedArea:
    """One process's end of a shared area; it owns the file descriptor `fd`.

    On a system without memfd, `fd` is −1 and `put` always returns None.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._bytes = np.empty(0, np.uint8)  # the part of the file that this process has mapped
        self._used = 0

    @classmethod
    def create(cls) -> SharedArea:
        """Create the file of a new area and return the area."""
        try:
            import fcntl  # does not exist on every system

            fd = os.memfd_create("runstep", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        except (OSError, AttributeError, ImportError):
            return cls(-1)
        return cls(fd)

    def begin(self) -> None:
        """Free the whole area for the arrays of the next message."""
        self._used = 0

    def put(self, array: np.ndarray) -> int | None:
        """Copy a contiguous array into the area; return its byte offset, or None if it can't fit.

        The array's dtype must not be `object`.
        """
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
        copy_in_pieces(self._bytes[begin:end].view(array.dtype), array.reshape(-1))
        self._used = -(-end // _ALIGNMENT) * _ALIGNMENT
        return begin

    def look(self, begin: int, shape: list[int], dtype: np.dtype) -> np.ndarray:
        """Return a read-only view of the array at byte offset `begin`, valid until `begin()`."""
        end = begin + math.prod(shape) * dtype.itemsize
        if end > len(self._bytes):
            self._map()
        array = self._bytes[begin:end].view(dtype).reshape(shape)
        array.flags.writeable = False
        return array

    def _map(self) -> None:
        """Map the whole file. An array that views an older mapping keeps that mapping alive."""
        self._bytes = np.frombuffer(mmap.mmap(self.fd, os.fstat(self.fd).st_size), np.uint8)

    def close(self) -> None:
        """Close the file descriptor; existing arrays stay valid."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
