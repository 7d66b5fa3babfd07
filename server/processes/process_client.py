"""ProcessClient: HTTP requests to one other process of the server, on its Unix socket.

Small requests are sent by the event loop, in one system call with their heads. Large parts of
bodies are sent by a thread (`SocketTransfers`), so that no other request waits for them; responses
are received by the event loop, part by part.

Guarantees: used from one event loop; a connection has one request at a time; parts of bodies are
sent and received as they arrive. A request that is ended before its response is complete closes its
connection, which ends it in the other process. What is no answer is an OSError.
"""

from __future__ import annotations

import asyncio
import collections
import socket
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httptools
import numpy as np

from server.connections.large_body import LEAST_BYTES, Body
from server.connections.socket_transfers import Transfer, transfers
from server.passed_calls import Header
from server.steps.step_runner import off_loop

CONNECT_SECONDS = 2.0  # as long as a process that is busy is waited for
_RETRY_SECONDS = 0.01
_PART_BYTES = 1 << 16
_MOST_IDLE = 64  # connections that are kept
_IDLE_SECONDS = 3.0  # for which one is kept; other processes close none so soon
_HAS_LENGTH = b"content-length"


class _Incoming:
    """A response as the parser of its connection reports it."""

    def __init__(self) -> None:
        self.parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self.status = 0
        self.headers: list[Header] = []  # names in lower case
        self.parts: collections.deque[bytes] = collections.deque()
        self.has_head = self.is_complete = self.may_be_kept = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header."""
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Note that the body begins."""
        assert self.parser is not None
        self.has_head, self.status = True, self.parser.get_status_code()

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body until it is read."""
        self.parts.append(part)

    def on_message_complete(self) -> None:
        """Note that nothing follows, and whether another request may."""
        assert self.parser is not None
        self.is_complete, self.may_be_kept = True, self.parser.should_keep_alive()

    def release(self) -> None:
        """Drop the parser, which refers to this object: only a collection would free both."""
        self.parser = None


class Response:
    """The response to one request, whose head was received; `end` must be called."""

    def __init__(
        self,
        client: ProcessClient,
        connection: socket.socket,
        incoming: _Incoming,
        *,
        is_head: bool,
        was_cut: bool,
    ) -> None:
        """If it `is_head`, the answer to a HEAD request, no body follows.

        If the request `was_cut`, the process had responded and closed before it was sent whole.
        """
        self.status = incoming.status
        self.headers: Sequence[Header] = incoming.headers
        self._client = client
        self._connection = connection
        self._incoming = incoming
        self._is_head = is_head
        self._was_cut = was_cut
        self._may_be_kept = False

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body as they arrive; raise OSError if the process ends."""
        incoming = self._incoming
        while not self._is_head:
            while incoming.parts:
                yield incoming.parts.popleft()
            if incoming.is_complete:
                self._may_be_kept = incoming.may_be_kept and not self._was_cut
                return
            await _receive(self._connection, incoming)

    async def content(self) -> bytes:
        """Return the whole body; raise OSError if the process ends."""
        parts = [part async for part in self.parts()]
        if len(parts) == 1:
            return parts[0]
        return await off_loop(sum(map(len, parts)), b"".join, parts)

    def end(self) -> None:
        """Keep the connection for another request if the whole response was read; else close it."""
        self._incoming.release()
        self._client.give_back(self._connection, may_be_kept=self._may_be_kept)


