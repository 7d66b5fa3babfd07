"""Requests that arrive while the event loop is busy."""

from __future__ import annotations

import asyncio
import socket
import time
import urllib.parse
from typing import Any

import pytest

from server.connections.plain_requests import ResponseNow
from tests.integration.connections import on_a_port

uvloop = pytest.importorskip("uvloop")
IDLE_SECONDS = 0.05  # that a connection may be idle
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
PLAIN = b"POST /m:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1"


class App:
    """While it answers a plain request, `client` sends, and its connection is idle for too long."""

    client: socket.socket

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    def answer_now(self, *_: object) -> ResponseNow:
        self.client.send(REQUEST)
        end = time.monotonic() + 2 * IDLE_SECONDS
        while time.monotonic() < end:
            pass
        return ResponseNow(200, b"content-length: 2\r\n\r\nok")


async def answer_of_the_idle_connection() -> bytes:
    app, loop = App(), asyncio.get_running_loop()
    async with on_a_port(app, timeout_keep_alive=IDLE_SECONDS) as address:
        host, port = urllib.parse.urlsplit(address).netloc.split(":")
        with (
            socket.create_connection((host, int(port))) as app.client,
            socket.create_connection((host, int(port))) as other,
        ):
            app.client.setblocking(False)
            other.setblocking(False)
            await loop.sock_sendall(app.client, REQUEST)
            assert (await loop.sock_recv(app.client, 1000)).endswith(b"ok")
            await loop.sock_sendall(other, PLAIN)
            assert (await loop.sock_recv(other, 1000)).endswith(b"ok")
            return await loop.sock_recv(app.client, 1000)


def test_a_connection_that_is_idle_too_long_is_read_before_it_is_closed() -> None:
    """The loop runs timers before it reads; the client has been in time."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(answer_of_the_idle_connection()).endswith(b"ok")
