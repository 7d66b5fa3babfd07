"""Give memory back to the system after a model was unloaded.

The allocator keeps freed pages for later; a server that has unloaded gigabytes should not.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys


def return_freed_memory() -> None:
    """Collect cycles (graphs have some) and, with glibc, trim the heap. Takes milliseconds."""
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
