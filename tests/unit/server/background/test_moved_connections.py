"""Connections are handed over with what their clients have sent, or stay where they are."""

from __future__ import annotations

import asyncio
import gc
import os
import pathlib
import socket

import pytest

from server.background.moved_connections import ConnectionReceiver, send_connection
from server.connections.connection_limits import Moved


class Continued(asyncio.Protocol):
    """Notes what it continues, and what comes after it."""

    moved: Moved | None = None

    def __init__(self) -> None:
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.transport.write(data.upper())


@pytest.mark.parametrize("size", [0, 100, 32 << 10, 300_000])
def test_the_other_end_continues_a_connection(tmp_path: pathlib.Path, size: int) -> None:
    async def scenario() -> None:
        made: list[Continued] = []

        def make() -> Continued:
            made.append(Continued())
            return made[-1]

        path = tmp_path / "moved"
        receiver = ConnectionReceiver(path, make)
        client, ours = socket.socketpair()
        client.setblocking(False)
        moved = Moved(os.urandom(size), 3, 7)
        gc.collect()  # what earlier tests have left is not to be closed in between
        before = len(os.listdir("/proc/self/fd"))
        assert send_connection(path, ours.fileno(), moved)
        ours.close()
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, b"more")
        assert await loop.sock_recv(client, 10) == b"MORE"
        (protocol,) = made
        assert (protocol.moved, protocol.received) == (moved, b"more")
        protocol.transport.close()
        assert await loop.sock_recv(client, 10) == b""
        assert len(os.listdir("/proc/self/fd")) == before - 1
        receiver.close()
        client.close()

    asyncio.run(scenario())


def test_a_connection_that_nobody_receives_stays(tmp_path: pathlib.Path) -> None:
    client, ours = socket.socketpair()
    assert not send_connection(tmp_path / "none", ours.fileno(), Moved(b"data", 0, 0))
    ours.sendall(b"still here")
    assert client.recv(20) == b"still here"
    client.close()
    ours.close()


def test_a_queue_that_is_full_refuses(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "full"
    client, ours = socket.socketpair()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full:
        full.bind(str(path))
        answers = [
            send_connection(path, ours.fileno(), Moved(bytes(30_000), 0, 0)) for _ in range(1000)
        ]
    assert answers[0] and not answers[-1]
    client.close()
    ours.close()
