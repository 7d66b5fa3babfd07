"""Standard error as the log writes to it: whole lines at once, and nothing that it does ends or
stops the server: neither a full disk nor a reader that does not read.

sys.stderr keeps what it could not write, and then makes the process end with code 120.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

# How long a line waits for a reader that is slow, and for how long after a line that has waited in
# vain no other one does.
WAIT_SECONDS, VAIN_SECONDS = 0.1, 1.0
_LOOK_SECONDS = 0.001  # between two looks at room that another process may have taken

Write = Callable[[bytes], int]  # takes a part of the bytes; BlockingIOError: there is no room


class LogStream:
    """Writes to a descriptor; thread-safe. Lines that are refused are lost, but counted.

    A pipe, socket or terminal refuses what its reader leaves no room for in WAIT_SECONDS.
    """

    def __init__(self, descriptor: int) -> None:
        self._write_some, self._close = _writer(descriptor)
        self._lock = threading.Lock()  # guards the attributes below and keeps lines apart
        self._lost = 0  # lines since the last one that was written
        self._is_torn = False  # whether the system took a part of the last line
        self._waits_from = 0.0  # an instant of time.monotonic()

    def write(self, text: str) -> None:
        """Write `text`, which must end with a newline."""
        data = text.encode("utf-8", "backslashreplace")
        with self._lock:
            if self._lost:
                data = b"%s%d lines of the log were lost\n%s" % (
                    b"\n" if self._is_torn else b"", self._lost, data
                )  # fmt: skip
            left, began = data, time.monotonic()
            try:
                while left:
                    left = left[self._write_in_time(left, began) :]
                self._lost, self._is_torn = 0, False
            except OSError:
                self._lost += 1
                self._is_torn = self._is_torn or len(left) < len(data)

    def _write_in_time(self, data: bytes, began: float) -> int:
        """Write a part of a line begun at an instant; raise BlockingIOError if there is no room."""
        while True:
            try:
                return self._write_some(data)
            except BlockingIOError:
                now = time.monotonic()
                if now < self._waits_from:
                    raise
                if now >= began + WAIT_SECONDS:
                    self._waits_from = now + VAIN_SECONDS
                    raise
            time.sleep(_LOOK_SECONDS)

    def flush(self) -> None:
        """Do nothing, because nothing is kept."""

    def close(self) -> None:
        """Close what was opened beside the descriptor, which stays open."""
        self._close()


def _writer(descriptor: int) -> tuple[Write, Callable[[], object]]:
    """Return what writes to a descriptor without waiting for a reader, and what closes that.

    The descriptor can't be changed, because whoever started the server writes to it too.
    """
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISSOCK(mode):
        connection = socket.socket(fileno=os.dup(descriptor))
        return lambda data: connection.send(data, socket.MSG_DONTWAIT), connection.close
    if stat.S_ISFIFO(mode) or os.isatty(descriptor):
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
        try:
            another = os.open(f"/proc/self/fd/{descriptor}", flags)
        except OSError:  # no /proc, another user's pipe, or one without a reader
            return _writer_where_room_is(descriptor)
        return lambda data: os.write(another, data), lambda: os.close(another)
    return lambda data: os.write(descriptor, data), _close_nothing


def _writer_where_room_is(descriptor: int) -> tuple[Write, Callable[[], object]]:
    """Return what writes to a pipe that blocks, unless another process takes the room meanwhile."""
    room = select.poll()
    room.register(descriptor, select.POLLOUT)

    def write(data: bytes) -> int:
        if not room.poll(0):
            raise BlockingIOError
        # A pipe that has room has so much; more would wait for its reader.
        return os.write(descriptor, data[: select.PIPE_BUF])

    return write, _close_nothing


def _close_nothing() -> None:
    pass


def log_stream() -> LogStream | TextIO:
    """Return standard error as a LogStream, or sys.stderr if it has no descriptor."""
    try:
        return LogStream(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # a substitute, a closed one, or none
        return sys.stderr
