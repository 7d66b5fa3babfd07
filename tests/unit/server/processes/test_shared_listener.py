"""Connections to one socket are divided among processes; here their parts are in one process."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator

import pytest

from server.processes import shared_listener
from server.processes.shared_listener import SharedListener

SECONDS = 20


class Counts:
    """What the parts know of each other."""

    def __init__(self, counts: list[int], own: int) -> None:
        self._counts = counts
        self._own = own

    def note_connections(self, count: int) -> None:
        self._counts[self._own] = count

    def fewest_connections(self) -> int | None:
        others = [count for part, count in enumerate(self._counts) if part != self._own]
        return min((count for count in others if count >= 0), default=None)


class Part:
    """One process's part, whose protocol is that of its connections."""

    def __init__(self, listener: socket.socket, counts: list[int], own: int) -> None:
        self.protocols: set[asyncio.Protocol] = set()
        self.shared = SharedListener(
            listener, self._protocol, Counts(counts, own), self.protocols.__len__
        )

    def _protocol(self) -> asyncio.Protocol:
        part = self

        class Connection(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                part.protocols.add(self)
                part.shared.note_count()

            def connection_lost(self, exc: Exception | None) -> None:
                part.protocols.discard(self)
                part.shared.note_count()

        return Connection()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        yield listener


def clients_of(listener: socket.socket, count: int) -> list[socket.socket]:
    return [socket.create_connection(listener.getsockname()) for _ in range(count)]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():
            await asyncio.sleep(0.001)


async def ended(parts: list[Part], clients: list[socket.socket]) -> None:
    for part in parts:
        part.shared.close()
        await part.shared.wait_closed()
    for client in clients:
        client.close()
    await until(lambda: not any(part.protocols for part in parts))


@pytest.mark.parametrize("count", [2, 16, 100])
def test_connections_that_arrive_together_are_divided(listener: socket.socket, count: int) -> None:
    async def run() -> None:
        counts = [-1, -1]
        parts = [Part(listener.dup(), counts, own) for own in range(2)]
        clients = clients_of(listener, count)
        await until(lambda: sum(len(part.protocols) for part in parts) == count)
        await until(lambda: counts == [len(part.protocols) for part in parts])
        assert abs(counts[0] - counts[1]) <= 2 + count // 4
        await ended(parts, clients)
        assert counts == [-1, -1]

    asyncio.run(run())


def test_nobody_waits_long_for_a_process_that_does_not_accept(listener: socket.socket) -> None:
    async def run() -> None:
        counts = [-1, 0]  # the other one has none, and never accepts
        part = Part(listener.dup(), counts, 0)
        clients = clients_of(listener, 30)
        await until(lambda: len(part.protocols) == 30)
        await ended([part], clients)

    asyncio.run(run())


def test_a_process_alone_accepts_at_once(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_listener, "PAUSE_SECONDS", 2 * SECONDS)

    async def run() -> None:
        part = Part(listener.dup(), [-1, -1], 0)
        clients = clients_of(listener, 100)
        await until(lambda: len(part.protocols) == 100)
        await ended([part], clients)

    asyncio.run(run())


def test_without_descriptors_it_tries_again(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [errno.EMFILE, errno.ECONNABORTED, errno.EMFILE]

    class Failing(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            if failures:
                raise OSError(failures.pop(), "in the way")
            return super().accept()

    monkeypatch.setattr(shared_listener, "FULL_SECONDS", 0.01)
    failing = Failing(fileno=listener.detach())

    async def run() -> None:
        clients = clients_of(failing, 1)
        part = Part(failing, [-1, -1], 0)
        await until(lambda: len(part.protocols) == 1)
        await ended([part], clients)

    with caplog.at_level("WARNING"):
        asyncio.run(run())
    assert caplog.messages == ["No connection can be accepted: in the way"]


def test_a_closed_part_leaves_the_socket_to_others(listener: socket.socket) -> None:
    async def run() -> None:
        counts = [-1, -1]
        parts = [Part(listener.dup(), counts, own) for own in range(2)]
        parts[0].shared.close()
        assert parts[0].shared.sockets == ()
        clients = clients_of(listener, 20)
        await until(lambda: len(parts[1].protocols) == 20)
        assert not parts[0].protocols
        await ended(parts, clients)

    asyncio.run(run())
