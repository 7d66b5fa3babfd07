"""RepeatingThread: a thread of a soak that begins and ends several times."""

from __future__ import annotations

import abc
import threading


class RepeatingThread(abc.ABC):
    """Does its work between `start` and `stop`, again and again if need be."""

    def __init__(self) -> None:
        self._stop = threading.Event()  # set when the work is to end
        self._thread = threading.Thread()

    @abc.abstractmethod
    def _run(self) -> None:
        """Work until `_stop` is set."""

    def start(self) -> None:
        """Start to work."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let what is being done be the last."""
        self._stop.set()

    def stop(self) -> None:
        """Wait for what is done last."""
        self.ask_to_stop()
        self._thread.join()
