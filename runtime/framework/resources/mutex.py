"""Mutexes for which steps wait without blocking a thread.

Guarantees: thread-safe; waiting steps get the mutex in the order of their calls; a MutexLock is
released once, either by the op that consumes it or when no reference to it is left.

TF: tensorflow/core/kernels/mutex_ops.cc (Mutex)
"""

from __future__ import annotations

import collections
import threading
import weakref
from collections.abc import Iterable

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
        """The shape of the tensor that holds the lock, which is a scalar."""
        return ()


class Mutex(Resource):
    """A mutex, which at most one MutexLock holds at a time."""

    type_name = "N10tensorflow12_GLOBAL__N_15MutexE"

    def __init__(self) -> None:
        # Guards the fields below. It is reentrant, because the finalizer of a MutexLock, which
        # calls `unlock`, may run in a thread that already holds this lock.
        self._lock = threading.RLock()
        self._is_held = False
        self._waiting: collections.deque[Deferred] = collections.deque()

    def held(self) -> tuple[int, Iterable[object]]:
        """Return nothing: a mutex keeps no values."""
        return 0, ()

    def lock(self, cancellation: CancellationManager) -> MutexLock | Deferred:
        """Acquire the mutex; return a MutexLock, or a Deferred of one if the mutex is held."""
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
        """Pass the mutex to the step that has waited longest; if none waits, mark it as free."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_held = False
                    return
                waiting = self._waiting.popleft()
            if waiting.set_value(made := MutexLock(self)):
                return
            made.release.detach()  # the step was cancelled, so the next step gets the mutex

    def fork(self) -> Mutex | None:
        """Return a new, free mutex, or None if this mutex is held."""
        return None if self._is_held else Mutex()
