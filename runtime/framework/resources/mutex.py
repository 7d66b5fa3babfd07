"""Mutexes that steps wait for without holding a thread.

Guarantees: thread-safe; who waits is served in order; a lock is given back once, by its consumer
or when nothing refers to it any more.

TF: tensorflow/core/kernels/mutex_ops.cc (Mutex)
"""

from __future__ import annotations

import collections
import threading
import weakref

from runtime.foundation.errors import CancelledError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred
from runtime.framework.resource_manager import Resource


class MutexLock:
    """The value of MutexLock: holds the mutex until released."""

    def __init__(self, mutex: Mutex) -> None:
        self.release = weakref.finalize(self, mutex.unlock)

    @property
    def shape(self) -> tuple[int, ...]:
        """A lock is a scalar tensor."""
        return ()


class Mutex(Resource):
    """Held by one lock at a time."""

    type_name = "N10tensorflow12_GLOBAL__N_15MutexE"

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards what follows; a finalizer may run anywhere
        self._is_held = False
        self._waiting: collections.deque[Deferred] = collections.deque()

    def lock(self, cancellation: CancellationManager) -> MutexLock | Deferred:
        """A MutexLock, or a Deferred of one."""
        with self._lock:
            if not self._is_held:
                self._is_held = True
                return MutexLock(self)
            waiting = Deferred()
            self._waiting.append(waiting)
        return waiting.until_cancelled(
            cancellation,
            lambda: waiting.set_error(CancelledError("Lock acquisition cancelled.")),
        )

    def unlock(self) -> None:
        """Give the mutex to who waits longest."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_held = False
                    return
                waiting = self._waiting.popleft()
            if waiting.set_value(made := MutexLock(self)):
                return
            made.release.detach()  # cancelled meanwhile: the next one

    def fork(self) -> Mutex | None:
        """A free mutex like this one; None while it is held."""
        return None if self._is_held else Mutex()
