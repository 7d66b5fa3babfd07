"""The thread that polls the file system and retries loads.

TF: `--file_system_poll_wait_seconds`: > 0 that often, 0 once at the start, < 0 never.
"""

from __future__ import annotations

import logging
import threading
import time

from server.models.manager import ModelManager

_log = logging.getLogger(__name__)

_IDLE_SECONDS = 1.0  # how often planned retries are looked for when the file system is not polled


class ModelPoller:
    """Calls the manager from a thread of its own between `start` and `stop`."""

    def __init__(self, manager: ModelManager, interval_seconds: float) -> None:
        self._manager = manager
        self._interval = interval_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="model_poller", daemon=True)

    def start(self) -> None:
        """Begin; the first poll happens at once."""
        self._thread.start()

    def stop(self) -> None:
        """End after the poll that may be running, and wait for that."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        if self._interval >= 0:
            self._poll()
        next_poll = time.monotonic() + self._interval
        while not self._stopped.wait(self._wait_seconds(next_poll)):
            self._manager.retry_due_loads()
            if self._interval > 0 and time.monotonic() >= next_poll:
                self._poll()
                next_poll = time.monotonic() + self._interval

    def _wait_seconds(self, next_poll: float) -> float:
        instants = [time.monotonic() + _IDLE_SECONDS]
        if self._interval > 0:
            instants = [next_poll]
        retry = self._manager.next_retry_at()
        if retry is not None:
            instants.append(retry)
        return max(min(instants) - time.monotonic(), 0.0)

    def _poll(self) -> None:
        try:
            self._manager.poll()
        except Exception:  # the next poll may succeed; a dead poller would go unnoticed
            _log.exception("Polling the models failed")
