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
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from runtime.foundation.processor_share import SHORTEST_SLICE_SECONDS, share_processors

P = ParamSpec("P")
T = TypeVar("T")
HIGHEST_NICE = 19
LONG_CALL_BYTES = 1 << 20  # a call that works on fewer bytes is not worth handing over (0.1 ms)
_THREADS = 2


class _Caller(threading.local):
    hands_over = False


_caller = _Caller()


def hand_over_native_calls() -> None:
    """Let niced threads make the native calls of the calling thread from now on."""
    _caller.hands_over = True


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
