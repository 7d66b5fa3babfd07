"""Mutexes for which steps wait without blocking a thread.

Guarantees: thread-safe; waiting steps get the mutex in the order of their calls; a lock is released
once, by the op that consumes it or when no reference to it is left.

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
    """The output of the op MutexLock, which holds the mutex until `release` is called."""

    def __init__(self, mutex: Mutex) -> None:
        self.release = weakref.finalize(self, mutex.unlock)

    @property
    def shape(self) -> tuple[int, ...]:
        """A lock is a scalar tensor."""
        return ()


class Mutex(Resource):
    """A mutex, held by at most one MutexLock at a time."""

    type_name = "N10tensorflow12_GLOBAL__N_15MutexE"

    def __init__(self) -> None:
        # Guards the fields below. Reentrant: a finalizer of a MutexLock, which calls `unlock`, may
        # run in a thread that holds it.
        self._lock = threading.RLock()
        self._is_held = False
        self._waiting: collections.deque[Deferred] = collections.deque()

    def lock(self, cancellation: CancellationManager) -> MutexLock | Deferred:
        """Acquire the mutex: a MutexLock, or a Deferred of one when the mutex is held."""
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
        """Pass the mutex to the step that has waited longest, or mark it as free."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_held = False
                    return
                waiting = self._waiting.popleft()
            if waiting.set_value(made := MutexLock(self)):
                return
            made.release.detach()  # the step was cancelled: pass the mutex to the next one

    def fork(self) -> Mutex | None:
        """A new, free mutex; None while this mutex is held."""
        return None if self._is_held else Mutex()
