"""One thread that calls back at given instants: the deadlines of steps.

Guarantees: thread-safe; a callback runs once, not before its instant, unless cancelled; it runs in
the timer's thread and must be short. The thread starts with the first deadline.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

_log = logging.getLogger(__name__)


class Timeout:
    """A pending callback; `cancel` it when it is no longer wanted."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Forget the callback, and what it holds, at once."""
        self.callback = None


class DeadlineTimer:
    """A heap of instants and the thread that waits for the first."""

    def __init__(self) -> None:
        self._condition = threading.Condition()  # guards _heap and _thread
        self._heap: list[tuple[float, int, Timeout]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None

    def call_at(self, deadline: float, callback: Callable[[], object]) -> Timeout:
        """Call `callback` at `deadline` (`time.monotonic()` seconds)."""
        timeout = Timeout(callback)
        with self._condition:
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
            if callback is not None:
                try:
                    callback()
                except Exception:
                    _log.exception("A deadline callback failed")
            del callback, timeout


deadline_timer = DeadlineTimer()