class ProcessClient:
    """The connections to the process that listens at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        # With the instants at which they were kept, the oldest first.
        self._idle: collections.deque[tuple[float, socket.socket]] = collections.deque()
        self._is_closed = False

    async def send(
        self,
        method: str,
        target: bytes,
        headers: Sequence[Header],
        body: AsyncIterator[Body] | None = None,
    ) -> Response:
        """Send a request and return its response once the head of that has been received.

        A body without a Content-Length among the headers is sent in chunks. Raises OSError if the
        process does not answer, and what `body` raises.
        """
        is_chunked = body is not None and all(name != _HAS_LENGTH for name, _ in headers)
        lines = [f"{method} ".encode() + target + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in headers]
        if is_chunked:
            lines.append(b"transfer-encoding: chunked")
        head = b"\r\n".join((*lines, b"", b""))
        connection = self._kept() or await self._connected()
        incoming = _Incoming()
        try:
            was_cut = False
            try:
                await _send(connection, head, body, is_chunked=is_chunked)
            except (BrokenPipeError, ConnectionResetError):
                was_cut = True  # if there is no response either, receiving raises
            while not incoming.has_head:
                await _receive(connection, incoming)
            is_head = method == "HEAD"
            return Response(self, connection, incoming, is_head=is_head, was_cut=was_cut)
        except BaseException:
            incoming.release()
            connection.close()
            raise

    async def exchange(
        self, method: str, target: str, content: bytes = b"", headers: Sequence[Header] = ()
    ) -> tuple[int, bytes]:
        """Send a request and return the status and the body of its response; raise OSError."""
        own = ((b"host", b"process"), (b"content-length", b"%d" % len(content)))
        response = await self.send(method, target.encode(), (*own, *headers), _whole(content))
        try:
            return response.status, await response.content()
        finally:
            response.end()

    def give_back(self, connection: socket.socket, *, may_be_kept: bool) -> None:
        """Keep a connection for some seconds, or close it."""
        now = time.monotonic()
        while self._idle and self._idle[0][0] < now - _IDLE_SECONDS:
            self._idle.popleft()[1].close()
        if may_be_kept and not self._is_closed and len(self._idle) < _MOST_IDLE:
            self._idle.append((now, connection))
        else:
            connection.close()

    def close(self) -> None:
        """Close the connections that have no request, and keep none any more."""
        self._is_closed = True
        while self._idle:
            self._idle.pop()[1].close()

    def _kept(self) -> socket.socket | None:
        """Return a connection that the other process has not closed, if one was kept.

        One that was not used for long is not returned: the other process may just close it.
        """
        while self._idle:
            kept_at, connection = self._idle.pop()
            if kept_at < time.monotonic() - _IDLE_SECONDS:
                connection.close()
                continue
            try:
                connection.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return connection
            except OSError:
                pass
            connection.close()
        return None

    async def _connected(self) -> socket.socket:
        """Return a new connection; wait a little while others fill the queue of the socket."""
        end = time.monotonic() + CONNECT_SECONDS
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.setblocking(False)
                connection.connect(self._path)  # that of a Unix socket never waits
                return connection
            except BlockingIOError:
                connection.close()
                if time.monotonic() >= end:
                    raise
            except BaseException:
                connection.close()
                raise
            await asyncio.sleep(_RETRY_SECONDS)


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _send(
    connection: socket.socket,
    head: bytes,
    body: AsyncIterator[Body] | None,
    *,
    is_chunked: bool,
) -> None:
    """Send a request; raise BrokenPipeError or ConnectionResetError if the other process closes.

    It may have responded before.
    """
    loop = asyncio.get_running_loop()
    before = head  # what is to be sent before the next part
    if body is not None:
        async for part in body:
            if not part:
                continue
            if is_chunked:
                before += f"{len(part):x}\r\n".encode()
            if len(part) >= LEAST_BYTES:
                await loop.sock_sendall(connection, before)
                view = np.frombuffer(part, np.uint8)
                if not await transfers.complete(Transfer(connection, view, is_sending=True)):
                    raise ConnectionResetError("The other process has closed the connection")
                before = b""
            else:
                before += part
            if is_chunked:
                before += b"\r\n"
            if before:
                await loop.sock_sendall(connection, before)
            before = b""
    if is_chunked:
        before += b"0\r\n\r\n"
    if before:
        await loop.sock_sendall(connection, before)


async def _receive(connection: socket.socket, incoming: _Incoming) -> None:
    """Receive a part of a response; raise OSError if the other process has ended."""
    data = await asyncio.get_running_loop().sock_recv(connection, _PART_BYTES)
    if not data:
        raise ConnectionResetError("The other process has closed the connection")
    if len(data) == _PART_BYTES:  # asyncio receives what is there without letting others run
        await asyncio.sleep(0)
    assert incoming.parser is not None
    try:
        incoming.parser.feed_data(data)
    except httptools.HttpParserError as error:
        raise ConnectionError(f"The other process does not speak HTTP: {error}") from error
