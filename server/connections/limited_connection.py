"""LimitedConnection: what uvicorn's HTTP protocol lacks to be limited by `Connections`."""

from __future__ import annotations

import asyncio
import collections
import itertools
from collections.abc import Iterable
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from runtime.errors import Code
from server.connections.connection_limits import Connections, Mark, Waiting, WatchedConnection
from server.connections.socket_transfers import Transfer, transfers

# The refusals of what is not a whole request yet; server/errors.py has those of requests.
_CODES = {
    400: Code.INVALID_ARGUMENT,
    408: Code.DEADLINE_EXCEEDED,
    431: Code.INVALID_ARGUMENT,
    503: Code.UNAVAILABLE,
}
_TRY_AGAIN = {503: b"retry-after: 1\r\n"}


class RefusedHeadError(Exception):
    """Ends the parsing of what a connection received."""


class LimitedConnection(HttpToolsProtocol):
    """A connection that says what it waits for, and can be refused.

    The class that receives requests keeps the fields up to date.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unanswered: collections.deque[RequestResponseCycle] = collections.deque()
        self._is_between_requests = True
        self._answered_at = 0.0  # loop time of the last answer at once
        connections: Connections | None = getattr(self.config.app, "connections", None)
        # An application of a test has none.
        self.connections_of_server = Connections() if connections is None else connections
        self._limits = self.connections_of_server.limits
        self.last_mark: Mark | None = None
        self.before: WatchedConnection | None = None  # what this was before its TLS
        self._is_in_head = False
        self._begun = 0  # requests of which a part was received, without those answered at once
        self._without_body = 0  # bytes received since the last part of a body, or of a whole head
        self._body_bytes = 0  # of the last request
        self.transfer: Transfer | None = None  # of a large body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Begin a connection, or refuse it if there are too many."""
        super().connection_made(transport)
        if self.before is not None:
            self.connections_of_server.remove(self.before)
        self.connections_of_server.add(self, self.loop)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection."""
        super().connection_lost(exc)
        self.connections_of_server.remove(self)
        if self.transfer is not None:
            transfers.cancel(self.transfer)

    def mark(self) -> Mark:
        """Return what the connection waits for now."""
        transfer = self.transfer
        if transfer is not None and transfer.is_sending:
            return Mark(Waiting.SENDING, None, transfer.left)
        if transfer is not None:
            turn = (self._begun, self._answered_at)
            return Mark(Waiting.BODY, turn, self._body_bytes + transfer.new_count)
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            return Mark(Waiting.SENDING, None, unsent)
        if self.transport.is_closing():
            return Mark(Waiting.CLOSED, None)
        turn = (self._begun, self._answered_at)
        is_in_body = not self._is_between_requests and not self._is_in_head
        if is_in_body and not self.pipeline and not self.flow.read_paused:
            return Mark(Waiting.BODY, turn, self._body_bytes)
        if self._unanswered:
            return Mark(Waiting.ANSWER, turn)
        if self._is_in_head:
            return Mark(Waiting.HEAD, turn)
        return Mark(Waiting.NEXT if self._begun or self._answered_at else Waiting.FIRST, turn)

    def refuse(self, status: int, message: str) -> None:
        """Respond with an error, if no response has begun, and close the connection."""
        self.write_held()
        waiting = self._unanswered
        may_respond = self._is_in_head or not self._begun
        if waiting:
            may_respond = len(waiting) == 1 and not waiting[0].response_started
            may_respond = may_respond and not self._is_in_head
        if may_respond:
            self.transport.write(
                response_head(status, self.server_state.default_headers) + _refusal(status, message)
            )
        self._disconnect()
        self.transport.close()

    def refuse_next(self, status: int, message: str) -> None:
        """Refuse the request that is being received; one before it that is answered comes first."""
        self.refuse(status, message)

    def write_held(self) -> None:
        """Write the answers that were to be written at the end of the turn of the event loop."""
        self.connections_of_server.writes.write_of(self.transport)

    def eof_received(self) -> None:
        """Write what is held before the transport closes, as the client sends no more."""
        self.write_held()

    def end(self) -> None:
        """Close the connection at once, whatever is still to be sent."""
        self._disconnect()
        self.transport.abort()

    def hand_back(self) -> None:
        """Do nothing: the connection was not handed over to this process."""

    def send_400_response(self, msg: str) -> None:
        """Respond to what is not HTTP, unless the connection was refused for another reason."""
        self.write_held()
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header, without the white space around its value (RFC 9110 §5.5).

        The parser leaves what is behind it.
        """
        super().on_header(name, value.rstrip(b" \t"))

    def check_head(self) -> None:
        """End the connection if the head that is complete now is too large, or has a wrong `Host`.

        Of several hosts, a proxy may have looked at another one than the server would. Raises
        RefusedHeadError, so that the parser stops.
        """
        limits = self._limits
        is_long = self._without_body > limits.max_header_bytes and (
            len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            > limits.max_header_bytes
        )
        if is_long or len(self.headers) > limits.max_headers:
            self.refuse_head()
            raise RefusedHeadError
        hosts = [name for name, _ in self.headers].count(b"host")
        # RFC 9112 §3.2; HTTP/1.0 knows no such header.
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            self.refuse_next(400, f"Expected one Host header, got {hosts}")
            raise RefusedHeadError
        self._is_in_head = False
        self._without_body = 0

    def refuse_head(self) -> None:
        """Respond that a head, or what is around a body, is too large, and close the connection."""
        limits = self._limits
        if not self.transport.is_closing():
            self.refuse_next(
                431,
                f"The headers exceed {limits.max_header_bytes} bytes (rest.max_header_bytes) "
                f"or a number of {limits.max_headers} (rest.max_headers)",
            )

    def _disconnect(self) -> None:
        while self._unanswered:
            cycle = self._unanswered.popleft()
            if not cycle.response_complete:
                cycle.disconnected = True
            cycle.message_event.set()


Headers = Iterable[tuple[bytes, bytes]]


def _refusal(status: int, message: str) -> bytes:
    """Return the rest of a response: its own headers and its body."""
    content = orjson.dumps({"error": message, "code": _CODES[status].name, "request_id": ""})
    lines = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n"
    return b"%b%b\r\n%b" % (lines % len(content), _TRY_AGAIN.get(status, b""), content)


def response_head(status: int, *headers: Headers) -> bytes:
    """Return the status line and the lines of headers."""
    parts = [STATUS_LINE[status]]
    for name, value in itertools.chain(*headers):
        parts += (name, b": ", value, b"\r\n")
    return b"".join(parts)
