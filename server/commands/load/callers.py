"""Call a target from several threads, for a limited time, and measure each call.

Closed loop: each caller calls again when it has its answer. Open loop: calls are due at fixed
times, whichever caller is free makes the next one, and a call is measured from the time at which it
was due; so what waits because the target is slow counts as slow.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
import threading
import time

from server.commands.load.latencies import Latencies
from server.commands.load.target import Call, CallFailed, Size, Target

_LOST_SECONDS = 0.1  # a caller that has lost its connection waits before it calls again
_JOIN_SECONDS = 1.0  # an interrupted run waits for calls under way


class _Tally:
    """What one caller has measured; read by other threads only after its end, or to estimate."""

    def __init__(self) -> None:
        self.latencies = Latencies()
        self.failed: collections.Counter[str] = collections.Counter()
        self.messages: dict[str, str] = {}

    def call(self, call: Call, due: float) -> bool:
        """Make one call that was due at `due`; return whether the connection is still there."""
        try:
            call()
        except CallFailed as failure:
            self.failed[failure.code] += 1
            self.messages.setdefault(failure.code, failure.message)
            return not failure.lost
        self.latencies.add(time.perf_counter() - due)
        return True


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """What a run has measured: of calls that ended, by the time it took."""

    latencies: Latencies
    failed: collections.Counter[str]
    messages: dict[str, str]  # code → the message of the first call that failed so
    seconds: float  # from the first call to the last answer
    unsent: int = 0  # calls that were due, but no caller was free in time
    under_way: int = 0  # callers that still wait for an answer
    client: float = 0.0  # the cores that the load generator used beside its target

    @property
    def requests(self) -> int:
        """Number of the calls that ended."""
        return self.latencies.count + self.failed.total()


class Callers:
    """The callers of one target. `run` may be called once; `stop` ends it early."""

    def __init__(self, target: Target, size: Size) -> None:
        self._target = target
        self._size = size
        self._stop = threading.Event()
        self._lock = threading.Lock()  # guards _next
        self._next = 0  # number of the calls of the open loop that a caller has taken
        self._tallies: list[_Tally] = []
        self._begun = 0.0

    def warm_up(self) -> None:
        """Call for the time of the warm-up, uncounted; raise CallFailed if the first call fails."""
        call = self._target.open()
        try:
            end = time.perf_counter() + self._size.warm_up
            call()
            while time.perf_counter() < end:
                with contextlib.suppress(CallFailed):  # the run itself counts what fails
                    call()
        finally:
            call.close()

    def run(self) -> None:
        """Call until the time is over; `measured` then has all calls."""
        self._tallies = [_Tally() for _ in range(self._size.callers)]
        self._begun = time.perf_counter()
        self._computed = time.process_time()
        self._threads = [
            threading.Thread(target=self._caller, args=(tally,), daemon=True)
            for tally in self._tallies
        ]
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()

    def stop(self) -> None:
        """End the run early: no caller begins a call."""
        self._stop.set()
        end = time.perf_counter() + _JOIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.perf_counter()))

    def measured(self) -> Measured:
        """Return what was measured so far."""
        latencies, failed = Latencies(), collections.Counter[str]()
        messages: dict[str, str] = {}
        for tally in self._tallies:
            latencies.merge(tally.latencies)
            failed.update(dict(tally.failed))
            messages = dict(tally.messages) | messages
        seconds = time.perf_counter() - self._begun
        return Measured(
            latencies, failed, messages, seconds, self._unsent(seconds),
            sum(thread.is_alive() for thread in self._threads),
            0.0 if self._target.in_process else self._cores(seconds),
        )  # fmt: skip

    def progress(self) -> tuple[float, int]:
        """Return the part of the time that is over, and the number of the calls that ended."""
        seconds = time.perf_counter() - self._begun if self._begun else 0.0
        ended = sum(each.latencies.count + each.failed.total() for each in list(self._tallies))
        return seconds / self._size.seconds, ended

    def _cores(self, seconds: float) -> float:
        return (time.process_time() - self._computed) / max(seconds, 1e-9)

    def _unsent(self, seconds: float) -> int:
        if self._size.rate is None:
            return 0
        due = math.ceil(min(seconds, self._size.seconds) * self._size.rate)
        return max(0, due - self._next)

    def _caller(self, tally: _Tally) -> None:
        call = self._target.open()
        try:
            end = self._begun + self._size.seconds
            while (due := self._due(end)) is not None:
                if not tally.call(call, due):
                    self._stop.wait(_LOST_SECONDS)
        finally:
            call.close()

    def _due(self, end: float) -> float | None:
        """Wait until the next call is due; return its time, or None if the run is over."""
        now = time.perf_counter()
        if self._stop.is_set() or now >= end:
            return None
        if self._size.rate is None:
            return now
        with self._lock:
            due = self._begun + self._next / self._size.rate
            if due < end:
                self._next += 1
        if self._stop.wait(max(0.0, min(due, end) - now)) or due >= end:
            return None
        return due
