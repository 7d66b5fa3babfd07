"""Requests on a connection of the background process: one at a time, each where it belongs."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import socket
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from server.connections.connection_limits import Connections, Moved
from server.connections.http_protocol import HttpProtocol
from server.connections.large_body import LEAST_BYTES
from server.connections.one_by_one import length_of_request

HERE, AWAY = b"Here: yes\r\n", b""


def request(body: bytes, kind: bytes = HERE) -> bytes:
    return b"POST /m HTTP/1.1\r\nHost: a\r\n%bContent-Length: %d\r\n\r\n%b" % (
        kind, len(body), body,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc", 43),
        (b"POST / HTTP/1.1\r\ncontent-length:\t0 \t\r\nA: b\r\n\r\nPOST", 46),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n", None),
        (b"POST / HTTP/1.1\r\nA: b\r\n\r\nContent-Length: 5\r\n\r\n", None),
        (b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", None),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", None),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nUpgrade: a\r\n\r\n", None),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nA: b\nTransfer-Encoding: chunked\r\n\r\n", None),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nA: b\rc\r\n\r\n", None),
        (b"\r\n\r\n", None),
        (b"", None),
    ],
)
def test_the_length_of_a_request(data: bytes, expected: int | None) -> None:
    assert length_of_request(data) == expected


class Mover:
    """Hands over what is not HERE, `refusals` times not; keeps the connection."""

    is_background = True

    def __init__(self, refusals: int = 0) -> None:
        self.is_draining = False
        self.refusals = refusals
        self.moved: tuple[int, bytes] | None = None

    def belongs_here(self, data: bytes) -> bool:
        return HERE in data[: data.find(b"\r\n\r\n") + 4]

    def move(self, descriptor: int, data: bytes, before: Moved | None) -> bool:
        assert self.moved is None
        if self.refusals:
            self.refusals -= 1
            return False
        self.moved = os.dup(descriptor), data
        return True


class App:
    """Echoes, some bodies later than others; notes the bodies."""

    def __init__(self, mover: Mover) -> None:
        self.bodies: list[bytes] = []
        self.connections = Connections()
        self.connections.mover = mover
        self.answer_now = lambda *_: None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)
        if body.endswith(b"later"):
            await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": length_of(body)})
        await send({"type": "http.response.body", "body": body})


def length_of(body: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-length", b"%d" % len(body))]


class Handed:
    """A connection that was handed over with `data`, and its client."""

    def __init__(self, mover: Mover) -> None:
        self.mover = mover
        self.app = App(mover)
        self.config = uvicorn.Config(
            self.app,
            lifespan="off",
            log_config=None,
            proxy_headers=False,
        )
        self.config.load()
        self.client, self.ours = socket.socketpair()
        self.client.setblocking(False)
        self.received = b""

    async def begin(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()

        def make() -> HttpProtocol:
            self.protocol = HttpProtocol(
                config=self.config, server_state=ServerState(), app_state={}
            )
            self.protocol.moved = Moved(data, 1, 0)
            return self.protocol

        await loop.connect_accepted_socket(make, self.ours)
        await asyncio.sleep(0)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.client, data)

    async def until_received(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(20):
            while self.received.count(b"200 OK") < count or not self.received.endswith(b"."):
                self.received += await loop.sock_recv(self.client, 1 << 20)

    async def receive_all(self) -> None:
        """Receive until the connection is handed over, and what was sent before."""
        is_moved = False
        while not is_moved:
            is_moved = self.mover.moved is not None
            with contextlib.suppress(BlockingIOError):
                while more := self.client.recv(1 << 20):
                    self.received += more
            await asyncio.sleep(0.001)

    async def until_moved(self, last: bytes) -> bytes:
        """What the other process receives that the connection is handed over to; `last` ends it."""
        async with asyncio.timeout(20):
            while self.mover.moved is None:
                await asyncio.sleep(0.001)
            descriptor, data = self.mover.moved
            with socket.socket(fileno=descriptor) as other:
                other.setblocking(False)
                while not data.endswith(last):
                    data += await asyncio.get_running_loop().sock_recv(other, 1 << 20)
        return data

    async def end(self) -> None:
        self.client.close()
        self.protocol.transport.abort()
        await asyncio.sleep(0)


def test_what_follows_is_handed_back_when_the_response_is_out() -> None:
    async def scenario() -> None:
        connection = Handed(Mover())
        away = request(b"away", AWAY)
        await connection.begin(request(b"1, later") + request(b"2.") + away)
        await connection.send(away)
        await connection.until_received(2)
        assert await connection.until_moved(away + away) == away + away
        assert connection.app.bodies == [b"1, later", b"2."]
        await connection.end()

    asyncio.run(scenario())


def test_a_request_waits_until_it_can_be_handed_back() -> None:
    async def scenario() -> None:
        mover = Mover(refusals=5)
        connection = Handed(mover)
        await connection.begin(request(b"1.") + request(b"away", AWAY))
        await connection.until_received(1)
        assert await connection.until_moved(b"away") == request(b"away", AWAY)
        assert (connection.app.bodies, mover.refusals) == ([b"1."], 0)
        await connection.end()

    asyncio.run(scenario())


def test_a_client_that_goes_away_while_a_request_waits_is_noticed() -> None:
    async def scenario() -> None:
        connection = Handed(Mover(refusals=1 << 30))
        await connection.begin(request(b"1.") + request(b"away", AWAY))
        await connection.until_received(1)
        connection.client.close()
        async with asyncio.timeout(20):
            while not connection.protocol.transport.is_closing():
                await asyncio.sleep(0.001)
        assert connection.mover.refusals < 1 << 30
        assert connection.app.bodies == [b"1."]
        await connection.end()

    asyncio.run(scenario())


def test_a_process_that_drains_hands_back_all() -> None:
    async def scenario() -> None:
        for first, sent in ((b"", b""), (b"", request(b"1.")), (request(b"1."), b"")):
            connection = Handed(Mover())
            if first:
                connection.mover.is_draining = True
            await connection.begin(first)
            connection.mover.is_draining = True
            await connection.send(sent)
            if not first and not sent:
                connection.app.connections.hand_back()
            assert await connection.until_moved(first + sent) == first + sent
            assert connection.app.bodies == []
            await connection.end()

    asyncio.run(scenario())


def test_a_process_that_drains_hands_back_what_it_has_answered() -> None:
    async def scenario() -> None:
        connection = Handed(Mover())
        await connection.begin(request(b"1, later."))
        while not connection.app.bodies:
            await asyncio.sleep(0.001)
        connection.mover.is_draining = True
        connection.app.connections.hand_back()
        await connection.until_received(1)
        assert await connection.until_moved(b"") == b""
        await connection.end()

    asyncio.run(scenario())


def test_a_process_that_drains_answers_what_nobody_else_does() -> None:
    async def scenario() -> None:
        connection = Handed(Mover(refusals=1 << 30))
        connection.mover.is_draining = True
        await connection.begin(request(b"1.") + request(b"2.", AWAY))
        await connection.until_received(2)
        assert connection.app.bodies == [b"1.", b"2."]
        await connection.end()

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(60))
def test_every_order_in_any_pieces(seed: int) -> None:
    """Requests are answered here until one belongs elsewhere; nothing is lost, or done twice."""

    async def scenario() -> None:
        chance = random.Random(seed)
        sizes = (0, 10, 1000, LEAST_BYTES + 70_000)
        kinds = [HERE] * chance.randint(1, 6) + [AWAY, *chance.choices((HERE, AWAY), k=3)]
        bodies = [
            b"%d %b%b" % (number, b"x" * chance.choice(sizes), chance.choice((b".", b" later")))
            for number in range(len(kinds))
        ]
        bodies[-1] += b"end"
        requests = list(map(request, bodies, kinds))
        stream = b"".join(requests)
        head = len(requests[0]) - len(bodies[0])
        # It is handed over with the first head at least, and anything that follows.
        cuts = sorted(chance.sample(range(head, len(stream)), chance.randint(1, 8)))
        connection = Handed(Mover(refusals=chance.choice((0, 2))))
        receiving = asyncio.create_task(connection.receive_all())
        moving = asyncio.create_task(connection.until_moved(b"end"))
        await connection.begin(stream[: cuts[0]])
        for begin, end in itertools.pairwise((*cuts, len(stream))):
            await connection.send(stream[begin:end])
            await asyncio.sleep(chance.choice((0, 0.002)))
        await receiving
        moved = await moving
        answered = connection.app.bodies
        assert answered == bodies[: len(answered)]
        assert 0 < len(answered) <= kinds.index(AWAY)
        assert moved == b"".join(requests[len(answered) :])
        responses = connection.received.split(b"HTTP/1.1 200 OK\r\n")[1:]
        assert [each.partition(b"\r\n\r\n")[2] for each in responses] == answered
        await connection.end()

    asyncio.run(scenario())
