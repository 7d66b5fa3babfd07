"""LargeBody: the body of a request that is received into one buffer, by `SocketTransfers`.

The parser of the connection has received the head and the begin of the body; the rest does not
pass it. A new parser receives what follows the body.

Guarantees: used from one event loop. If the application does not receive the whole body, the rest
is skipped, as it is when the parser receives it.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
from uvicorn._types import HTTPRequestEvent
from uvicorn.protocols.http.flow_control import FlowControl

from runtime.errors import UnavailableError
from server.connections.socket_transfers import Bytes, SocketLike, Transfer, transfers

# What is not received yet; less is received by the parser in less than 0.1 ms.
LEAST_BYTES = 1 << 16
# Received at once; then the application reserves the memory for it, or refuses the request.
BLOCK_BYTES = 1 << 22
Body = bytes | memoryview  # of a request; a view of where a thread has received it
# In the last message: the whole body, without a copy.
WHOLE_BODY = "whole_body"


class BodyConnection(Protocol):
    """A connection that bodies are received from."""

    flow: FlowControl
    transfer: Transfer | None  # of the request or the response that is being transferred

    def plain_socket(self) -> SocketLike | None:
        """Return the socket; None if its bytes are not those of HTTP, or it is being closed."""

    def count_body(self, size: int) -> None:
        """Note that `size` bytes more of the body have been received."""

    def skip_body(self, size: int) -> None:
        """Skip the rest of the body, of `size` bytes, and receive what follows it."""


class LargeBody:
    """The body of one request, of `length` bytes, of which `begin` has been received."""

    def __init__(self, connection: BodyConnection, length: int, begin: Bytes) -> None:
        self._connection = connection
        self._length, self._begin = length, begin
        self._bytes: np.ndarray | None = None
        self._given, self._received = 0, len(begin)
        connection.flow.pause_reading()

    async def receive(self) -> HTTPRequestEvent | None:
        """Return the next message with a part of the body; None if the client has disconnected.

        Raises UnavailableError if the process has no descriptor for it.
        """
        end = min(self._length, self._given + BLOCK_BYTES)
        if self._bytes is None:
            # The system provides the memory when it is written.
            self._bytes = np.empty(self._length, np.uint8)
        if self._received < end and not await self._receive_until(self._bytes, end):
            return None
        part = self._bytes.data[self._given : end]
        self._given = end
        message: Any = {"type": "http.request", "body": part, "more_body": not self.is_complete}
        if self.is_complete:
            message[WHOLE_BODY] = self._bytes.data
            self._bytes = None  # the connection may keep this until its next request
            self._connection.skip_body(0)
        return cast(HTTPRequestEvent, message)

    async def _receive_until(self, target: np.ndarray, end: int) -> bool:
        """Return whether the client is still there."""
        connection, begin = self._connection, self._received
        source = connection.plain_socket()
        if source is None:
            return False
        if self._begin:
            begin = 0
        try:
            transfer = Transfer(source, target[begin:end], is_sending=False, begin=self._begin)
        except OSError as error:  # no descriptors are left
            raise UnavailableError(f"The body can't be received now: {error.strerror}") from error
        self._begin = b""
        connection.transfer = transfer
        try:
            return await transfers.complete(transfer)
        finally:
            connection.transfer = None
            connection.count_body(begin + transfer.count - self._received)
            self._received = begin + transfer.count

    def leave(self) -> None:
        """Skip what was not received."""
        self._connection.skip_body(self._length - self._received)

    @property
    def is_complete(self) -> bool:
        """Whether the application has received all of it."""
        return self._given == self._length
