"""OverdueStep: ends a child that runs on after its step has been cancelled.

A thread of the pool waits for the child, and a kernel in native code does not look at cancellation.

Guarantees: thread-safe; `kill` is never called for a step that has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from runtime.foundation.deadline_timer import Timeout, deadline_timer

GRACE_SECONDS = 1.0  # how long a child may run on after its step was cancelled


class OverdueStep:
    """The step that one child runs; `kill` ends the child and must not block."""

    def __init__(self, kill: Callable[[], object]) -> None:
        self._kill = kill
        self._lock = threading.Lock()  # guards the fields below
        self._step_id: int | None = None
        self._timeout: Timeout | None = None

    def begin(self, step_id: int) -> None:
        """Record that the child is about to run a step."""
        with self._lock:
            self._step_id = step_id

    def end(self) -> None:
        """Record that nobody waits for the child any more."""
        with self._lock:
            self._step_id = None
            if self._timeout is not None:
                self._timeout.cancel()
                self._timeout = None

    def cancelled(self, step_id: int) -> None:
        """Kill the child after GRACE_SECONDS unless the step has ended by then."""
        with self._lock:
            if self._step_id == step_id:
                end = time.monotonic() + GRACE_SECONDS
                self._timeout = deadline_timer.call_at(end, lambda: self._expire(step_id))

    def _expire(self, step_id: int) -> None:
        with self._lock:
            if self._step_id == step_id:
                self._kill()
