"""The calling thread's share of the processors, and how soon a woken thread may preempt it.

Nice values divide processor time in the long run; they do not decide which thread runs next. Linux
(since 6.6) lets a thread that has been scheduled finish its time slice, and even a thread of nice
19 is scheduled when it has just woken. In traces of the scheduler, normal threads waited 1.4 ms
behind a process of nice 19 although another processor was idle; if such a thread had been preempted
while it held the interpreter lock, all other threads waited too. Since Linux 6.12, a woken thread
preempts a running thread that has a longer slice. Therefore slices are set in addition to nice
values: a background process has the longest slice, a background thread that sometimes takes the
interpreter lock a short one, except in long native calls (`native_calls.py`), and all other
threads keep the system's default.

Preemption alone is not enough where background processes keep all processors busy. A thread that
copies a large body in a system call is not preempted on most kernels (1 MB takes 0.5 ms); and each
thread of theirs that wakes beside a normal one takes its turn of 10 to 30 µs at once, dozens of
times in a prediction, because a thread that has run has no claim left beside one that has slept.
Therefore a process that answers requests in the background, and a thread that does nothing but copy
bodies, leave one processor to all others (`leave_one_processor`). A process that only runs steps
for a thread of this process does not: that thread then waits on the processors that are left to it,
and normal steps waited for it as much.

On other systems, and on older kernels, only the nice value has an effect.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import struct
import sys
import threading

HIGHEST_NICE = 19
LONGEST_SLICE_SECONDS = 0.1  # Linux allows slices from 0.1 ms to 100 ms
SHORTEST_SLICE_SECONDS = 0.0001
# Longer than the system's default, so that a thread with it does not preempt those that answer
# requests, and short enough that it soon goes on where it was preempted with the interpreter lock.
SHORT_SLICE_SECONDS = 0.003
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # numbers of the system call, by architecture
# struct sched_attr: size, policy, flags, nice, priority, runtime (ns), deadline, period
_SCHED_ATTR = struct.Struct("<IIQiIQQQ")


@functools.cache
def _c_library() -> ctypes.PyDLL:
    # Its calls keep the interpreter lock: they take 1 µs, and a thread that waits for the lock
    # would wake up for nothing, and wait for another switch interval.
    return ctypes.PyDLL(None)


def nice_value() -> int:
    """Return the nice value of the calling thread; 0 where the system has none."""
    try:
        return os.getpriority(os.PRIO_PROCESS, 0)  # Linux: of the thread, not of the process
    except (OSError, AttributeError):
        return 0


def make_way() -> None:
    """Let every other thread that wakes preempt the calling thread, which keeps its nice value.

    For threads that copy or convert much in native code, without the interpreter lock: an event
    loop would else wait behind them for a time slice, even if another processor has nothing to do.
    """
    with contextlib.suppress(OSError, AttributeError):
        nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        share_processors(nice, LONGEST_SLICE_SECONDS)


def run_in_background(nice: int = HIGHEST_NICE) -> None:
    """Let this process run behind others: all its threads, and those that they start.

    A process can only raise its nice value again, not lower it.
    """
    nice = max(nice, nice_value())
    share_processors(nice, LONGEST_SLICE_SECONDS)
    for thread in threading.enumerate():
        if thread.native_id is not None:
            with contextlib.suppress(OSError, AttributeError):
                os.setpriority(os.PRIO_PROCESS, thread.native_id, nice)


def leave_one_processor() -> None:
    """Keep the calling thread, and those that it starts from now on, off one of its processors.

    For the main thread of a background process at its start, and for a thread that copies bodies.
    Without effect if the thread has only one processor, and on systems where threads can't be given
    processors.
    """
    with contextlib.suppress(OSError, AttributeError):
        processors = os.sched_getaffinity(0)
        if len(processors) > 1:
            os.sched_setaffinity(0, processors - {min(processors)})


def share_processors(nice: int, slice_seconds: float) -> None:
    """Set the nice value of the calling thread and, on Linux, the length of its time slice.

    A failure is ignored, because results do not depend on it. A process without privileges can
    only raise nice values, and must keep one to change the slice.
    """
    if nice_value() != nice:
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
    arguments = _slice_arguments(nice, slice_seconds)
    if arguments is not None:
        with contextlib.suppress(OSError, AttributeError):
            _c_library().syscall(*arguments)


@functools.cache  # a step sets it twice, with cold caches
def _slice_arguments(nice: int, slice_seconds: float) -> tuple[int, int, bytes, int] | None:
    """Return the arguments of the system call; None where the system has none."""
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return None
    nanos = round(slice_seconds * 1e9)
    return number, 0, _SCHED_ATTR.pack(_SCHED_ATTR.size, 0, 0, nice, 0, nanos, 0, 0), 0
