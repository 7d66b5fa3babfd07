"""The rendezvous of a step, which passes values from one partition of the graph to another by key.

Guarantees: thread-safe; a value is received once; `send` never blocks, and a receive that waits
blocks no thread; `receive` may be called before or after `send`; if the step is cancelled, every
pending receive ends with the cancellation's error.

TF: tensorflow/core/framework/rendezvous.h, common_runtime/local_rendezvous.cc
"""

from __future__ import annotations

import threading

from runtime.foundation.errors import InternalError
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred
from runtime.framework.tensor_value import TensorValue


class Rendezvous:
    """By key: the values that were sent but not yet received, and the receives that wait."""

    def __init__(self, cancellation: CancellationManager) -> None:
        self._cancellation = cancellation
        self._lock = threading.Lock()  # guards `_sent` and `_waiting`
        self._sent: dict[str, TensorValue] = {}
        self._waiting: dict[str, Deferred] = {}
        self._token = cancellation.add_callback(self._abort)

    def send(self, key: str, value: TensorValue) -> None:
        """Send `value` under `key`.

        Raises InternalError if an earlier value that was sent under `key` has not been received.
        """
        with self._lock:
            waiting = self._waiting.pop(key, None)
            if waiting is None:
                if key in self._sent:
                    raise InternalError(f"Duplicate send to rendezvous key {key}")
                self._sent[key] = value
        if waiting is not None:
            waiting.set_value(value)

    def receive(self, key: str) -> Deferred:
        """Return a Deferred of the value sent under `key`, which may be complete already."""
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
        """Remove the callback from the cancellation; must be called when the step ends."""
        self._cancellation.remove_callback(self._token)

    def _abort(self) -> None:
        with self._lock:
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for deferred in waiting:
            deferred.set_error(self._cancellation.copy_of_error())
