"""Keep models from the garbage collector, and return their memory to the system when it is freed.

A full collection visits every object of the process, and all requests wait for it: 6 ms in a
process with one small model, hundreds of milliseconds beside the graphs of several large sessions.
The objects of a loaded model, and of a session's graph (`runtime.api.long_lived_objects`), live
long, so visiting them finds nothing. The C library keeps freed pages for later allocations, which
wastes gigabytes after a large model has been unloaded.

numpy asks for huge pages (2 MiB) where it puts arrays of 4 MiB and more, and the system remembers
this for the addresses when the array has been freed: a small object that is made there later, or
that survives there, makes 2 MiB resident again. Therefore the heap is no longer for huge pages once
it has been trimmed; numpy asks again for its next arrays.

Source: NUMPY_MADVISE_HUGEPAGE in numpy's reference, "Global configuration options"; madvise(2).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import itertools
import sys
from collections.abc import Awaitable, Callable

from runtime.api import long_lived_objects, resident_bytes, return_engine_memory
from server.lifecycle import Lifecycle

# Number of objects made between two collections of the youngest generation; Python's default is
# 700. The objects of a step are freed without the collector, and graphs live long.
YOUNG_OBJECTS = 5_000
IDLE_SECONDS = 2.0  # without a request, after which the memory of requests is returned
LOOK_SECONDS = 0.05  # between two looks whether there are requests
LOOKS_AT_GROWTH = 4  # of these looks, one is also at the growth of resident memory
PAUSE_SECONDS = 0.1  # without a request, after which the memory of an unloaded model is returned
# Unloaded models after which the cycles among their objects are collected though the server is not
# idle. The values of variables and constants are in no cycle.
MOST_UNCOLLECTED = 8
# Number of times that large graphs were kept from the collector after which an idle server collects
# what may have been garbage at those times, requests' errors for example.
MOST_KEPT = 50
# Number of nodes in cycles that closed sessions have left after which these count as one unloaded
# model; each has about ten objects, which `long_lived_objects` may have kept from the collector.
MOST_LEFT_NODES = 5_000
# How much resident memory may grow before the heap is trimmed though the server is not idle. In
# glibc 2.36 a block that a step has aligned and freed is too small for the next one if anything
# that stays was put beside it: opening 600 sessions, each with a step, left 4 GB of holes.
MOST_GROWTH_BYTES = 256 << 20
_NO_HUGE_PAGES = 15  # MADV_NOHUGEPAGE
_uncollected = 0  # number of models unloaded since; the loop and the loading thread change it
_left_nodes = 0  # of closed sessions, since they counted last; several threads may lose some
_kept_before = 0  # of `long_lived_objects.times_kept`, at the last collection of everything


def collect_less_often() -> None:
    """Collect the youngest generation less often, and never visit the graphs of large sessions.

    One collection of the youngest generation takes well under 1 ms.
    """
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    long_lived_objects.keep()


def keep_from_collector() -> None:
    """Exclude all objects that exist now from later collections; this takes microseconds."""
    gc.freeze()


def model_was_closed() -> None:
    """Return the memory of an unloaded model to the system.

    Cycles of its objects wait for an idle time, because all requests wait for the collector.
    """
    global _uncollected
    _uncollected += 1
    if _uncollected >= MOST_UNCOLLECTED:
        return_freed_memory()
    else:
        trim_heap()


def cycles_were_left(nodes: int) -> None:
    """Note that a session is gone whose graph of so many nodes is in reference cycles."""
    global _uncollected, _left_nodes
    _left_nodes += nodes
    if _left_nodes >= MOST_LEFT_NODES:
        _left_nodes = 0
        _uncollected += 1
        if _uncollected >= MOST_UNCOLLECTED:
            return_freed_memory()


def has_uncollected() -> bool:
    """Return whether something large was unloaded or closed whose cycles are not collected yet."""
    return _uncollected > 0


def return_freed_memory() -> None:
    """Collect reference cycles and trim glibc's heap.

    Also clears Python's cache of attributes of types. It keeps up to 4,096 names, most of them
    strings that native code made while models were loaded, each in a page of its own.

    This takes tens of milliseconds, of which the first part stops all threads.
    """
    global _uncollected, _left_nodes, _kept_before
    _uncollected = _left_nodes = 0
    _kept_before = long_lived_objects.times_kept
    _clear_type_cache()
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    trim_heap()


def _clear_type_cache() -> None:
    # Python 3.13 has another name for it, and the function clears other caches too.
    names = ("_clear_internal_caches", "_clear_type_cache")
    clear = next((getattr(sys, name) for name in names if hasattr(sys, name)), None)
    if clear is not None:
        clear()


def trim_heap() -> None:
    """Return free pages of engines and of glibc's heap to the system; this takes milliseconds."""
    return_engine_memory()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # the C library is not glibc
            c = ctypes.CDLL(None)
            c.malloc_trim(0)
            start, end = _heap()
            c.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _NO_HUGE_PAGES)


def _heap() -> tuple[int, int]:
    """Return the first address of the heap and the one after its end; equal if there is none."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as mappings:
        ranges = [line.split(maxsplit=1)[0] for line in mappings if line.endswith("[heap]\n")]
    addresses = [int(address, 16) for each in ranges for address in each.split("-")]
    return min(addresses, default=0), max(addresses, default=0)


def _tidy() -> None:
    if has_uncollected() or long_lived_objects.times_kept - _kept_before >= MOST_KEPT:
        return_freed_memory()
    else:
        trim_heap()


async def trim_when_idle(
    lifecycle: Lifecycle,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    trim: Callable[[], object] = _tidy,
    resident: Callable[[], int | None] = resident_bytes,
) -> None:
    """Trim the heap, in another thread, each time that the server has been idle for a while.

    What requests have freed lies in holes of the heap, which glibc does not return by itself. What
    unloaded models have left is returned at the first pause. The heap is also trimmed, idle or not,
    when `resident` has grown by MOST_GROWTH_BYTES since the last time.
    """
    ended = trimmed = lifecycle.ended
    least = resident() or 0  # since the last trim
    looks = 0  # without a request
    for look in itertools.count(1):
        await sleep(LOOK_SECONDS)
        is_idle = lifecycle.ended == ended and not lifecycle.in_flight
        ended = lifecycle.ended
        looks = looks + 1 if is_idle else 0
        needed = PAUSE_SECONDS if has_uncollected() else IDLE_SECONDS
        if looks * LOOK_SECONDS >= needed and (ended != trimmed or has_uncollected()):
            await asyncio.to_thread(trim)
            trimmed, least = ended, resident() or 0
        elif look % LOOKS_AT_GROWTH == 0:
            now = resident() or 0
            least = min(least, now)
            if now - least > MOST_GROWTH_BYTES:
                await asyncio.to_thread(trim)
                least = resident() or 0
