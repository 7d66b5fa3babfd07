"""Calls in other threads that begin in the midst of something, without sleeps or timeouts."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from runtime.foundation.errors import OpError


class SignallingLock:
    """A lock that reports who has to wait for it."""

    def __init__(self, events: queue.SimpleQueue[str]) -> None:
        self._lock = threading.RLock()
        self._events = events

    def acquire(self, blocking: bool = True) -> bool:
        if self._lock.acquire(blocking=False):
            return True
        if not blocking:
            return False
        self._events.put("waits")
        return self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Concurrent:
    """A call in a thread of its own, which may have to wait for the lock of a resource."""

    def __init__(self, resource: Any, function: Callable[[], Any], lock: str = "_lock") -> None:
        self._events: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._result: Any = None
        self._error: OpError | None = None
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        setattr(resource, lock, SignallingLock(self._events))

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            self._result = function()
        except OpError as error:
            self._error = error
        self._events.put("done")

    def start(self) -> str:
        """Begin; whether it is "done" by itself or "waits"."""
        self._thread.start()
        return self._events.get()

    def result(self) -> Any:
        """What the call returns, or raises, in the end."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result
