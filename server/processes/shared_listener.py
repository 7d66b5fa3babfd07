"""SharedListener: accepts the connections to one socket in turn with other processes.

An event loop accepts all connections that wait, so one process would get all of those that arrive
together, and serve them alone for as long as they stay open. Here a process that has more
connections than another leaves those that wait to the others for PAUSE_SECONDS, and takes one if
any is still there then: no connection waits for a process that is busy.

Guarantees: used from one event loop. A process that does not accept is not waited for.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

_log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.001
_TOGETHER = 64  # connections that are accepted before the event loop does something else
FULL_SECONDS = 0.1  # the pause if there are no descriptors or memory for a connection
_FULL = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
# A client that has gone, or a network that failed, before the connection was accepted.
_GONE = {errno.ECONNABORTED, errno.EPROTO, errno.EPERM}


class ConnectionCounts(Protocol):
    """How many connections the processes have."""

    def note_connections(self, count: int) -> None:
        """Tell the other processes how many this one has; -1 if it does not accept."""

    def fewest_connections(self) -> int | None:
        """Return the smallest number among the other processes; None if no other accepts."""


class SharedListener:
    """The part of one process; uvicorn's server treats it as it treats asyncio's servers.

    `open_connections` returns how many connections the process has.
    """

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        counts: ConnectionCounts,
        open_connections: Callable[[], int],
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._protocol = protocol
        self._counts = counts
        self._open_connections = open_connections
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._beginning: set[asyncio.Task[object]] = set()  # accepted, without a protocol yet
        self._is_full = False  # logged once
        self._is_closed = False
        self.note_count()
        self._loop.add_reader(listener, self._accept)

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """The socket."""
        return () if self._is_closed else (self._listener,)

    def note_count(self) -> None:
        """Tell the other processes how many connections this one has."""
        if not self._is_closed:
            self._counts.note_connections(self._count())

    def _count(self) -> int:
        return self._open_connections() + len(self._beginning)

    def _accept(self, at_least: int = 0) -> None:
        """Accept what waits until it is the turn of another process, but `at_least` so many."""
        own = self._count()
        fewest = self._counts.fewest_connections()
        limit = own + _TOGETHER if fewest is None else max(own + at_least, fewest + _some(fewest))
        if own >= limit:
            self._pause(PAUSE_SECONDS)
            return
        while own < limit:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                self._is_full = False
                break
            except OSError as error:
                if error.errno in _GONE:
                    continue
                self._refused(error)
                break
            self._begin(connection)
            own += 1
        self.note_count()

    def _begin(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        task: asyncio.Task[object] = self._loop.create_task(
            self._loop.connect_accepted_socket(self._protocol, connection)
        )
        self._beginning.add(task)
        task.add_done_callback(self._has_begun)

    def _has_begun(self, task: asyncio.Task[object]) -> None:
        self._beginning.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.info("A connection ended before it began: %r", task.exception())
        self.note_count()

    def _refused(self, error: OSError) -> None:
        if error.errno not in _FULL:
            raise error
        if not self._is_full:
            _log.warning("No connection can be accepted: %s", error.strerror)
        self._is_full = True
        self._pause(FULL_SECONDS)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._timer = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._listener, self._accept)
        self._accept(at_least=1)

    def close(self) -> None:
        """Stop to accept; connections that are open stay."""
        if self._is_closed:
            return
        self._is_closed = True
        self._counts.note_connections(-1)
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    async def wait_closed(self) -> None:
        """Wait until accepted connections have begun."""
        if self._beginning:
            await asyncio.wait(self._beginning)


def _some(count: int) -> int:
    """Return how many connections a process may have more than one that has `count`.

    More than one if they are many, so that those that arrive together are accepted in few pauses.
    """
    return 1 + count // 8
