"""SocketTransfers: bytes between a socket and memory, whatever the other end does."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import numpy as np
import pytest

from server.connections.socket_transfers import PART_BYTES, SocketTransfers, Transfer

SIZE = 5 * PART_BYTES + 7
TEXT = np.random.default_rng(1).bytes(SIZE)
SECONDS = 30


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in an event loop."""

    @functools.wraps(test)
    def run(*args: Any, **options: Any) -> None:
        asyncio.run(test(*args, **options))

    return run


@pytest.fixture(name="pair")
def make_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection over TCP: ours, which does not block, and the other end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    ours.setblocking(False)
    with ours, theirs:
        theirs.settimeout(SECONDS)
        yield ours, theirs


def receiving(connection: socket.socket, size: int = SIZE) -> tuple[Transfer, bytearray]:
    target = bytearray(size)
    return Transfer(connection, np.frombuffer(target, np.uint8), is_sending=False), target


def least_of(connection: socket.socket) -> int:
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


@in_loop
async def test_bytes_are_received(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    transfer, target = receiving(ours)
    SocketTransfers().begin(transfer)
    await asyncio.to_thread(theirs.sendall, TEXT + b"next")
    assert await asyncio.wait_for(transfer.ended, SECONDS)
    assert target == TEXT
    # What follows is left for others, who are told of a single byte.
    assert least_of(ours) == 1
    assert ours.recv(10) == b"next"


@in_loop
async def test_bytes_that_were_received_before_come_first(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    target = np.zeros(SIZE, np.uint8)
    transfer = Transfer(ours, target, is_sending=False, begin=memoryview(TEXT)[:1000])
    SocketTransfers().begin(transfer)
    await asyncio.to_thread(theirs.sendall, TEXT[1000:])
    assert await asyncio.wait_for(transfer.ended, SECONDS)
    assert target.tobytes() == TEXT
    assert (transfer.count, transfer.new_count) == (SIZE, SIZE - 1000)


@in_loop
async def test_bytes_are_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    transfer = Transfer(ours, np.frombuffer(TEXT, np.uint8), is_sending=True)
    SocketTransfers().begin(transfer)
    received = await asyncio.to_thread(theirs.recv, SIZE)
    while len(received) < SIZE:
        received += await asyncio.to_thread(theirs.recv, SIZE)
    assert received == TEXT
    assert await asyncio.wait_for(transfer.ended, SECONDS)
    assert transfer.left == 0


@in_loop
async def test_many_transfers_share_a_thread() -> None:
    together = SocketTransfers()
    with contextlib.ExitStack() as opened:
        pairs = [[opened.enter_context(each) for each in socket.socketpair()] for _ in range(20)]
        transfers = []
        for number, (ours, _) in enumerate(pairs):
            ours.setblocking(False)
            transfers.append(receiving(ours, 1000 + number))
            together.begin(transfers[-1][0])
        for number, (_, theirs) in enumerate(pairs):
            theirs.sendall(bytes([number]) * (1000 + number))
        for number, (transfer, target) in enumerate(transfers):
            assert await asyncio.wait_for(transfer.ended, SECONDS)
            assert target == bytes([number]) * (1000 + number)


@in_loop
async def test_a_part_that_is_shorter_than_is_waited_for_is_seen_soon(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    together, (transfer, target) = SocketTransfers(), receiving(ours)
    together.begin(transfer)
    theirs.sendall(TEXT[:100])
    async with asyncio.timeout(SECONDS):
        while transfer.count < 100:
            await asyncio.sleep(0.01)
    assert target[:100] == TEXT[:100]
    together.cancel(transfer)


@pytest.mark.parametrize("is_sending", [False, True])
@in_loop
async def test_the_end_of_the_connection_ends_a_transfer(
    pair: tuple[socket.socket, socket.socket], is_sending: bool
) -> None:
    ours, theirs = pair
    text = bytearray(1 << 25)  # more than a socket's buffers hold
    transfer = Transfer(ours, np.frombuffer(text, np.uint8), is_sending=is_sending)
    SocketTransfers().begin(transfer)
    theirs.close()
    assert not await asyncio.wait_for(transfer.ended, SECONDS)


@pytest.mark.parametrize("is_sending", [False, True])
@in_loop
async def test_a_transfer_that_is_cancelled_leaves_the_memory_and_the_socket(
    pair: tuple[socket.socket, socket.socket], is_sending: bool
) -> None:
    ours, theirs = pair
    together, text = SocketTransfers(), bytearray(1 << 25)
    transfer = Transfer(ours, np.frombuffer(text, np.uint8), is_sending=is_sending)
    together.begin(transfer)
    together.cancel(transfer)
    count = transfer.count
    assert not await transfer.ended
    async with asyncio.timeout(SECONDS):
        while transfer.socket.fileno() >= 0:
            await asyncio.sleep(0.01)
    theirs.sendall(b"next")
    assert transfer.count == count
    assert not any(text)
    os.fstat(ours.fileno())  # is still open
    assert least_of(ours) == 1


@in_loop
async def test_the_thread_ends_and_begins_again(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.connections.socket_transfers._IDLE_SECONDS", 0.01)
    ours, theirs = pair
    together = SocketTransfers()
    for _ in range(3):
        transfer, target = receiving(ours, 4)
        together.begin(transfer)
        thread = together._thread
        theirs.sendall(b"some")
        assert await asyncio.wait_for(transfer.ended, SECONDS)
        assert target == b"some"
        assert thread is not None
        await asyncio.to_thread(thread.join, SECONDS)
        assert together._thread is None


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two processors, and a system that says which ones a thread has",
)
@in_loop
async def test_the_thread_leaves_one_processor_to_others(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    transfers, mine = SocketTransfers(), os.sched_getaffinity(0)
    transfer, _ = receiving(ours)
    transfers.begin(transfer)
    await asyncio.to_thread(theirs.sendall, TEXT)
    assert await asyncio.wait_for(transfer.ended, SECONDS)
    thread = transfers._thread
    assert thread is not None
    assert thread.native_id is not None
    assert os.sched_getaffinity(thread.native_id) == mine - {min(mine)}
    assert os.sched_getaffinity(0) == mine
