"""One thread that calls back at given instants: the deadlines of steps.

Guarantees: thread-safe; a callback runs once, not before its instant, unless cancelled; it runs in
the timer's thread and must be short. The thread starts with the first deadline. What is kept of
cancelled ones is bounded: almost every step ends long before its deadline.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

_log = logging.getLogger(__name__)
_MIN_CANCELLED = 1000  # entries; fewer are not worth walking the heap for


class Timeout:
    """A pending callback; `cancel` it when it is no longer wanted."""

    __slots__ = ("_timer", "callback")

    def __init__(self, timer: DeadlineTimer, callback: Callable[[], object]) -> None:
        self._timer = timer
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Forget the callback, and what it holds, at once."""
        if self.callback is not None:
            self.callback = None
            self._timer.cancelled += 1  # a race may lose one


class DeadlineTimer:
    """A heap of instants and the thread that waits for the first."""

    def __init__(self) -> None:
        self._condition = threading.Condition()  # guards _heap and _thread
        self._heap: list[tuple[float, int, Timeout]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self.cancelled = 0  # entries of the heap, roughly

    def __len__(self) -> int:
        return len(self._heap)

    def call_at(self, deadline: float, callback: Callable[[], object]) -> Timeout:
        """Call `callback` at `deadline` (`time.monotonic()` seconds)."""
        timeout = Timeout(self, callback)
        with self._condition:
            if self.cancelled > max(_MIN_CANCELLED, len(self._heap) // 2):
                self._heap = [each for each in self._heap if each[2].callback is not None]
                heapq.heapify(self._heap)
                self.cancelled = 0
            heapq.heappush(self._heap, (deadline, next(self._order), timeout))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="deadlines", daemon=True)
                self._thread.start()
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
                    self._condition.wait(remaining)
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
