"""HttpProtocol: uvicorn's HTTP protocol, which also notices disconnects behind pipelined requests.

uvicorn stops reading a connection while a pipelined request waits for the previous one. It notices
the end of a connection only by reading, and then disconnects only the newest request. Therefore a
step would run for ever if its client sent another request and disconnected. Here all requests of a
connection are disconnected with it, and while reading is paused the kernel reports the end
(`EPOLLRDHUP`, which does not depend on unread data; on Linux only). If the client has sent more
than the socket's buffers hold, an orderly end is noticed only at the next read.

Guarantees: used from one event loop; a request that is not pipelined costs two operations on a
deque.
"""

from __future__ import annotations

import asyncio
import collections
import select
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

# Most requests end before this time. A client may have closed only its sending half, which looks
# the same as a disconnect. If its requests end before this time, it still receives the responses.
WATCH_AFTER_SECONDS = 0.02


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unanswered: collections.deque[RequestResponseCycle] = collections.deque()
        self._watch: asyncio.TimerHandle | HangUpWatch | None = None

    def on_headers_complete(self) -> None:
        """Register a request, which begins now or waits for the previous one."""
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is before:  # a protocol upgrade makes no cycle
            return
        self._unanswered.append(self.cycle)
        if self.pipeline and self._watch is None:
            self._watch = self.loop.call_later(WATCH_AFTER_SECONDS, self._begin_watch)

    def on_response_complete(self) -> None:
        """Remove the oldest request, whose response is complete."""
        if self._unanswered:
            self._unanswered.popleft()
        super().on_response_complete()
        if not self.pipeline:
            self._end_watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Disconnect every request of the connection."""
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
        # Must come before `close`: a transport with unsent data closes only after the data is sent.
        self._disconnect()
        self.transport.close()

    def _disconnect(self) -> None:
        while self._unanswered:
            cycle = self._unanswered.popleft()
            if not cycle.response_complete:
                cycle.disconnected = True
            cycle.message_event.set()


class HangUpWatch:
    """Calls `hung_up` once when the other end of a connection closes, unless cancelled before."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        hung_up: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._hung_up = hung_up
        # The loop refuses a reader for a transport's socket, but accepts a reader for an epoll of
        # the socket.
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
