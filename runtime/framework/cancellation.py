"""Cancellation of steps: a flag that is cheap to read, and callbacks for blocked operations.

Guarantees: thread-safe; the first cancellation takes effect and its error is the one that all
callers get; callbacks run once, in the cancelling thread, without the lock; a callback can't be
registered after the cancellation, so no operation waits for one that has already happened.

TF: tensorflow/core/framework/cancellation.h (CancellationManager)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from runtime.foundation.errors import OpError

_log = logging.getLogger(__name__)

# The error text of a step that was running when its session closed, unless a blocked operation
# failed with a text of its own. TF: direct_session.cc (RunInternal)
RUN_CANCELLED = "Run call was cancelled"


class CancellationManager:
    """The cancellation of a step or a session; cancelling a parent cancels its children too."""

    __slots__ = ("_callbacks", "_last", "_lock", "_next_token", "_parent", "_parent_token", "error")

    def __init__(self, parent: CancellationManager | None = None) -> None:
        # guards _callbacks, _last and _next_token, and the append to error
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._last: dict[int, Callable[[], object]] | None = None
        self._next_token = 0
        self.error: list[OpError] = []  # empty until cancelled: `if manager.error:` is the check
        self._parent = parent
        self._parent_token: int | None = None
        if parent is not None:
            self._parent_token = parent.add_callback(self._cancel_from_parent)
            if self._parent_token is None:
                self.cancel(parent.error[0])

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called on this manager or a parent."""
        return bool(self.error)

    def check(self) -> None:
        """Raise the error of the cancellation if there was one."""
        if self.error:
            raise self.copy_of_error()

    def copy_of_error(self) -> OpError:
        """A copy of the cancellation's error: each thread that raises it requires its own."""
        return self.error[0].copy()

    def add_callback(self, callback: Callable[[], object], *, is_last: bool = False) -> int | None:
        """Register `callback` and return its token; None when cancelled: it will not be called.

        A callback with `is_last` is called after all others, when blocked operations have ended.
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
        """Remove a callback; False when it is no longer registered: called, or about to be."""
        if token is None:
            return False
        with self._lock:
            if self._callbacks.pop(token, None) is not None:
                return True
            return self._last is not None and self._last.pop(token, None) is not None

    def cancel(self, error: OpError) -> bool:
        """Cancel with `error`; False, without effect, when already cancelled."""
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
        """Remove the registration with the parent, at the end of the step."""
        if self._parent is not None:
            self._parent.remove_callback(self._parent_token)
            self._parent = None

    def _cancel_from_parent(self) -> None:
        if self._parent is not None:
            self.cancel(self._parent.error[0])
