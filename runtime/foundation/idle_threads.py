"""IdleThreads: the threads of a pool that wait for work, of which each token wakes one.

The thread that began to wait last wakes first, because its data is still in the caches. A
`queue.SimpleQueue` wakes a second thread for each item, which finds nothing: beside a step of
0.1 ms, the two threads passed the interpreter lock to each other four times.

Guarantees: thread-safe; tokens are taken in the order in which they were put; a thread that waits
holds no lock.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable


class IdleThreads:
    """Tokens, and the threads that wait for one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below
        self._tokens: collections.deque[bool] = collections.deque()
        self._waiting: list[_Waiter] = []

    @property
    def waiting(self) -> int:
        """The number of threads that wait and have no token yet."""
        return len(self._waiting)

    def get(self) -> bool:
        """Wait for a token and take it."""
        with self._lock:
            if self._tokens:
                return self._tokens.popleft()
            waiter = _Waiter()
            self._waiting.append(waiter)
        waiter.given.acquire()
        return waiter.token

    def put(self, token: bool) -> None:
        """Add a token, and wake a thread if one waits."""
        wake = self.give(token)
        if wake is not None:
            wake()

    def give(self, token: bool) -> Callable[[], object] | None:
        """Add a token; return what wakes the thread that has got it, or None if none waits.

        The caller must call it, and should hold no lock then that the thread will need.
        """
        with self._lock:
            if not self._waiting:
                self._tokens.append(token)
                return None
            waiter = self._waiting.pop()
        waiter.token = token
        return waiter.given.release


class _Waiter:
    """A thread that waits until `given` is released, and then has `token`."""

    __slots__ = ("given", "token")

    def __init__(self) -> None:
        self.given = threading.Lock()
        self.given.acquire()
        self.token = False
