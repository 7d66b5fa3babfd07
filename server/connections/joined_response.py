"""JoinedResponse: uvicorn's request and response, of which head and body are one write.

A write is a system call, and wakes the client. Large bodies are received and sent by a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Protocol, cast

import numpy as np
from uvicorn._types import (
    ASGIReceiveEvent,
    ASGISendEvent,
    HTTPResponseBodyEvent,
    HTTPResponseStartEvent,
)
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from server.connections.connection_limits import Connections
from server.connections.large_body import LEAST_BYTES, BodyConnection, LargeBody
from server.connections.limited_connection import response_head
from server.connections.socket_transfers import Transfer, transfers

# The headers of most responses; their values are constants, numbers and ids that were checked.
_USUAL_HEADERS = frozenset({b"content-type", b"content-length", b"x-request-id"})
_JOINED_BYTES = 1 << 16  # copying more takes longer than a second write
# Of a body, written at once: 0.1 ms. A socket takes several megabytes, for which others would wait.
PART_BYTES = 1 << 18
# What follows the first part is sent by `SocketTransfers` if it is as long.
_SENT_ELSEWHERE_BYTES = 1 << 19


class ResponseConnection(BodyConnection, Protocol):
    """What a request and its response need of their connection."""

    connections_of_server: Connections

    def length_of_body(self, cycle: RequestResponseCycle) -> int | None:
        """Return the bytes of the body of a request, if they may be received by a thread."""

    def is_behind(self) -> bool:
        """Return whether another request has begun behind the one that is answered."""


class JoinedResponse(RequestResponseCycle):
    """A request and its response, whose head and first part of the body are one write."""

    _start: HTTPResponseStartEvent | None = None  # until the first part of the body is sent
    connection: ResponseConnection | None = None
    large_body: LargeBody | None = None  # from the first part that the parser does not receive
    _is_given = False  # a part that the parser has received

    async def receive(self) -> ASGIReceiveEvent:
        """Receive a message; a large body is received by a thread."""
        body = self.large_body or self._begin_large_body()
        if body is None or body.is_complete or self.disconnected or self.response_complete:
            self._is_given = True
            return await super().receive()
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        message = await body.receive()
        if message is not None and not self.disconnected:
            self.more_body = message["more_body"]
            return message
        await self._wait_for_disconnect()
        return {"type": "http.disconnect"}

    def release(self) -> None:
        """Forget the connection, which refers to this, and the body: nothing more is received.

        A cycle of references would keep them until the garbage collector finds it.
        """
        self.connection = self.large_body = None

    async def _wait_for_disconnect(self) -> None:
        """Wait until the event loop notices that the connection has ended, by reading from it."""
        self.flow.resume_reading()
        while not self.disconnected:
            await self.message_event.wait()
            self.message_event.clear()

    def _begin_large_body(self) -> LargeBody | None:
        if not self.more_body or self._is_given or self.connection is None or self.disconnected:
            return None
        length = self.connection.length_of_body(self)
        if length is None or length - len(self.body) < LEAST_BYTES:
            return None
        begin, self.body = self.body, bytearray()
        self.large_body = LargeBody(self.connection, length, begin)
        return self.large_body

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message of the application; a large body in parts, between which others run."""
        body = message.get("body", b"") if message["type"] == "http.response.body" else b""
        if len(body) <= PART_BYTES:
            await self._send_at_once(message)
            return
        parts, has_more = memoryview(body), message.get("more_body", False)
        for begin in range(0, len(parts), PART_BYTES):
            end = begin + PART_BYTES
            part: Any = {  # transports take any buffer
                "type": "http.response.body",
                "body": parts[begin:end],
                "more_body": has_more or end < len(parts),
            }
            await self._send_at_once(part)
            transfer = self._transfer_of(parts[end:])
            if transfer is not None:
                await self._send_elsewhere(transfer, is_last=not has_more)
                return
            await asyncio.sleep(0)

    def _transfer_of(self, body: memoryview) -> Transfer | None:
        """Return the transfer of the rest of a body; None if the event loop must send it."""
        connection = self.connection
        if (
            len(body) < _SENT_ELSEWHERE_BYTES
            or connection is None
            or self.chunked_encoding is not False
            or self.scope["method"] == "HEAD"
            or self.disconnected
            or self.transport.get_write_buffer_size()
            or (target := connection.plain_socket()) is None
        ):
            return None
        with contextlib.suppress(OSError):  # no descriptors are left
            return Transfer(target, np.frombuffer(body, np.uint8), is_sending=True)
        return None

    async def _send_elsewhere(self, transfer: Transfer, *, is_last: bool) -> None:
        """Let a thread send the rest of a body, or a part of it."""
        connection, size = self.connection, transfer.left
        assert connection is not None
        if size > self.expected_content_length:
            raise RuntimeError("Response content longer than Content-Length")
        connection.transfer = transfer
        try:
            is_whole = await transfers.complete(transfer)
        finally:
            connection.transfer = None
        if not is_whole:
            self.transport.abort()  # nobody receives the rest
            return
        self.expected_content_length -= size
        await self._send_at_once(
            {"type": "http.response.body", "body": b"", "more_body": not is_last}
        )

    async def _send_at_once(self, message: ASGISendEvent) -> None:
        if message["type"] == "http.response.start" and not self.response_started:
            self.response_started = True
            self._start = message
            connection = self.connection
            if connection is not None and connection.connections_of_server.is_ending:
                # What the client still sends to a closed socket can destroy the response.
                self.keep_alive = self.keep_alive and (self.more_body or connection.is_behind())
            return
        start, self._start = self._start, None
        if start is None:
            await super().send(message)
            await self._sent()
        elif message["type"] == "http.response.body" and self._is_usual(start, message):
            self.waiting_for_100_continue = False
            head = response_head(start["status"], self.default_headers, start["headers"])
            self.transport.write(b"%b\r\n%b" % (head, message["body"]))
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
        await self._sent()

    async def _sent(self) -> None:
        """Wait until most of what was written is sent, because the request holds its memory."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()


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
