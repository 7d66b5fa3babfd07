"""Rendezvous: where the partitions of one step meet; a value sent under a key is received once.

Guarantees: thread-safe; the sender never waits, and the receiver holds no thread while it does; a
value may come before or after it is asked for; cancelling the step ends every pending receive.

TF: tensorflow/core/framework/rendezvous.h, common_runtime/local_rendezvous.cc
"""

from __future__ import annotations

import threading
from typing import Any

from runtime.foundation.errors import InternalError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred


class Rendezvous:
    """The mailbox of one step."""

    def __init__(self, cancellation: CancellationManager) -> None:
        self._cancellation = cancellation
        self._lock = threading.Lock()  # guards the two tables
        self._sent: dict[str, Any] = {}
        self._waiting: dict[str, Deferred] = {}
        self._token = cancellation.add_callback(self._abort)

    def send(self, key: str, value: Any) -> None:
        """Give a value; InternalError when the key was used before and not yet received."""
        with self._lock:
            waiting = self._waiting.pop(key, None)
            if waiting is None:
                if key in self._sent:
                    raise InternalError(f"Duplicate send to rendezvous key {key}")
                self._sent[key] = value
        if waiting is not None:
            waiting.set_value(value)

    def receive(self, key: str) -> Deferred:
        """The value of a key, now or later."""
        deferred = Deferred()
        with self._lock:
            if key in self._sent:
                deferred.set_value(self._sent.pop(key))
            elif self._cancellation.error:
                deferred.set_error(self._cancellation.copy_of_error())
            else:
                self._waiting[key] = deferred
        return deferred

    def close(self) -> None:
        """The step has ended: let go of the cancellation."""
        self._cancellation.remove_callback(self._token)

    def _abort(self) -> None:
        with self._lock:
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for deferred in waiting:
            deferred.set_error(self._cancellation.copy_of_error())
