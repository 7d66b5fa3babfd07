"""The gate at which low-priority work waits, between nodes, while normal work is pending.

A step is one execution of Session.run. Nice values do not suffice, because all other threads wait
for a niced thread while that thread holds the interpreter lock. The p99 of a 0.25 ms request is
1.5 ms if nothing else runs. Beside a chain of small ops it is 31 ms if a thread of normal priority
runs the chain, 34 ms if a thread of nice 19 does, and 0.65 ms with this gate and a switch interval
of 0.5 ms.

While a low-priority pool exists, the interpreter's switch interval is `SWITCH_INTERVAL_SECONDS`,
so that a thread that waits for the interpreter lock gets it after about that time. The usual 5 ms
would be too long. It is not restored between two tasks, because a thread reads the interval when it
begins to wait, and would still wait with that interval when the next task runs, as in half of the
slow requests beside a chain of small ops. A shorter interval is worse: a waiting thread asks for
the lock again after each interval, and to set a timer takes a virtual machine up to 60 µs. With
20 µs, such a thread never left its processor, on which another waited that had been preempted while
it held the lock: in traces of the scheduler for 10 to 90 ms.

A waiting thread polls, with pauses. It is not notified, because a notification would take processor
time and the interpreter lock from the normal step that has just ended and whose result is being
sent. For the same reason the gate stays closed for `RESULT_SECONDS` after a normal step of this
process has ended: its caller still has to wake up and take the lock.

A thread that has just woken to start a normal step can't be seen: it counts only when it has the
lock. A low-priority task therefore gives the lock up for `WAY_SECONDS` where it would otherwise
hold it longest: after a native call, before it completes its step and before it wakes its own
caller (`give_way`), if normal steps run at all. Beside MobileNetV2 in one process, the p99 of 0.1 s
is 1.2 to 1.4 times the idle one with this, and 1.4 to 1.6 times without.

Guarantees: thread-safe; a thread passes the gate when no normal work is pending, or after
`MAX_WAIT_SECONDS`, so that low-priority work is delayed but never starved.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it requires Unix
    from runtime.foundation.host_turns import HostTurns

MAX_WAIT_SECONDS = 0.05  # the longest that one node of low-priority work waits at the gate
# A thread at the gate polls. Its first pause is the shortest; each next pause is twice as long.
# When the gate stays open, the thread goes on after at most twice the time for which it had to
# wait; an opening between two polls is missed. A poll takes the interpreter lock for 6 µs only,
# but a normal step that begins meanwhile sleeps and has to be woken: where such steps hardly ever
# pause, a poll every millisecond alone made their p99 of 0.1 s 1.08 and 1.20 times the idle one.
_SHORTEST_PAUSE_SECONDS = 0.0001
SWITCH_INTERVAL_SECONDS = 0.0002  # how long another thread may keep the interpreter lock
# Of a low-priority thread between two tasks. Beside steps that come every 0.37 ms, tasks of 0.1 ms
# delay fewer of them than with 0.2 ms: the p99 of 0.1 s is 1.34 times the idle one instead of 1.48
# times (medians of nine and five measurements). A fifth fewer tasks run meanwhile; with 1 ms it
# would be half, and one measurement showed no more gain.
PAUSE_SECONDS = 0.0005
RESULT_SECONDS = 0.0001  # from the end of a normal step until its caller has the result
WAY_SECONDS = 0.00008  # in which a thread that has just woken takes the interpreter lock
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
        self._ended_at_pause = 0
        self._ended_at_way = 0
        self._result_until = 0.0  # time.monotonic() until which the last caller takes its result
        self._short_turns = 0  # number of `short_turns` contexts
        self._usual_switch_interval = sys.getswitchinterval()
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the steps, which a fork of the process does not have, and the other processes."""
        self._lock = threading.Lock()  # guards the other fields, those of `short_turns` too
        self._own = 0  # number of normal steps queued or running in this process
        self._publish: Callable[[int], object] | None = None
        self._elsewhere: Callable[[], int] | None = None
        self._turns: dict[str, HostTurns] = {}  # by the name of a low-priority pool

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
        self._result_until = time.monotonic() + RESULT_SECONDS

    def _add(self, steps: int) -> None:
        with self._lock:
            self._own += steps
            if self._publish is not None:
                self._publish(self._own)

    def pass_through(self) -> None:
        """Wait while normal work is pending or has just ended, for at most `MAX_WAIT_SECONDS`."""
        if self._is_closed():
            self.wait()

    def wait(self) -> None:
        """Poll until the gate is open, for at most `MAX_WAIT_SECONDS`."""
        end = time.monotonic() + MAX_WAIT_SECONDS
        pause = _SHORTEST_PAUSE_SECONDS
        while self._is_closed() and (left := end - time.monotonic()) > 0:
            time.sleep(min(pause, left))
            pause *= 2

    def _is_closed(self) -> bool:
        return self.pending > 0 or time.monotonic() < self._result_until

    def give_way(self) -> None:
        """Give up the interpreter lock if a normal step has run since the last time; then wait.

        The wait is that of `pass_through`.
        """
        if self.ended != self._ended_at_way:  # threads may overwrite each other's counts
            self._ended_at_way = self.ended
            time.sleep(WAY_SECONDS)
        self.pass_through()

    def pause_between_tasks(self) -> None:
        """Let others have the interpreter lock, if a normal step has run since the last pause.

        The end of a task and the beginning of the next take 0.2 to 0.4 ms of Python together, for
        which a thread that wakes in between would wait.
        """
        if self.ended != self._ended_at_pause:  # threads may overwrite each other's counts
            self._ended_at_pause = self.ended
            time.sleep(PAUSE_SECONDS)

    @contextlib.contextmanager
    def short_turns(self) -> Iterator[None]:
        """Let threads that wait for the interpreter lock get it soon, inside the context.

        For low-priority pools, and for Python code of normal priority that takes long.
        """
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, contexts: int) -> None:
        with self._lock:
            if not self._short_turns:
                self._usual_switch_interval = sys.getswitchinterval()
            self._short_turns += contexts
            usual = self._usual_switch_interval
            sys.setswitchinterval(
                min(SWITCH_INTERVAL_SECONDS, usual) if self._short_turns else usual
            )


gate = PriorityGate()
os.register_at_fork(after_in_child=gate.begin_anew)


def reduce_timer_slack() -> None:
    """Reduce the timer slack of the calling thread and of the threads that it starts afterwards.

    Timed waits, such as the wait for the interpreter lock, then end at most 1 µs late. On systems
    other than Linux nothing changes.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, _TIMER_SLACK_NANOS, 0, 0, 0)
