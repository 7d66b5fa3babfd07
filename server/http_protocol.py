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
import re
import select
from collections.abc import Callable, Iterable
from typing import Any, cast

from uvicorn._types import ASGISendEvent, HTTPResponseBodyEvent, HTTPResponseStartEvent
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from server.plain_requests import LATE_CONTENT, AnswerNow, ResponseNow, is_plain

# Most requests end before this time. A client may have closed only its sending half, which looks
# the same as a disconnect. If its requests end before this time, it still receives the responses.
WATCH_AFTER_SECONDS = 0.02
# The headers of most responses; their values are constants, numbers and ids that were checked.
_USUAL_HEADERS = frozenset({b"content-type", b"content-length", b"x-request-id"})
_JOINED_BYTES = 1 << 16  # copying more takes longer than a second write
_PLAIN_URL = re.compile(rb"/[^?#\x80-\xff]*\Z")  # no query, no fragment, only ASCII


class JoinedResponse(RequestResponseCycle):
    """A request and its response, whose head and first part of the body are one write."""

    _start: HTTPResponseStartEvent | None = None  # until the first part of the body is sent

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message of the application."""
        if message["type"] == "http.response.start" and not self.response_started:
            self.response_started = True
            self._start = message
            return
        start, self._start = self._start, None
        if start is None:
            await super().send(message)
        elif message["type"] == "http.response.body" and self._is_usual(start, message):
            self.waiting_for_100_continue = False
            self.transport.write(
                _whole(start["status"], self.default_headers, start["headers"], message["body"])
            )
            self.response_complete = True
            self.message_event.set()
            self.on_response()
        else:
            await self._send_joined(start, message)

    def _is_usual(self, start: HTTPResponseStartEvent, message: HTTPResponseBodyEvent) -> bool:
        """Return whether a response is whole, and has headers that require no check."""
        length = -1
        for name, value in start["headers"]:
            if name not in _USUAL_HEADERS:
                return False
            if name == b"content-length":
                length = int(value)
        return (
            length == len(message.get("body", b""))
            and length < _JOINED_BYTES
            and not message.get("more_body")
            and self.keep_alive
            and not self.access_log
            and not self.flow.write_paused
            and not self.disconnected
            and self.scope["method"] != "HEAD"
        )

    async def _send_joined(self, start: HTTPResponseStartEvent, message: ASGISendEvent) -> None:
        self.response_started = False
        joined = _JoinedWrites(self.transport)
        self.transport = cast(asyncio.Transport, joined)
        try:
            await super().send(start)
            await super().send(message)
        finally:
            self.transport = joined.transport
            joined.flush()


class _JoinedWrites:
    """A transport that writes once, when it is flushed or closed."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._parts.append(data)

    def flush(self) -> None:
        if self._parts:
            self.transport.writelines(self._parts)
            self._parts = []

    def close(self) -> None:
        self.flush()
        self.transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


Headers = Iterable[tuple[bytes, bytes]]


def _whole(status: int, default_headers: Headers, headers: Headers, body: bytes) -> bytes:
    """Return the bytes of a response of known length."""
    parts = [STATUS_LINE[status]]
    for name, value in default_headers:
        parts += (name, b": ", value, b"\r\n")
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    parts += (b"\r\n", body)
    return b"".join(parts)


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unanswered: collections.deque[RequestResponseCycle] = collections.deque()
        self._watch: asyncio.TimerHandle | HangUpWatch | None = None
        self._answer_now: AnswerNow | None = getattr(self.config.app, "answer_now", None)
        # The headers and the body of a request that may be answered at once, until it is complete.
        self._plain: dict[bytes, bytes] | None = None
        self._plain_body = b""
        self._has_answered_now = False  # in this call of `data_received`

    def data_received(self, data: bytes) -> None:
        """Parse what the client has sent; begin the requests in it, of which one may end too."""
        self._has_answered_now = False
        super().data_received(data)
        if self._plain is not None:  # the rest of its body comes later
            self._begin_plain_request()

    def on_headers_complete(self) -> None:
        """Begin a request, unless it may be answered at once when its body is complete."""
        if self._may_answer_now():
            headers = dict(self.headers)
            length = headers.get(b"content-length", b"")
            if (
                len(headers) == len(self.headers)
                and length.isdigit()
                and is_plain(headers, int(length))
            ):
                self._plain, self._plain_body = headers, b""
                return
        self._begin_request()

    def _may_answer_now(self) -> bool:
        """Return whether nothing but its headers and its body keeps a request from being plain.

        One at most is answered in one call of `data_received`, which blocks the loop.
        """
        return (
            self._answer_now is not None
            and not self._has_answered_now
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and not self.transport.is_closing()
            and self.parser.get_method() == b"POST"
            and self.parser.get_http_version() == "1.1"
            and self.parser.should_keep_alive()
            and not self.parser.should_upgrade()
            and _PLAIN_URL.match(self.url) is not None
        )

    def on_body(self, body: bytes) -> None:
        """Receive a part of a body."""
        if self._plain is None:
            super().on_body(body)
        else:
            self._plain_body += body

    def on_message_complete(self) -> None:
        """Answer the request at once, if that is possible; or let the application do so."""
        if self._plain is None:
            super().on_message_complete()
            return
        assert self._answer_now is not None
        answer = self._answer_now(self.url.decode("ascii"), self._plain, self._plain_body)
        if isinstance(answer, ResponseNow):
            self._plain = None
            self._has_answered_now = True
            self._send_now(answer)
            return
        if answer is not None:
            cast(dict[str, Any], self.scope)[LATE_CONTENT] = answer
        self._begin_plain_request()
        super().on_message_complete()

    def _send_now(self, answer: ResponseNow) -> None:
        self.transport.write(_whole(answer.status, self.server_state.default_headers, *answer[1:]))
        super().on_response_complete()

    def _begin_plain_request(self) -> None:
        self._plain = None
        self._begin_request()
        if self._plain_body:
            super().on_body(self._plain_body)

    def _begin_request(self) -> None:
        """Register a request, which begins now or waits for the previous one."""
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is before:  # a protocol upgrade makes no cycle
            return
        # The only way to have cycles of another class without a copy of the method. Its
        # task has not started yet.
        self.cycle.__class__ = JoinedResponse
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
