"""Memory for large arrays that is freed without the interpreter's lock.

numpy frees memory while it holds the lock: half a gigabyte of weights took 4 to 50 ms, in which no
thread ran. A mapping is unmapped without the lock, in 6 ms if its pages are huge, else in 20.

Source: `mmap_object_dealloc` in CPython's Modules/mmapmodule.c.
"""

from __future__ import annotations

import contextlib
import mmap
import sys

import numpy as np

# Smaller arrays come from numpy: a mapping takes at least a page, two calls of the system, and one
# of the limited number of mappings of the process.
LEAST_BYTES = 1 << 20
_HUGE_PAGE = 2 << 20
_CAN_BE_PRIVATE = hasattr(mmap, "MAP_PRIVATE")


def large_array(size: int) -> np.ndarray:
    """Return an array uint8 `[size]` that may be written; its contents are undefined.

    Raises MemoryError if there is not enough memory.
    """
    if size < LEAST_BYTES or not _CAN_BE_PRIVATE:
        return np.empty(size, np.uint8)
    try:
        mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size} bytes can't be mapped: {error.strerror}") from None
    if size >= _HUGE_PAGE and sys.platform == "linux":
        with contextlib.suppress(OSError):  # the kernel was built without huge pages
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapping, np.uint8)
