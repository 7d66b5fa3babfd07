"""JoinedResponse: uvicorn's request and response, of which head and body are one write.

A write is a system call, and wakes the client.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn._types import ASGISendEvent, HTTPResponseBodyEvent, HTTPResponseStartEvent
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from server.connections.limited_connection import response_head

# The headers of most responses; their values are constants, numbers and ids that were checked.
_USUAL_HEADERS = frozenset({b"content-type", b"content-length", b"x-request-id"})
_JOINED_BYTES = 1 << 16  # copying more takes longer than a second write
# Of a body, written at once: 0.1 ms. A socket takes several megabytes, for which others would wait.
PART_BYTES = 1 << 18


class JoinedResponse(RequestResponseCycle):
    """A request and its response, whose head and first part of the body are one write."""

    _start: HTTPResponseStartEvent | None = None  # until the first part of the body is sent

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
            await asyncio.sleep(0)

    async def _send_at_once(self, message: ASGISendEvent) -> None:
        if message["type"] == "http.response.start" and not self.response_started:
            self.response_started = True
            self._start = message
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
