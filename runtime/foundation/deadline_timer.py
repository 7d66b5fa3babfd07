"""A thread that runs callbacks at given times; used for the deadlines of steps.

Guarantees: thread-safe; a callback that is not cancelled runs once, not before its deadline.
Callbacks run in the timer's thread and must be short. The thread is started for the first deadline.
Almost every step ends, and cancels its callback, long before the deadline; the number of cancelled
entries in the heap is therefore bounded.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable

_log = logging.getLogger(__name__)
# A wait as long as a client's timeout of 2^63 milliseconds would raise OverflowError.
_MAX_WAIT_SECONDS = 3600.0
_MIN_CANCELLED = 1000  # entries; rebuilding the heap takes too long to remove fewer than these


class Timeout:
    """A pending callback, which `cancel` removes."""

    __slots__ = ("_timer", "callback")

    def __init__(self, timer: DeadlineTimer, callback: Callable[[], object]) -> None:
        self._timer = timer
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Drop the callback, and thereby the objects that it refers to, at once."""
        if self.callback is not None:
            self.callback = None
            self._timer.cancelled += 1  # without a lock, so a concurrent increment may be lost


class DeadlineTimer:
    """A heap of deadlines and the thread that waits for the earliest."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the callbacks and the thread, which a fork of the process does not have."""
        self._condition = threading.Condition()  # guards `_heap` and `_thread`
        self._heap: list[tuple[float, int, Timeout]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self.cancelled = 0  # approximate number of cancelled entries in the heap

    def __len__(self) -> int:
        return len(self._heap)

    def call_at(self, deadline: float, callback: Callable[[], object]) -> Timeout:
        """Call `callback` when `time.monotonic()` reaches `deadline`; return the pending callback.

        The deadline is in seconds.
        """
        timeout = Timeout(self, callback)
        with self._condition:
            if self.cancelled > max(_MIN_CANCELLED, len(self._heap) // 2):
                self._heap = [each for each in self._heap if each[2].callback is not None]
                heapq.heapify(self._heap)
                self.cancelled = 0
            heapq.heappush(self._heap, (deadline, next(self._order), timeout))
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="deadlines", daemon=True)
                thread.start()  # RuntimeError if the system can't start a thread now
                self._thread = thread
            elif self._heap[0][2] is timeout:
                self._condition.notify()
        return timeout

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._heap:
                    self._condition.wait()
                deadline, _, timeout = self._heap[0]
                remaining = deadline - time.monotonic()
                if timeout.callback is not None and remaining > 0:
                    self._condition.wait(min(remaining, _MAX_WAIT_SECONDS))
                    continue
                heapq.heappop(self._heap)
                callback = timeout.callback
                if callback is None:
                    self.cancelled -= 1
            if callback is not None:
                try:
                    callback()
                except Exception:
                    _log.exception("A deadline callback failed")
            del callback, timeout


deadline_timer = DeadlineTimer()
os.register_at_fork(after_in_child=deadline_timer.begin_anew)
