"""The tasks of a thread pool: those that wait, those that its threads run, and what follows one.

Guarantees: none of its own; the lock of a pool guards its `RunningTasks`.
"""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence

_log = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True)
class PoolTask:
    """A task of an owner, whose `ended` is not empty once the task's step has ended."""

    work: Callable[[], object]
    scheduled: float  # time.monotonic() when the task was scheduled
    trace_id: int
    context: contextvars.Context  # the context variables of the thread that scheduled the task
    owner: Hashable
    ended: Sequence[object]
    started: float = 0.0  # time.monotonic() when a thread took the task


class RunningTasks:
    """The tasks that threads run for one pool, at most one in each thread."""

    def __init__(self) -> None:
        self._by_thread: dict[int, PoolTask] = {}

    def __len__(self) -> int:
        return len(self._by_thread)

    def begin(self, task: PoolTask) -> None:
        """Add a task, which the calling thread begins."""
        self._by_thread[threading.get_ident()] = task

    def end(self) -> None:
        """Remove the task of the calling thread."""
        del self._by_thread[threading.get_ident()]

    @property
    def stuck(self) -> int:
        """The number of tasks that still run although their steps have ended."""
        return sum(bool(task.ended) for task in self._by_thread.values())

    def of_owner(self, owner: Hashable) -> int:
        """Return the number of tasks of an owner."""
        return sum(task.owner == owner for task in self._by_thread.values())

    def has_busy_owner(self, threads: int, seconds: float) -> bool:
        """Return whether one owner, not None, has had as many tasks as `threads` for `seconds`."""
        since = time.monotonic() - seconds
        long = collections.Counter(
            task.owner for task in self._by_thread.values() if task.started <= since
        )
        return any(owner is not None and count >= threads for owner, count in long.items())


def call_all(callbacks: list[Callable[[], object]], pool: str) -> None:
    """Call and remove the callbacks, also those that they add."""
    while callbacks:
        call_and_log(callbacks.pop(0), pool)


def call_and_log(callback: Callable[[], object], pool: str) -> None:
    """Call what follows a task of a pool; log its error."""
    try:
        callback()
    except Exception:
        _log.exception("What follows a task of thread pool %s failed", pool)
