"""The thread that polls the file system and the model config file, and retries loads.

TF: `--file_system_poll_wait_seconds`: an interval if > 0, once at the start if 0, never if < 0;
    `--model_config_file_poll_wait_seconds`: an interval if > 0, else never again.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable

from runtime.errors import OpError
from server.models.manager import ModelManager
from server.models.model_config_file import ModelConfigFile
from server.models.repeated_messages import RepeatedMessages

_log = logging.getLogger(__name__)

_MAX_WAIT_SECONDS = 3600.0  # much longer waits raise OverflowError
_IDLE_SECONDS = 1.0  # the time between two checks for retries if nothing is polled


@dataclasses.dataclass(slots=True)
class _Job:
    """A task that runs every `interval` seconds; `due` is the monotonic instant of its next run."""

    action: Callable[[], None]
    interval: float
    due: float


class ModelPoller:
    """A thread that calls the methods of the manager between `start` and `stop`."""

    def __init__(
        self,
        manager: ModelManager,
        interval_seconds: float,
        config_file: ModelConfigFile | None = None,
        config_file_seconds: float = 0,
    ) -> None:
        self._manager = manager
        self._interval = interval_seconds
        self._config_file = config_file
        self._jobs: list[_Job] = []
        self._messages = RepeatedMessages(_log)
        now = time.monotonic()
        if interval_seconds > 0:
            self._jobs.append(_Job(manager.poll, interval_seconds, now + interval_seconds))
        if config_file is not None and config_file_seconds > 0:
            self._jobs.append(
                _Job(self.reload_config_file, config_file_seconds, now + config_file_seconds)
            )
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="model_poller", daemon=True)

    def start(self) -> None:
        """Start the thread; the first poll happens at once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; wait until the task that it runs has ended."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def reload_config_file(self) -> None:
        """Apply the config file; if the file has an error, log it and change nothing."""
        if self._config_file is None:
            return
        try:
            self._manager.reconfigure(self._config_file.read())
        except OpError as error:
            text = f"Kept the models as they were: {error.message}"
            self._messages.log("config file", logging.ERROR, text)
        else:
            self._config_file.keep()
            self._messages.over("config file")

    def _work(self) -> None:
        if self._interval >= 0:
            self._attempt(self._manager.poll)
        while not self._stopped.wait(self._wait_seconds()):
            self._attempt(self._manager.retry_due_loads)
            for job in self._jobs:
                if time.monotonic() >= job.due:
                    self._attempt(job.action)
                    job.due = time.monotonic() + job.interval

    def _wait_seconds(self) -> float:
        instants = [job.due for job in self._jobs] or [time.monotonic() + _IDLE_SECONDS]
        retry = self._manager.next_retry_at()
        if retry is not None:
            instants.append(retry)
        return min(max(min(instants) - time.monotonic(), 0.0), _MAX_WAIT_SECONDS)

    def _attempt(self, action: Callable[[], None]) -> None:
        what = action.__name__
        try:
            action()
        except Exception as error:  # the next run may succeed; the thread's end would go unnoticed
            text = f"Polling the models failed: {type(error).__name__}: {error}"
            self._messages.log(what, logging.ERROR, text, error)
        else:
            self._messages.over(what)
