"""Standard error as the log writes to it: whole lines at once, and nothing that it does ends or
stops the server: neither a full disk nor a reader that does not read.

sys.stderr keeps what it could not write, and then makes the process end with code 120.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import threading
from typing import TextIO

# How long a line waits for a reader that is slow; the lines after one that was lost do not wait.
WAIT_MS = 100


class LogStream:
    """Writes to a descriptor; thread-safe. Lines that are refused are lost, but counted.

    A pipe, socket or terminal refuses what its reader has left no room for.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = _that_never_blocks(descriptor)
        self._room = select.poll()
        self._room.register(self._descriptor, select.POLLOUT)
        self._lock = threading.Lock()  # guards the attributes below and keeps lines apart
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
                    left = left[self._write_some(left) :]
                self._lost, self._is_torn = 0, False
            except OSError:
                self._lost += 1
                self._is_torn = self._is_torn or len(left) < len(data)

    def _write_some(self, data: bytes) -> int:
        """Write a part of `data`; raise BlockingIOError if there is no room."""
        if not self._room.poll(0 if self._lost else WAIT_MS):
            raise BlockingIOError
        # A pipe that has room has so much; more would wait for its reader.
        return os.write(self._descriptor, data[: select.PIPE_BUF])

    def flush(self) -> None:
        """Do nothing, because nothing is kept."""


def _that_never_blocks(descriptor: int) -> int:
    """Return another descriptor of a pipe, which refuses what does not fit; or the same one.

    Of several processes that find room in a pipe at the same time, only one has it. The given
    descriptor can't be changed, because whoever started the server writes to it too.
    """
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        try:
            return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # no /proc, another user's pipe, or one without a reader
            pass
    return descriptor


def log_stream() -> LogStream | TextIO:
    """Return standard error as a LogStream, or sys.stderr if it has no descriptor."""
    try:
        return LogStream(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # a substitute, a closed one, or none
        return sys.stderr
