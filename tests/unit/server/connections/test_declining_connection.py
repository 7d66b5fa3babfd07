"""Requests that ask for another protocol are answered as if they had not asked."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.server.connections.test_http_protocol import (
    BODY,
    App,
    Connection,
    after_pieces,
    converse,
    request,
)

# What Java's HttpClient sends with every first request to `http://`.
H2C = (
    b"Connection: Upgrade, HTTP2-Settings",
    b"Upgrade: h2c",
    b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
)
CHUNKS = b"4\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (BODY[:4], len(BODY) - 4, BODY[4:])
CHUNKED = request(*H2C, b"x-other: 1", b"transfer-encoding: chunked", body=CHUNKS)


def test_its_body_is_received_and_it_may_be_answered_at_once() -> None:
    app = App()
    wire = asyncio.run(converse(app, request(*H2C), request(*H2C), request()))
    assert [each[2] for each in app.now] == [BODY] * 3 and not app.scopes
    assert {b"upgrade", b"http2-settings"}.isdisjoint(app.now[0][1])
    assert b"".join(wire.written).count(b"now") == 3


@pytest.mark.parametrize(
    "asking", [request(*H2C, b"x-other: 1"), CHUNKED, request(*H2C, body=b"", target=b"/")]
)
@pytest.mark.parametrize("before", [b"", request(), request(b"x-other: 1")])
def test_wherever_its_bytes_are_divided(asking: bytes, before: bytes) -> None:
    data = before + asking + request()
    asked = asking.count(BODY) or BODY[:4] in asking
    bodies = [BODY] * bool(before) + [BODY if asked else b"", BODY]
    for end in range(1, len(data), 3):
        app = App()
        text = b"".join(after_pieces(app, data[:end], data[end:]))
        assert text.count(b"full") + text.count(b"now") == len(bodies), (end, text)
        received = app.bodies + [each[2] for each in app.now]
        assert sorted(received) == sorted(bodies), end


def test_a_body_is_no_request() -> None:
    app = App()
    hidden = request(target=b"/hidden")
    head = request(*H2C, b"x-other: 1", body=hidden).removesuffix(hidden)
    after_pieces(app, head, hidden)
    assert app.bodies == [hidden] and not app.now


def test_many_that_are_sent_ahead() -> None:
    async def run() -> None:
        app = App()
        connection = Connection(app)
        connection.receive(request(*H2C) * 2000)
        while connection.state.tasks:
            await asyncio.wait(list(connection.state.tasks))
            await asyncio.sleep(0)
        assert len(app.bodies) + len(app.now) == 2000
        connection.protocol.connection_lost(None)

    asyncio.run(run())


def test_a_tunnel_is_none() -> None:
    app = App()
    wire = asyncio.run(converse(app, request(method=b"CONNECT", target=b"x:80")))
    assert b"400 Bad Request" in wire.written[0] and wire.is_closed and not app.now
