"""HttpProtocol: uvicorn's HTTP protocol, which notices that a client left behind a queued request.

uvicorn stops reading a connection while a pipelined request waits for the one before it. It detects
the end of a connection only by reading, and then marks only the newest request as disconnected. So
a step ran for ever when its client sent another request and left. Here all requests of a connection
are marked as disconnected when it ends, and while reading is paused the kernel reports the end
(`EPOLLRDHUP`, on Linux only, whatever has not been read yet). An orderly end comes after the data
that the client has sent: if these exceed the socket's buffers, it is detected at the next read.

Guarantees: used from one event loop; costs a request that is not pipelined two operations on a
deque.
"""

from __future__ import annotations

import asyncio
import collections
import select
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

# Most requests end earlier. Until then, a client that has only closed its half of the connection,
# which the kernel reports in the same way, still gets its answers.
WATCH_AFTER_SECONDS = 0.02


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unanswered: collections.deque[RequestResponseCycle] = collections.deque()
        self._watch: asyncio.TimerHandle | HangUpWatch | None = None

    def on_headers_complete(self) -> None:
        """A request begins, or waits for the one before it."""
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is before:  # an upgrade
            return
        self._unanswered.append(self.cycle)
        if self.pipeline and self._watch is None:
            self._watch = self.loop.call_later(WATCH_AFTER_SECONDS, self._begin_watch)

    def on_response_complete(self) -> None:
        """The oldest request has been answered: the next one begins."""
        if self._unanswered:
            self._unanswered.popleft()
        super().on_response_complete()
        if not self.pipeline:
            self._end_watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended: all its requests are disconnected."""
        self._end_watch()
        super().connection_lost(exc)
        self._disconnect()

    def _begin_watch(self) -> None:
        self._watch = None
        if hasattr(select, "epoll") and not self.transport.is_closing():
            self._watch = HangUpWatch(self.loop, self.transport, self._hung_up)

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _hung_up(self) -> None:
        self._watch = None
        # Not left to `connection_lost`: a transport with unsent data closes after sending them.
        self._disconnect()
        self.transport.close()

    def _disconnect(self) -> None:
        while self._unanswered:
            cycle = self._unanswered.popleft()
            if not cycle.response_complete:
                cycle.disconnected = True
            cycle.message_event.set()


class HangUpWatch:
    """Calls `hung_up` once when the other end of a connection is closed, until `cancel`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        hung_up: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._hung_up = hung_up
        # The loop refuses a reader for a transport's socket, but not for an epoll that watches it.
        self._poll = select.epoll()
        self._poll.register(transport.get_extra_info("socket").fileno(), select.EPOLLRDHUP)
        loop.add_reader(self._poll.fileno(), self._ended)

    def cancel(self) -> None:
        """Stop watching."""
        if not self._poll.closed:
            self._loop.remove_reader(self._poll.fileno())
            self._poll.close()

    def _ended(self) -> None:
        self.cancel()
        self._hung_up()
