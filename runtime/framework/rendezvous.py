"""The rendezvous of a step, which passes values, by key, from one partition to another.

Guarantees: thread-safe; a value is received once; `send` never blocks, and a receive that waits
occupies no thread; `send` and `receive` of a key may come in either order; cancelling the step
ends every pending receive with its error.

TF: tensorflow/core/framework/rendezvous.h, common_runtime/local_rendezvous.cc
"""

from __future__ import annotations

import threading

from runtime.foundation.errors import InternalError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred
from runtime.framework.tensor_value import TensorValue


class Rendezvous:
    """The values that have been sent and not received, and the receives that wait, by key."""

    def __init__(self, cancellation: CancellationManager) -> None:
        self._cancellation = cancellation
        self._lock = threading.Lock()  # guards the two tables
        self._sent: dict[str, TensorValue] = {}
        self._waiting: dict[str, Deferred] = {}
        self._token = cancellation.add_callback(self._abort)

    def send(self, key: str, value: TensorValue) -> None:
        """Send a value; InternalError when a value sent under the key is still to be received."""
        with self._lock:
            waiting = self._waiting.pop(key, None)
            if waiting is None:
                if key in self._sent:
                    raise InternalError(f"Duplicate send to rendezvous key {key}")
                self._sent[key] = value
        if waiting is not None:
            waiting.set_value(value)

    def receive(self, key: str) -> Deferred:
        """A Deferred of the value of a key; complete at once if the value has been sent."""
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
        """Remove the registration with the cancellation, at the end of the step."""
        self._cancellation.remove_callback(self._token)

    def _abort(self) -> None:
        with self._lock:
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for deferred in waiting:
            deferred.set_error(self._cancellation.copy_of_error())
