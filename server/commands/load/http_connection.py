"""A connection of one caller to an HTTP server, with one request at a time.

httpx takes a millisecond of processor time for a request, which would limit the load.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import NamedTuple

import httptools

from server.addresses import address_of
from server.commands.load.target import CallFailed

_RECEIVE_BYTES = 1 << 18


class Answer(NamedTuple):
    """Status and body of an answer."""

    status: int
    body: bytes


class HttpConnection:
    """Connects at the first request, and again if the server has closed the connection."""

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None, timeout_seconds: float
    ) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._timeout = timeout_seconds
        self._socket: socket.socket | None = None
        self._received = False  # something of the answer
        self._complete = False
        self._is_kept = False
        self._body: list[bytes] = []

    def request(self, request: bytes) -> Answer:
        """Send a request and return its answer; raise CallFailed if there is none in time."""
        deadline = time.monotonic() + self._timeout
        try:
            return self._request(request, deadline)
        except TimeoutError:
            self.close()
            message = f"{address_of(self._host, self._port)}: no answer within {self._timeout:g} s"
            raise CallFailed("DEADLINE_EXCEEDED", message, lost=True) from None
        except OSError as error:
            self.close()
            reason = error.strerror or str(error)
            message = f"{address_of(self._host, self._port)}: {reason}"
            raise CallFailed("UNAVAILABLE", message, lost=True) from None
        except httptools.HttpParserError as error:
            self.close()
            message = f"{address_of(self._host, self._port)}: does not answer in HTTP: {error}"
            raise CallFailed("INTERNAL", message, lost=True) from None

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _request(self, request: bytes, deadline: float) -> Answer:
        if self._socket is not None:
            try:
                return self._exchange(self._socket, request, deadline)
            except ConnectionError:
                self.close()
                if self._received:
                    raise
                # The server has closed the connection while no request was under way.
        self._socket = self._connect()
        return self._exchange(self._socket, request, deadline)

    def _connect(self) -> socket.socket:
        plain = socket.create_connection((self._host, self._port), self._timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return plain
        try:
            return self._tls.wrap_socket(plain, server_hostname=self._host)
        except OSError:
            plain.close()
            raise

    def _exchange(self, connection: socket.socket, request: bytes, deadline: float) -> Answer:
        self._received, self._complete, self._body = False, False, []
        parser = self._parser = httptools.HttpResponseParser(self)
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        connection.sendall(request)
        while not self._complete:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            connection.settimeout(remaining)
            data = connection.recv(_RECEIVE_BYTES)
            if not data:
                raise ConnectionResetError("the server has closed the connection")
            self._received = True
            parser.feed_data(data)
        status: int = parser.get_status_code()
        if not self._is_kept:
            self.close()
        return Answer(status, b"".join(self._body))

    def on_body(self, data: bytes) -> None:
        """Take in a part of the body: called by the parser."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Note that the answer is complete: called by the parser."""
        self._complete = True
        self._is_kept = self._parser.should_keep_alive()  # it knows that here only
