"""The gate at which low-priority work waits, between nodes, while normal work is pending.

Nice values alone do not help with one interpreter lock: all other threads wait for a niced thread
that holds the lock (p99 of a 0.25 ms request beside a chain of small ops: 1.5 ms alone, 31 ms with
a plain thread, 34 ms with nice 19, 0.65 ms with this gate and a switch interval of 0.5 ms).

While low-priority work runs in this process, the interpreter's switch interval is
SWITCH_INTERVAL_SECONDS, so that a thread that waits for the interpreter lock gets it after about
that time (a thread that wakes beside a chain of small ops has the lock after 0.9 ms at 0.5 ms,
0.075 ms at 0.05 ms and 0.047 ms at 0.02 ms; 0.015 ms alone). While a child process does the
low-priority work, the interval is AWAY_SWITCH_INTERVAL_SECONDS. It can't be the usual 5 ms: a
thread reads the interval when it begins to wait for the lock, and would still be waiting with that
interval when this process reads the child's results (half of the slow steps beside MobileNetV2
did). It need not be shorter: at 0.02 ms two busy normal threads would lose a sixth of their
throughput to switching, at 0.05 ms nothing.

A waiting thread polls, with pauses, instead of being notified: a notification would take processor
time, and the lock, from the normal step that has just ended and whose result is being sent.

Guarantees: thread-safe; a thread passes the gate when no normal work is pending, or after
MAX_WAIT_SECONDS, so that low-priority work is delayed but never starved.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time

MAX_WAIT_SECONDS = 0.05  # the longest that one node of low-priority work waits at the gate
_SHORTEST_PAUSE_SECONDS = 0.0001  # between polls at the gate; each pause is twice the last, up to
_LONGEST_PAUSE_SECONDS = 0.001
SWITCH_INTERVAL_SECONDS = 0.00002  # how long a low-priority thread may keep the interpreter lock
AWAY_SWITCH_INTERVAL_SECONDS = 0.00005  # the same, while a child process does all such work
_TIMER_SLACK_NANOS = 1000  # Linux adds 50 µs to every timed wait otherwise
_SET_TIMER_SLACK = 29  # prctl(PR_SET_TIMERSLACK)


class PriorityGate:
    """The count of pending normal work, and the wait of low-priority threads between nodes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below
        self.pending = 0  # normal steps queued or running; read without the lock as a hint
        self._low_priority_tasks = 0
        self._away = 0  # low-priority tasks whose work a child process is doing
        self._usual_switch_interval = sys.getswitchinterval()

    def enter(self) -> None:
        """Count a normal step that has been queued."""
        with self._lock:
            self.pending += 1

    def leave(self) -> None:
        """Count a normal step that has ended."""
        with self._lock:
            self.pending -= 1

    def pass_through(self) -> None:
        """Wait while normal work is pending, for at most MAX_WAIT_SECONDS."""
        if self.pending:
            self.wait()

    def wait(self) -> None:
        """Poll until no normal work is pending, for at most MAX_WAIT_SECONDS."""
        end = time.monotonic() + MAX_WAIT_SECONDS
        pause = _SHORTEST_PAUSE_SECONDS
        while self.pending and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def low_priority_task(self) -> contextlib.AbstractContextManager[None]:
        """The context of a low-priority task; inside it the switch interval is short."""
        return _CountContext(self, 1, 0)

    def away(self) -> contextlib.AbstractContextManager[None]:
        """The context of the part of a low-priority task that a child process does."""
        return _CountContext(self, 0, 1)

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


class _CountContext(contextlib.AbstractContextManager[None]):
    """A context that adjusts the gate's counts; a class, as a generator would be slower."""

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


def reduce_timer_slack() -> None:
    """Reduce the timer slack of the calling thread and of the threads that it starts afterwards.

    Timed waits, of which the wait for the interpreter lock is one, then end within 1 µs of their
    time. Linux only; elsewhere nothing changes.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, _TIMER_SLACK_NANOS, 0, 0, 0)
