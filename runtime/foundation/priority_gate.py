"""The gate at which low-priority work waits, between nodes, while normal work is pending.

A step is one execution of Session.run. Nice values do not suffice, because all other threads wait
for a niced thread while that thread holds the interpreter lock. The p99 of a 0.25 ms request is
1.5 ms if nothing else runs. Beside a chain of small ops it is 31 ms if a thread of normal priority
runs the chain, 34 ms if a thread of nice 19 does, and 0.65 ms with this gate and a switch interval
of 0.5 ms.

While low-priority work runs in this process, the interpreter's switch interval is
`SWITCH_INTERVAL_SECONDS`, so that a thread that waits for the interpreter lock gets it after about
that time. (A thread that wakes beside a chain of small ops gets the lock after 0.9 ms if the
interval is 0.5 ms, 0.075 ms if it is 0.05 ms, 0.047 ms if it is 0.02 ms; after 0.015 ms if nothing
else runs.) While a child process does all low-priority work, the interval is
`AWAY_SWITCH_INTERVAL_SECONDS`. The usual 5 ms would be too long: a thread reads the interval when
it begins to wait for the lock, and would still wait with that interval when this process reads the
child's results, as in half of the slow steps that were measured beside MobileNetV2. A shorter
interval is not required: at 0.02 ms, two busy normal threads lose a sixth of their throughput to
switching, at 0.05 ms nothing.

A waiting thread polls, with pauses. It is not notified, because a notification would take processor
time and the interpreter lock from the normal step that has just ended and whose result is being
sent.

Guarantees: thread-safe; a thread passes the gate when no normal work is pending, or after
`MAX_WAIT_SECONDS`, so that low-priority work is delayed but never starved.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it requires Unix
    from runtime.foundation.host_turns import HostTurns

MAX_WAIT_SECONDS = 0.05  # the longest that one node of low-priority work waits at the gate
# A thread at the gate polls. Its first pause is the shortest; each next pause is twice as long, up
# to the longest.
_SHORTEST_PAUSE_SECONDS = 0.0001
_LONGEST_PAUSE_SECONDS = 0.001
SWITCH_INTERVAL_SECONDS = 0.00002  # how long a low-priority thread may keep the interpreter lock
AWAY_SWITCH_INTERVAL_SECONDS = 0.00005  # the interval while a child process does all such work
_TIMER_SLACK_NANOS = 1000  # by default, Linux may add 50 µs to every timed wait
_SET_TIMER_SLACK = 29  # prctl(PR_SET_TIMERSLACK)


class PriorityGate:
    """Counts pending normal steps, and lets low-priority threads wait while there are any.

    Several processes of one server wait for each other's steps: see `share`.
    """

    def __init__(self) -> None:
        # Changes with each normal step that ends, or runs in the loop's thread; threads may
        # overwrite each other's counts.
        self.ended = 0
        self._lock = threading.Lock()  # guards the fields below
        self._own = 0  # number of normal steps queued or running in this process
        self._publish: Callable[[int], object] | None = None
        self._elsewhere: Callable[[], int] | None = None
        self._low_priority_tasks = 0
        self._away = 0  # number of low-priority tasks whose work a child process is doing
        self._long = 0  # number of `long_work` contexts
        self._turns: dict[str, HostTurns] = {}  # by the name of a low-priority pool
        self._usual_switch_interval = sys.getswitchinterval()

    @property
    def pending(self) -> int:
        """The number of normal steps queued or running; it takes no lock."""
        if self._own or self._elsewhere is None:
            return self._own
        return self._elsewhere()

    def share(self, publish: Callable[[int], object], elsewhere: Callable[[], int]) -> None:
        """Let other processes know of the steps of this one, and wait for theirs too.

        `publish` is called with each new number of steps of this process, and `elsewhere` returns
        the number of those of the other processes; both are called often.
        """
        with self._lock:
            self._publish, self._elsewhere = publish, elsewhere

    def take_turns(self, pool: str, turns: HostTurns) -> None:
        """Let the tasks of a low-priority pool take turns with those of other processes."""
        self._turns[pool] = turns

    def turn_of(self, pool: str) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that waits for the turn of a task of a low-priority pool."""
        turns = self._turns.get(pool)
        return contextlib.nullcontext() if turns is None else turns.turn()

    def enter(self) -> None:
        """Count a normal step that has been queued."""
        self._add(1)

    def leave(self) -> None:
        """Count a normal step that has ended."""
        self._add(-1)
        self.ended += 1

    def _add(self, steps: int) -> None:
        with self._lock:
            self._own += steps
            if self._publish is not None:
                self._publish(self._own)

    def pass_through(self) -> None:
        """Wait while normal work is pending, for at most `MAX_WAIT_SECONDS`."""
        if self.pending:
            self.wait()

    def wait(self) -> None:
        """Poll until no normal work is pending, for at most `MAX_WAIT_SECONDS`."""
        end = time.monotonic() + MAX_WAIT_SECONDS
        pause = _SHORTEST_PAUSE_SECONDS
        while self.pending and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def low_priority_task(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager for a low-priority task, which shortens the switch interval."""
        return _CountContext(self, 1, 0, 0)

    def away(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager for the time in which a child process does a task's work."""
        return _CountContext(self, 0, 1, 0)

    def long_work(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager for Python code of normal priority that takes long.

        With the usual interval, a thread that waits for the interpreter lock, such as an event
        loop's, gets it after 5 ms. It does not get it when the other thread pauses for 20 µs,
        because to wake up takes it 50 µs where its processor had nothing to do.
        """
        return _CountContext(self, 0, 0, 1)

    def _count(self, tasks: int, away: int, long: int) -> None:
        with self._lock:
            if not self._low_priority_tasks and not self._long:
                self._usual_switch_interval = sys.getswitchinterval()
            self._low_priority_tasks += tasks
            self._away += away
            self._long += long
            if self._low_priority_tasks > self._away:
                interval = SWITCH_INTERVAL_SECONDS
            elif self._low_priority_tasks or self._long:
                interval = AWAY_SWITCH_INTERVAL_SECONDS
            else:
                interval = self._usual_switch_interval
            sys.setswitchinterval(min(interval, self._usual_switch_interval))


class _CountContext(contextlib.AbstractContextManager[None]):
    """A context that adjusts the gate's counts. It is a class because a generator is slower."""

    __slots__ = ("_changes", "_gate")

    def __init__(self, gate: PriorityGate, tasks: int, away: int, long: int) -> None:
        self._gate = gate
        self._changes = tasks, away, long

    def __enter__(self) -> None:
        self._gate._count(*self._changes)

    def __exit__(self, *_: object) -> None:
        tasks, away, long = self._changes
        self._gate._count(-tasks, -away, -long)


gate = PriorityGate()


def reduce_timer_slack() -> None:
    """Reduce the timer slack of the calling thread and of the threads that it starts afterwards.

    Timed waits, such as the wait for the interpreter lock, then end at most 1 µs late. On systems
    other than Linux nothing changes.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, _TIMER_SLACK_NANOS, 0, 0, 0)
