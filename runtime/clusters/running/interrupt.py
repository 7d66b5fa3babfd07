"""Interrupt: ends the native work of a compilation that nobody needs any more."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Interrupt:
    """Stops what an owner compiles. Thread-safe; once set it stays set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards `_stop` and `is_set`
        self._stop: Callable[[], object] | None = None
        self.is_set = False

    def set(self) -> None:
        """Stop the native work in progress and refuse any later."""
        with self._lock:
            self.is_set = True
            stop, self._stop = self._stop, None
        if stop is not None:
            stop()

    def begin(self, stop: Callable[[], object]) -> bool:
        """Register `stop` for the native work that begins now; return False if there is no need."""
        with self._lock:
            if self.is_set:
                return False
            self._stop = stop
            return True

    def end(self) -> None:
        """Forget the `stop` of `begin`."""
        with self._lock:
            self._stop = None
