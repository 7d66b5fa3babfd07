"""Cancellation of steps: a flag that is cheap to read, and callbacks that end blocked operations.

A step is one execution of Session.run. Guarantees: thread-safe; only the first call of `cancel` has
an effect, and all callers get its error; each callback is called at most once, in the thread that
cancels, while the lock is not held; no callback can be registered after the cancellation, so no
operation waits for a cancellation that has already happened.

TF: tensorflow/core/framework/cancellation.h (CancellationManager)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from runtime.foundation.errors import OpError

_log = logging.getLogger(__name__)

# The error text of a step that was running when its session closed. If a blocked operation fails
# with another text, the step has that text instead. TF: direct_session.cc (RunInternal)
RUN_CANCELLED = "Run call was cancelled"


class CancellationManager:
    """The cancellation of a step or a session; cancelling a manager also cancels its children."""

    __slots__ = ("_callbacks", "_last", "_lock", "_next_token", "_parent", "_parent_token", "error")

    def __init__(self, parent: CancellationManager | None = None) -> None:
        # guards `_callbacks`, `_last`, `_next_token` and the append to `error`
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._last: dict[int, Callable[[], object]] | None = None
        self._next_token = 0
        self.error: list[OpError] = []  # the cancellation's error; empty until cancelled
        self._parent = parent
        self._parent_token: int | None = None
        if parent is not None:
            self._parent_token = parent.add_callback(self._cancel_from_parent)
            if self._parent_token is None:
                self.cancel(parent.error[0])

    @property
    def is_cancelled(self) -> bool:
        """Whether this manager or a parent of it was cancelled."""
        return bool(self.error)

    def check(self) -> None:
        """Raise a copy of the cancellation's error if this manager is cancelled."""
        if self.error:
            raise self.copy_of_error()

    def copy_of_error(self) -> OpError:
        """Return a copy of the cancellation's error; each thread must raise a copy of its own."""
        return self.error[0].copy()

    def add_callback(self, callback: Callable[[], object], *, is_last: bool = False) -> int | None:
        """Register `callback`, to be called by `cancel`, and return its token.

        Return None if already cancelled; `callback` is then never called. If `is_last`, it is
        called after all callbacks that end blocked operations.
        """
        with self._lock:
            if self.error:
                return None
            token = self._next_token
            self._next_token += 1
            if is_last:
                self._last = self._last or {}
                self._last[token] = callback
            else:
                self._callbacks[token] = callback
            return token

    def remove_callback(self, token: int | None) -> bool:
        """Remove a callback; return False if none is registered under `token`.

        A callback that is no longer registered has been called or is about to be called.
        """
        if token is None:
            return False
        with self._lock:
            if self._callbacks.pop(token, None) is not None:
                return True
            return self._last is not None and self._last.pop(token, None) is not None

    def cancel(self, error: OpError) -> bool:
        """Cancel with `error`, call the callbacks and return True.

        If already cancelled, do nothing and return False.
        """
        with self._lock:
            if self.error:
                return False
            self.error.append(error)
            callbacks = [*self._callbacks.values(), *(self._last or {}).values()]
            self._callbacks.clear()
            self._last = None
        for callback in callbacks:
            try:
                callback()
            except Exception:
                _log.exception("A cancellation callback failed")
        return True

    def detach(self) -> None:
        """Remove this manager's callback from the parent; must be called when the step ends."""
        if self._parent is not None:
            self._parent.remove_callback(self._parent_token)
            self._parent = None

    def _cancel_from_parent(self) -> None:
        if self._parent is not None:
            self.cancel(self._parent.error[0])
