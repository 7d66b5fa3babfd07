"""The gate at which low-priority work lets normal work pass.

Nice values alone do not help under one interpreter lock: a niced thread that holds the lock keeps
everybody waiting (p99 of a 0.25 ms request beside a chain of small ops: 1.5 ms alone, 31 ms with a
plain thread, 34 ms with nice 19, 0.65 ms with this gate and a switch interval of 0.5 ms).

While low-priority work runs, a thread that wants the interpreter lock gets it after about
SWITCH_INTERVAL_SECONDS (a thread that wakes beside a chain of small ops has the lock after 0.9 ms
at 0.5 ms, 0.075 ms at 0.05 ms and 0.047 ms at 0.02 ms; 0.015 ms alone). While another process does
the work, AWAY_SWITCH_INTERVAL_SECONDS hold: a thread that waits for the lock looks at the interval
when it begins to, and with the usual 5 ms it would still wait when the answer is taken in (half of
the slow steps beside MobileNetV2 did). With 0.02 ms two busy normal threads would lose a sixth of
their throughput to changing hands; with 0.05 ms nothing.

Who waits looks again after a pause: being woken would take time, and the lock, from the normal step
that has just ended and whose answer goes out.

Guarantees: thread-safe; a waiter goes on when no normal work is pending, or after MAX_WAIT_SECONDS,
so that low-priority work ages instead of starving.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time

MAX_WAIT_SECONDS = 0.05  # the longest that one node of low-priority work waits at the gate
_SHORTEST_PAUSE_SECONDS = 0.0001  # of who waits at the gate; each is twice the one before, until
_LONGEST_PAUSE_SECONDS = 0.001
SWITCH_INTERVAL_SECONDS = 0.00002  # how long a low-priority thread may keep the interpreter lock
AWAY_SWITCH_INTERVAL_SECONDS = 0.00005  # the same, while it only waits for another process
_TIMER_SLACK_NANOS = 1000  # Linux adds 50 µs to every timed wait otherwise
_SET_TIMER_SLACK = 29  # prctl(PR_SET_TIMERSLACK)


class PriorityGate:
    """Counts pending normal work; low-priority threads wait at it between nodes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all that follows
        self.pending = 0  # normal steps queued or running; read without the lock as a hint
        self._low_priority_tasks = 0
        self._away = 0  # of these, those whose work another process does
        self._usual_switch_interval = sys.getswitchinterval()

    def enter(self) -> None:
        """Note one more piece of normal work."""
        with self._lock:
            self.pending += 1

    def leave(self) -> None:
        """Note that a piece of normal work has ended."""
        with self._lock:
            self.pending -= 1

    def pass_through(self) -> None:
        """Wait if there is anything to wait for."""
        if self.pending:
            self.wait()

    def wait(self) -> None:
        """Let normal work pass, for at most MAX_WAIT_SECONDS."""
        end = time.monotonic() + MAX_WAIT_SECONDS
        pause = _SHORTEST_PAUSE_SECONDS
        while self.pending and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def low_priority_task(self) -> contextlib.AbstractContextManager[None]:
        """While any such block is entered, threads get the interpreter lock sooner."""
        return _Counted(self, 1, 0)

    def away(self) -> contextlib.AbstractContextManager[None]:
        """The part of a low-priority task that another process does."""
        return _Counted(self, 0, 1)

    def _count(self, tasks: int, away: int) -> None:
        with self._lock:
            if not self._low_priority_tasks:
                self._usual_switch_interval = sys.getswitchinterval()
            self._low_priority_tasks += tasks
            self._away += away
            if self._low_priority_tasks > self._away:
                interval = SWITCH_INTERVAL_SECONDS
            elif self._low_priority_tasks:
                interval = AWAY_SWITCH_INTERVAL_SECONDS
            else:
                interval = self._usual_switch_interval
            sys.setswitchinterval(min(interval, self._usual_switch_interval))


class _Counted(contextlib.AbstractContextManager[None]):
    """A block that counts; a generator would take longer."""

    __slots__ = ("_away", "_gate", "_tasks")

    def __init__(self, gate: PriorityGate, tasks: int, away: int) -> None:
        self._gate = gate
        self._tasks = tasks
        self._away = away

    def __enter__(self) -> None:
        self._gate._count(self._tasks, self._away)

    def __exit__(self, *_: object) -> None:
        self._gate._count(-self._tasks, -self._away)


gate = PriorityGate()


def sharpen_timers() -> None:
    """Let timed waits of the calling thread, and of threads that it starts, end when they should.

    The wait for the interpreter lock is one of them.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, _TIMER_SLACK_NANOS, 0, 0, 0)
