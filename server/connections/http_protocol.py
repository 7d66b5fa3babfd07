"""HttpProtocol: uvicorn's HTTP protocol, which also notices disconnects behind pipelined requests.

uvicorn stops reading a connection while a pipelined request waits for the previous one. It notices
the end of a connection only by reading, and then disconnects only the newest request. Therefore a
step would run for ever if its client sent another request and disconnected. Here all requests of a
connection are disconnected with it, and while reading is paused the kernel reports the end
(`EPOLLRDHUP`, which does not depend on unread data; on Linux only). If the client has sent more
than the socket's buffers hold, an orderly end is noticed only at the next read.

Guarantees: used from one event loop; requests are answered in their order, and what is no request
is refused after those before it; a request that is not pipelined costs two operations on a deque.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from server.connections.declining_connection import new_parser
from server.connections.joined_response import JoinedResponse
from server.connections.large_body import LEAST_BYTES, LargeBody
from server.connections.limited_connection import response_head
from server.connections.movable_connection import MovableConnection
from server.connections.plain_requests import (
    LATE_CONTENT,
    KnownHeads,
    LateContent,
    PlainHead,
    ResponseNow,
    is_plain,
)
from server.tls import certificate_names

# The body of a plain request may come so much later than its head, until the application begins it.
HOLD_SECONDS = 0.02
# Between the end of the time that a connection may be idle, or of the server, and its close. If the
# loop was busy, the next request has arrived but was not read, because the loop runs timers first.
LAST_LOOK_SECONDS = 0.05
_END_OF_HEAD = b"\r\n\r\n"
_OK = 200
_known_heads = KnownHeads()
_PLAIN_URL = re.compile(rb"/[^?#\x80-\xff]*\Z")  # no query, no fragment, only ASCII


class HttpProtocol(MovableConnection):
    """One connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._certificate_names: tuple[str, ...] = ()
        # The head and the body of a request that may be answered at once, until it is complete.
        self._plain: PlainHead | None = None
        self._plain_body = b""
        self._hold: asyncio.TimerHandle | None = None  # ends the wait for the rest of that body
        self._late: LateContent | None = None  # for the next request that begins
        self._received = b""  # if it begins at the begin of a request, else empty
        self._may_answer = True  # one request in each call of `data_received`
        self._is_expired = False  # idle for too long; closed unless a request is read now
        self._writes = self.connections_of_server.writes
        self._prefix: tuple[object, bytes] = (None, b"")  # default headers, and the same as text
        self._skipped = 0  # bytes still to be received that no parser receives
        # Refuses what follows the requests that are being answered, and is not received any more.
        self._refusal: Callable[[], None] | None = None

    def receive(self, data: bytes, *, may_move: bool) -> None:
        """Answer a request at once; or parse what the client has sent and begin the requests in it.

        One request at most is answered in a call, because it blocks the loop.
        """
        if self._refusal is not None:
            return
        if self._skipped:
            data = self._skip(data)
            if not data:
                return
        self._may_answer = True
        known = _known_heads.find(data) if self.is_idle() else None
        if known is not None:
            self._may_answer = False
            if self._is_answered(*known):
                return
        self.write_held()  # whatever follows, it writes directly
        # The priority of a request that is known is the default.
        if known is None and may_move and self.is_moved(data):
            return
        if len(data) >= LEAST_BYTES and self.is_idle() and self._begins_large_body(data):
            return
        self._received = data if self._is_between_requests else b""
        self._without_body += len(data)
        self.parse(data)
        self._received = b""
        if self._without_body > self._limits.max_header_bytes:
            self.refuse_head()
        if self._plain is not None and self._hold is None:  # many clients send the body apart
            self._hold = self.loop.call_later(HOLD_SECONDS, self._begin_plain_request)

    def _begins_large_body(self, data: bytes) -> bool:
        """Receive a head that a part of a large body follows, which the parser does not copy."""
        end = data.find(_END_OF_HEAD, 0, LEAST_BYTES) + len(_END_OF_HEAD)
        before = self.cycle
        if end < len(_END_OF_HEAD) or b"pgrade" in data[:end]:
            return False
        self._without_body += end
        self.parse(data[:end])
        if self.cycle is not before and not self.cycle.disconnected:
            body = memoryview(data)[end:]
            length = self.length_of_body(self.cycle)
            if length is not None and length - len(body) >= LEAST_BYTES:
                self._without_body, self._body_bytes = 0, len(body)
                cast(JoinedResponse, self.cycle).large_body = LargeBody(self, length, body)
                return True
        if not self.transport.is_closing():
            self.receive(data[end:], may_move=False)
        return True

    def _skip(self, data: bytes) -> bytes:
        """Return what follows the body of which the rest is skipped."""
        self._unset_keepalive_if_required()
        count = min(len(data), self._skipped)
        self._skipped -= count
        self._body_bytes += count
        self._is_between_requests = not self._skipped
        return data[count:]

    def _is_answered(self, head: PlainHead, body: bytes) -> bool:
        """Answer a request at once, unless it is declined."""
        assert self._answer_now is not None
        answer = self._answer_now(head.path, head.headers, body)
        if not isinstance(answer, ResponseNow):
            self._late = answer
            return False
        status, text = answer
        state = self.server_state
        defaults, prefix = self._prefix
        if defaults is not state.default_headers or status != _OK:
            defaults = state.default_headers
            prefix = response_head(status, defaults)
            if status == _OK:
                self._prefix = defaults, prefix
        self._writes.add(self.loop, self.transport, prefix + text)
        state.total_requests += 1
        self._answered_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._close_if_idle_in(self.timeout_keep_alive)
        return True

    def _close_if_idle_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection, unless it was in use since the timer was set.

        An answer at once does not set the timer anew, which takes as long as parsing its request.
        """
        self.timeout_keep_alive_task = None
        if not self._is_between_requests:
            return
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._is_expired = False
            self._close_if_idle_in(left)
        elif not self._is_expired:
            self._is_expired = True
            self._close_if_idle_in(LAST_LOOK_SECONDS)
        else:
            self.write_held()
            super().timeout_keep_alive_handler()

    def on_message_begin(self) -> None:
        """Begin to receive a request."""
        self._is_between_requests = False
        self._is_in_head = True
        self._begun += 1
        self._body_bytes = 0
        self._is_expired = False
        super().on_message_begin()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn's
        """Note the names in the client's certificate, which TLS has verified."""
        super().connection_made(transport)
        self._certificate_names = certificate_names(transport.get_extra_info("peercert"))

    def on_headers_complete(self) -> None:
        """Begin a request, unless it may be answered at once when its body is complete."""
        self.check_head()
        if self.is_declined():
            return
        if self._may_answer and self._has_plain_form():
            headers = dict(self.headers)
            length = headers.get(b"content-length", b"")
            if (
                len(headers) == len(self.headers)
                and length.isdigit()
                and is_plain(headers, int(length))
            ):
                self._plain = PlainHead(self.url.decode("ascii"), headers, int(length))
                self._plain_body = b""
                return
        self._begin_request()

    def _has_plain_form(self) -> bool:
        """Return whether nothing but its headers and its body keeps a request from being plain."""
        return (
            self._answer_now is not None
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and not self.transport.is_closing()
            and self.parser.get_method() == b"POST"
            and self.parser.get_http_version() == "1.1"
            and self.parser.should_keep_alive()
            and _PLAIN_URL.match(self.url) is not None
        )

    def on_body(self, body: bytes) -> None:
        """Receive a part of a body."""
        self._without_body = 0
        self._body_bytes += len(body)
        if self._plain is None:
            super().on_body(body)
        else:
            self._plain_body += body

    def on_message_complete(self) -> None:
        """Answer the request at once, if that is possible; or let the application do so."""
        if self.is_declined():
            return
        self._is_between_requests = True
        head = self._plain
        if head is None:
            super().on_message_complete()
            return
        self._may_answer = False
        if self._is_answered(head, self._plain_body):
            self._plain = None
            self._end_hold()
            _known_heads.add(self._received, head)
            return
        self._begin_plain_request()
        super().on_message_complete()

    def _end_hold(self) -> None:
        if self._hold is not None:
            self._hold.cancel()
            self._hold = None

    def _begin_plain_request(self) -> None:
        """Let the application answer, and receive the rest of the body if it is not complete."""
        self._plain = None
        self._end_hold()
        self._begin_request()
        if self._plain_body:
            super().on_body(self._plain_body)

    def _begin_request(self) -> None:
        """Register a request, which begins now or waits for the previous one."""
        before = self.cycle
        if self._certificate_names:
            self.scope["certificate_names"] = self._certificate_names  # type: ignore[typeddict-unknown-key] # read by server/middleware.py
        super().on_headers_complete()
        if self.cycle is before:  # a protocol upgrade makes no cycle
            return
        if self._late is not None:
            cast(dict[str, Any], self.scope)[LATE_CONTENT] = self._late
            self._late = None
        # The only way to have cycles of another class without a copy of the method. Its
        # task has not started yet.
        self.cycle.__class__ = JoinedResponse
        cast(JoinedResponse, self.cycle).connection = self
        self._unanswered.append(self.cycle)
        if self.pipeline:
            self._watch_later()

    def length_of_body(self, cycle: RequestResponseCycle) -> int | None:
        """Return the bytes of the body of a request, if they may be received by a thread."""
        if cycle is not self.cycle or self.pipeline or self.plain_socket() is None:
            return None
        lengths = []
        for name, value in cycle.scope["headers"]:
            if name == b"transfer-encoding":
                return None
            if name == b"content-length":
                lengths.append(value)
        return int(lengths[0]) if len(lengths) == 1 and lengths[0].isdigit() else None

    def is_behind(self) -> bool:
        """Return whether another request has begun behind the one that is answered."""
        return bool(self.pipeline) or not self._is_between_requests

    def count_body(self, size: int) -> None:
        """Note that `size` bytes more of the body have been received."""
        self._body_bytes += size

    def skip_body(self, size: int) -> None:
        """Skip the rest of the body, of `size` bytes, and receive what follows it."""
        if self not in self.connections:  # it has ended
            return
        self.parser = new_parser(self)
        self._skipped = size
        if self._one_by_one is not None:
            self._one_by_one.left = size
        self._is_between_requests = not size
        self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Remove the oldest request, whose response is complete."""
        if self._unanswered:
            cycle = self._unanswered.popleft()
            body = cycle.large_body if isinstance(cycle, JoinedResponse) else None
            if self.transfer is not None:  # the application has not waited for its body
                self.transport.close()
            elif body is not None and not body.is_complete:
                body.leave()
            if isinstance(cycle, JoinedResponse):
                cycle.release()
        super().on_response_complete()
        if self._refusal is not None and not self._unanswered:
            self.loop.call_soon(self._refuse_now)  # the response is written after this callback
        elif self.pipeline or self._refusal is not None:
            # It has resumed reading. Requests would arrive faster than they are answered.
            self.flow.pause_reading()
        else:
            self._end_watch()
        if self._one_by_one is not None:
            self._one_by_one.response_is_complete()

    def refuse_next(self, status: int, message: str) -> None:
        """Refuse the request that is being received, once those before it are answered."""
        if not self._refuses_later(lambda: self.refuse(status, message)):
            super().refuse_next(status, message)

    def send_400_response(self, msg: str) -> None:
        """Respond to what is not HTTP, once the requests before it are answered."""
        if not self._refuses_later(lambda: self.send_400_response(msg)):
            super().send_400_response(msg)

    def _refuses_later(self, refuse: Callable[[], None]) -> bool:
        """Keep a refusal, and receive no more, if a request is before it; return whether it is.

        Its response would be taken for that of the first one, which would be ended.
        """
        if self._refusal is not None:
            return True
        if self.transport.is_closing():
            return False
        if self.pipeline and not self._is_between_requests and not self._is_in_head:
            self.pipeline.popleft()  # its body is wrong; it has not begun
            self._unanswered.pop()
        elif not self._is_in_head and not self._is_between_requests:
            return False  # it is being answered itself
        if not self._unanswered:
            return False
        self._refusal = refuse
        self._is_in_head, self._is_between_requests = True, False  # it has no response yet
        self.pause()
        return True

    def _refuse_now(self) -> None:
        refuse, self._refusal = self._refusal, None
        if refuse is not None and not self.transport.is_closing():
            refuse()

    def refuse(self, status: int, message: str) -> None:
        """Respond with an error, if no response has begun, and close the connection."""
        self._plain = None
        self._end_hold()
        super().refuse(status, message)

    def connection_lost(self, exc: Exception | None) -> None:
        """Disconnect every request of the connection."""
        self._begin_held_request()
        super().connection_lost(exc)
        for cycle in (self.cycle, *self._unanswered):
            if isinstance(cycle, JoinedResponse):
                cycle.release()
        self._disconnect()

    def shutdown(self) -> None:
        """Close the connection, after the request that is being received or answered.

        One without a request is closed a moment later, after what has arrived but was not read.
        """
        self._begin_held_request()
        self.write_held()
        if self.is_answered:
            self.loop.call_later(LAST_LOOK_SECONDS, self._end)
        else:
            self._end()

    def _end(self) -> None:
        self.write_held()
        super().shutdown()

    def _begin_held_request(self) -> None:
        if self._plain is not None:
            self._begin_plain_request()
