"""How much of the processors a thread gets, and how soon a woken one may interrupt it.

Nice values share the processors out over time. They do not say who runs next: Linux (since 6.6)
lets whoever was just picked finish its slice, and the nicest thread is picked when it has just
woken. Seen in traces of the scheduler: normal threads waited 1.4 ms behind a process of nice 19,
with another processor idle, and everybody waited behind it for a preempted thread that held the
interpreter lock. A woken thread does interrupt whoever has a longer slice than its own (since
6.12). Hence slices, beside nice values: a background process has the longest, a background thread
that takes the interpreter lock now and then the shortest, everything else what the system gives.

Elsewhere, and on older systems, nice values are all there is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
import threading

LONGEST_SLICE_SECONDS = 0.1  # what Linux allows
SHORTEST_SLICE_SECONDS = 0.0001
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # system calls
# struct sched_attr: size, policy, flags, nice, priority, runtime (ns), deadline, period
_SCHED_ATTR = struct.Struct("<IIQiIQQQ")


def share_processors(nice: int, slice_seconds: float) -> None:
    """Set the calling thread's nice value and, where there is one, its slice.

    Not possible everywhere, and nothing depends on it. A nice value can only go up.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
    number = _SCHED_SETATTR.get(platform.machine())
    if sys.platform == "linux" and number is not None:
        nanos = round(slice_seconds * 1e9)
        attributes = _SCHED_ATTR.pack(_SCHED_ATTR.size, 0, 0, nice, 0, nanos, 0, 0)
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(number, 0, attributes, 0)
