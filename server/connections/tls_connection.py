"""TlsConnection: a connection from its start to the end of its TLS handshake.

The loop's own way of TLS has a connection to itself until the handshake is over: nothing counts it,
and a client may take a minute. Here it counts from its start, and has the time of the headers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from typing import Any, cast

from server.connections.connection_limits import Mark, Waiting
from server.connections.http_protocol import HttpProtocol

_log = logging.getLogger(__name__)


class TlsConnection(asyncio.Protocol):
    """A connection without TLS, which becomes a connection of HttpProtocol with TLS.

    `options` are those of HttpProtocol. Used from one event loop.
    """

    def __init__(self, context: ssl.SSLContext, **options: Any) -> None:
        self._context = context
        self._http = HttpProtocol(**options)
        self._http.before = self
        self._connections = self._http.connections_of_server
        self._transport: asyncio.Transport | None = None
        self._handshake: asyncio.Task[None] | None = None
        self.last_mark: Mark | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake, unless there are too many connections."""
        self._transport = cast(asyncio.Transport, transport)
        loop = self._http.loop
        self._connections.add(self, loop)
        if transport.is_closing():
            return
        # Another transport takes the connection over before this one has read from it.
        try:
            descriptor = os.dup(transport.get_extra_info("socket").fileno())
        except OSError:  # there are no descriptors left
            return
        finally:
            self._transport.abort()
        self._handshake = loop.create_task(self._shake_hands(socket.socket(fileno=descriptor)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that was refused."""
        if self._handshake is None:
            self._connections.remove(self)

    def mark(self) -> Mark:
        """Return that the server waits for the client."""
        return Mark(Waiting.CLOSED if self._handshake is None else Waiting.FIRST, None)

    def refuse(self, status: int, message: str) -> None:
        """Close the connection; there is no way yet to respond."""
        self.end()

    def end(self) -> None:
        """Close the connection at once."""
        if self._handshake is not None:
            self._handshake.cancel()
        elif self._transport is not None:
            self._transport.abort()

    def hand_back(self) -> None:
        """Do nothing: no process hands such connections over."""

    async def _shake_hands(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        try:
            await self._http.loop.connect_accepted_socket(
                lambda: self._http,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._connections.limits.header_seconds,
            )
        except OSError as error:  # an SSLError is one; the connection is closed
            _log.debug("A TLS handshake failed: %s", error)
        finally:
            self._connections.remove(self)
