"""MovableConnection: a connection that is handed over between two requests, and watched.

uvicorn stops reading a connection while a pipelined request waits for the previous one. It notices
the end of a connection only by reading. Therefore a step would run for ever if its client sent
another request and disconnected. Here the kernel reports the end while reading is paused
(`EPOLLRDHUP`, which does not depend on unread data; on Linux only). If the client has sent more
than the socket's buffers hold, an orderly end is noticed only at the next read.

Guarantees: used from one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
from typing import Any, cast

from server.connections.connection_limits import Moved
from server.connections.declining_connection import DecliningConnection
from server.connections.hang_up_watch import HangUpWatch
from server.connections.one_by_one import OneByOne
from server.connections.plain_requests import AnswerNow
from server.connections.socket_transfers import SocketLike

# Most requests end before this time. A client may have closed only its sending half, which looks
# the same as a disconnect. If its requests end before this time, it still receives the responses.
WATCH_AFTER_SECONDS = 0.02


class MovableConnection(DecliningConnection):
    """A connection whose next request may belong to another process.

    The class that receives requests implements `receive`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._watch: asyncio.TimerHandle | HangUpWatch | None = None
        self._answer_now: AnswerNow | None = getattr(self.config.app, "answer_now", None)
        self._mover = self.connections_of_server.mover
        self.moved: Moved | None = None  # if another process has handed the connection over
        self._one_by_one: OneByOne | None = None  # if so, in the background process

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn's
        """Begin a connection, with what the process before this one has received."""
        super().connection_made(transport)
        if self.moved is None:
            return
        if self._mover is not None and self._mover.is_background:
            self._one_by_one = OneByOne(self, self._mover)
        # Not at once: the transport would begin to read whatever this decides.
        self.loop.call_soon(self._receive_moved)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection."""
        self._end_watch()
        if self._one_by_one is not None:
            self._one_by_one.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of what the client sends."""
        moved, is_here = self.moved, False
        if moved is not None and moved.data:
            data, self.moved = moved.data + data, moved._replace(data=b"")
            is_here = True  # a request is handed over once at most
        if self._one_by_one is None:
            self.receive(data, may_move=not is_here)
        else:
            self._one_by_one.receive(data, is_here=is_here)

    def receive(self, data: bytes, *, may_move: bool) -> None:
        """Receive a part of requests, which are answered here unless the connection `may_move`."""
        raise NotImplementedError

    def _receive_moved(self) -> None:
        """Receive what the process before this one has received."""
        assert self.moved is not None
        if self.moved.data and not self.transport.is_closing():
            self.data_received(b"")

    def is_moved(self, data: bytes) -> bool:
        """Hand the connection over if its next request belongs to another process."""
        if self._mover is None or not self.is_idle():
            return False
        self.write_held()
        connection = self.plain_socket()
        if (
            connection is None
            or self.transport.get_write_buffer_size()
            or not self._mover.move(connection.fileno(), data, self.moved)
        ):
            return False
        self.transport.abort()  # closes this process's descriptor, not the connection
        return True

    def hand_back(self) -> None:
        """Hand the connection back to the process that it came from, if no request is here."""
        if self._one_by_one is not None:
            self._one_by_one.hand_back()

    @property
    def is_between_requests(self) -> bool:
        """Whether no request is being received; one may be being answered."""
        return self._is_between_requests

    @property
    def is_answered(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_closing(self) -> bool:
        """Whether the connection has ended or is about to."""
        return self.transport.is_closing()

    def is_idle(self) -> bool:
        """Return whether no request is being received or answered, and one could be answered."""
        return (
            self._is_between_requests
            and self._answer_now is not None
            and self.is_answered
            and not self.flow.write_paused
            and not self.transport.is_closing()
        )

    def plain_socket(self) -> SocketLike | None:
        """Return the socket; None if its bytes are not those of HTTP, or it is being closed."""
        transport = self.transport
        if transport.is_closing() or transport.get_extra_info("sslcontext") is not None:
            return None
        return cast(SocketLike | None, transport.get_extra_info("socket"))

    def pause(self) -> None:
        """Read no more, for a time in which a request waits; notice if the client goes away."""
        self.flow.pause_reading()
        self._unset_keepalive_if_required()
        self._watch_later()

    def resume(self) -> None:
        """Read again."""
        self._end_watch()
        self.flow.resume_reading()

    def _watch_later(self) -> None:
        if self._watch is None:
            self._watch = self.loop.call_later(WATCH_AFTER_SECONDS, self._begin_watch)

    def _begin_watch(self) -> None:
        self._watch = None
        if hasattr(select, "epoll") and not self.transport.is_closing():
            with contextlib.suppress(OSError):  # there are no descriptors left
                self._watch = HangUpWatch(self.loop, self.transport, self._hung_up)

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _hung_up(self) -> None:
        self._watch = None
        # Must come before `close`: a transport with unsent data closes only after the data is sent.
        self._disconnect()
        self.transport.close()
