"""Long calls that release the interpreter lock, made by threads of the highest nice value.

A niced thread that loses its processor while it holds the interpreter lock keeps all other threads
waiting: beside busy processes, a load of 500 MB on such a thread held the lock for 40 ms at a time.
Background work that is mostly Python therefore runs on threads of the usual nice value
(`hand_over_native_calls`), which hand to niced threads only the calls that need processors for long
and no lock: reading files, checksums.

Guarantees: thread-safe; a call returns or raises what its function does, and is not cancelled.
"""

from __future__ import annotations

import concurrent.futures
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from runtime.foundation.priority_gate import gate
from runtime.foundation.processor_share import (
    HIGHEST_NICE,
    LONGEST_SLICE_SECONDS,
    SHORT_SLICE_SECONDS,
    SHORTEST_SLICE_SECONDS,
    share_processors,
)

P = ParamSpec("P")
T = TypeVar("T")
PIECE_BYTES = 1 << 20  # about 0.4 ms
LONG_CALL_BYTES = 1 << 20  # a call that works on fewer bytes is not worth handing over (0.1 ms)
_PAUSE, _LONGEST_PAUSE_SECONDS = 2, 0.02  # the former by the time of the part before it
_THREADS = 2
_let_others_run = getattr(os, "sched_yield", lambda: None)  # some systems have none


class _Caller(threading.local):
    hands_over = False
    nice: int | None = None  # of a thread of low priority


_caller = _Caller()


def hand_over_native_calls() -> None:
    """Let niced threads make the native calls of the calling thread from now on."""
    _caller.hands_over = True


def become_low_priority(nice: int) -> None:
    """Make the calling thread one of low priority; see `long_native_call`.

    It has the given nice value, and between such calls a short slice.
    """
    _caller.nice = nice
    share_processors(nice, SHORT_SLICE_SECONDS)


class LongNativeCall:
    """A context manager for a call that takes long and releases the interpreter lock.

    In it, a thread of low priority has the longest slice: one of a shorter slice runs on until the
    next tick of the system's timer, up to 4 ms, even if a normal thread wakes. A thread that waits
    for this processor already, because this one preempted it, runs first. After the call it waits
    at the priority gate, which it has not seen meanwhile. Threads of normal priority are not
    changed. The nice value stays, because only a privileged process can lower it again.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        if _caller.nice is not None:
            share_processors(_caller.nice, LONGEST_SLICE_SECONDS)
            _let_others_run()

    def __exit__(self, *_: object) -> None:
        if _caller.nice is not None:
            gate.give_way()
            share_processors(_caller.nice, SHORT_SLICE_SECONDS)


long_native_call = LongNativeCall()


@functools.cache
def _niced_threads() -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(
        _THREADS, "native", share_processors, (HIGHEST_NICE, SHORTEST_SLICE_SECONDS)
    )


def native_call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that takes long and releases the interpreter lock; return its result."""
    if not _caller.hands_over:
        return function(*args, **kwargs)
    return _niced_threads().submit(function, *args, **kwargs).result()


def pieces(size: int) -> Iterator[tuple[int, int]]:
    """Yield the parts [begin, end) in which `size` bytes are worked on by native calls.

    If the calling thread hands its calls over, there is a pause after each part in which a normal
    step has run, twice as long as the part took: reading half a gigabyte then takes 4 s instead of
    1, and the p99 of tiny predictions beside it is 1.4 times the usual one instead of 1.8 times.
    """
    if not _caller.hands_over:
        yield 0, size
        return
    for begin in range(0, size, PIECE_BYTES):
        seen, started = gate.ended, time.monotonic()
        yield begin, min(begin + PIECE_BYTES, size)
        if gate.pending or gate.ended != seen:
            time.sleep(min(_PAUSE * (time.monotonic() - started), _LONGEST_PAUSE_SECONDS))
