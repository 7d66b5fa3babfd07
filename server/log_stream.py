"""Standard error as the log writes to it: whole lines at once, and a full disk ends nothing.

sys.stderr keeps what it could not write, and then makes the process end with code 120.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TextIO


class LogStream:
    """Writes to a descriptor; thread-safe. Lines that the system refuses are lost, but counted."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()  # guards the attribute below and keeps lines apart
        self._lost = 0  # lines since the last one that was written
        self._is_torn = False  # whether the system took a part of the last line

    def write(self, text: str) -> None:
        """Write `text`, which must end with a newline."""
        data = text.encode("utf-8", "backslashreplace")
        with self._lock:
            if self._lost:
                data = b"%s%d lines of the log were lost\n%s" % (
                    b"\n" if self._is_torn else b"", self._lost, data
                )  # fmt: skip
            left = data
            try:
                while left:
                    left = left[os.write(self._descriptor, left) :]
                self._lost, self._is_torn = 0, False
            except OSError:
                self._lost += 1
                self._is_torn = self._is_torn or len(left) < len(data)

    def flush(self) -> None:
        """Do nothing, because nothing is kept."""


def log_stream() -> LogStream | TextIO:
    """Return standard error as a LogStream, or sys.stderr if it has no descriptor."""
    try:
        return LogStream(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # a substitute, a closed one, or none
        return sys.stderr
