"""Memory of models: out of the garbage collector's sight while loaded, back to the system after.

A full collection walks every object that was ever made, and stops all requests for it: 6 ms in a
bare process with one small model, tens of milliseconds with large graphs. What a model consists
of stays, so it need not be walked. The allocator, for its part, keeps freed pages for later; a
server that has unloaded gigabytes should not.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys

# Objects made since the last collection of young ones; Python's own number is 700. What a step
# makes dies without the collector, a graph's nodes stay: walking them often finds nothing.
YOUNG_OBJECTS = 5_000


def collect_less_often() -> None:
    """For a server: fewer collections of young objects; each takes well under a millisecond."""
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


def keep_from_collector() -> None:
    """Take all that exists now out of collections; takes microseconds."""
    gc.freeze()


def return_freed_memory() -> None:
    """Collect cycles (graphs have some) and, with glibc, trim the heap. Takes milliseconds."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
