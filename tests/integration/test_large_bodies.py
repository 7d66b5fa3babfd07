"""Large bodies on real connections: they arrive whole, and what follows them too."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import gc
import hashlib
import types
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pytest
import uvicorn
import uvloop
from starlette.types import Message, Receive, Scope, Send

from runtime.errors import UnavailableError
from server.connections.http_protocol import HttpProtocol
from server.connections.large_body import BLOCK_BYTES, WHOLE_BODY

SECONDS = 30
BODY = np.random.default_rng(1).bytes(BLOCK_BYTES + (1 << 20))
DIGEST = hashlib.sha256(BODY).hexdigest().encode()
ANSWER_BYTES = 1 << 22
SMALL = b"POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"


class App:
    """Answers with the digest of the body, unless the path tells otherwise."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.sent_all: list[bool] = []

    def answer_now(self, *_: object) -> None:
        """Decline, as the server does what is not short."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path, parts = scope["path"], []
        waiting = asyncio.create_task(receive()) if path == "/early" else None
        if waiting is not None:
            await asyncio.sleep(0.02)
        while path not in ("/unread", "/early"):
            try:
                message = await receive()
            except UnavailableError:
                assert path == "/refused"
                break
            self.messages.append(message)
            parts.append(message.get("body", b""))
            if not message.get("more_body") or path == "/first":
                break
        body = b"".join(parts)
        answers = {
            "/large": bytes(len(body)),
            "/answer": bytes(ANSWER_BYTES),
            "/refused": b"no descriptors",
        }
        answer = answers.get(path) or hashlib.sha256(body).hexdigest().encode()
        length = str(len(answer)).encode()
        headers = [(b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})
        self.sent_all.append(True)
        if waiting is not None:
            waiting.cancel()


class Forgetful(App):
    """Keeps no message."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, send)
        self.messages.clear()


@contextlib.asynccontextmanager
async def served(app: App) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """Serve an application; yields a function that connects."""
    config = uvicorn.Config(app, port=0, http=HttpProtocol, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_without_signals(server))
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.001)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield functools.partial(asyncio.open_connection, "127.0.0.1", port, limit=1 << 26)
        finally:
            server.should_exit = server.force_exit = True
            await task


@contextlib.contextmanager
def _without_signals(server: uvicorn.Server) -> Any:
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    yield


def head(path: str, length: int = len(BODY), more: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{more}\r\n".encode()


async def answer(reader: asyncio.StreamReader) -> bytes:
    begin = await reader.readuntil(b"\r\n\r\n")
    assert begin.startswith(b"HTTP/1.1 200")
    lines = begin.lower().split(b"\r\n")
    (length,) = [int(each.split(b":")[1]) for each in lines if each.startswith(b"content-length")]
    return await reader.readexactly(length)


Scenario = Callable[[App, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def on_each_loop(scenario: Scenario) -> Callable[..., None]:
    """Run a test with a connection to the application, on both kinds of event loop."""

    @pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
    def run(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        async def begin() -> None:
            app = App()
            async with asyncio.timeout(SECONDS), served(app) as connect:
                reader, writer = await connect()
                try:
                    await scenario(app, reader, writer)
                finally:
                    writer.close()

        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(begin())

    return run


async def _is_usable(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(SMALL)
    assert await answer(reader) == hashlib.sha256(b"ab").hexdigest().encode()


@on_each_loop
async def test_a_body_arrives_whole(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    for _ in range(3):
        writer.write(head("/") + BODY)
        assert await answer(reader) == DIGEST
    last = app.messages[-1]
    assert bytes(last[WHOLE_BODY]) == BODY
    # The application is asked after each block whether there is memory for it.
    assert max(len(each["body"]) for each in app.messages) <= BLOCK_BYTES
    await _is_usable(reader, writer)


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_body_is_freed_with_its_request(is_whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    def empty(*arguments: Any) -> np.ndarray:
        array: np.ndarray = np.empty(*arguments)
        events.append("made")
        weakref.finalize(array, events.append, "freed")
        return array

    fake = types.SimpleNamespace(empty=empty, uint8=np.uint8, ndarray=np.ndarray)
    monkeypatch.setattr("server.connections.large_body.np", fake)

    async def scenario() -> None:
        async with asyncio.timeout(SECONDS), served(Forgetful()) as connect:
            reader, writer = await connect()
            writer.write(head("/") + BODY[: None if is_whole else 1 << 20])
            while "made" not in events:
                await asyncio.sleep(0.001)
            if is_whole:
                assert await answer(reader) == DIGEST
            else:
                writer.transport.abort()
            while "freed" not in events:
                await asyncio.sleep(0.001)
            writer.close()

    gc.disable()
    try:
        asyncio.run(scenario())
    finally:
        gc.enable()


@on_each_loop
async def test_a_body_arrives_in_pieces(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(head("/"))
    await writer.drain()
    begin = 0
    for size in (1, 1000, 70_000, 300_000, len(BODY)):
        await asyncio.sleep(0.005)
        writer.write(BODY[begin : begin + size])
        await writer.drain()
        begin += size
    assert await answer(reader) == DIGEST
    await _is_usable(reader, writer)


@on_each_loop
async def test_a_body_of_which_little_is_left_when_the_application_begins(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    for size in (65_000, 66_000, 100_000, 131_072, 170_000, 200_000):
        for first in (1, 60_000, size - 60_000, size - 1):
            app.messages.clear()
            writer.write(head("/", size))
            writer.write(BODY[:first])
            await writer.drain()
            await asyncio.sleep(0.002)
            writer.write(BODY[first:size])
            assert await answer(reader) == hashlib.sha256(BODY[:size]).hexdigest().encode()
    await _is_usable(reader, writer)


class Slow(App):
    """Begins to receive when the parser has received much."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.01)
        await super().__call__(scope, receive, send)


def test_a_body_that_the_parser_has_received_a_part_of() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(SECONDS), served(Slow()) as connect:
            reader, writer = await connect()
            for size in (66_000, 131_073, 170_000, 200_000, len(BODY)):
                writer.write(head("/", size))
                for begin in range(0, size, 1 << 16):
                    writer.write(BODY[begin : min(size, begin + (1 << 16))])
                    await writer.drain()
                    await asyncio.sleep(0.001)
                assert await answer(reader) == hashlib.sha256(BODY[:size]).hexdigest().encode()
            await _is_usable(reader, writer)
            writer.close()

    asyncio.run(scenario())


@on_each_loop
async def test_a_request_right_behind_a_body_is_answered(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(head("/") + BODY + SMALL + SMALL)
    assert await answer(reader) == DIGEST
    for _ in range(2):
        assert await answer(reader) == hashlib.sha256(b"ab").hexdigest().encode()


@pytest.mark.parametrize("path", ["/unread", "/first"])
def test_what_the_application_does_not_receive_is_skipped(path: str) -> None:
    @on_each_loop
    async def scenario(
        app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for length in (len(BODY), len(BODY), BLOCK_BYTES + (1 << 16)):
            writer.write(head(path, length) + BODY[:length])
            await answer(reader)
        assert all(WHOLE_BODY not in each for each in app.messages)
        writer.write(head("/") + BODY)
        assert await answer(reader) == DIGEST
        await _is_usable(reader, writer)

    for loop in (asyncio.new_event_loop, uvloop.new_event_loop):
        scenario(loop)


@on_each_loop
async def test_a_client_that_leaves_disconnects_the_request(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(head("/") + BODY[: 1 << 20])
    await writer.drain()
    await asyncio.sleep(0.02)
    writer.transport.abort()
    while not app.messages:
        await asyncio.sleep(0.001)
    assert app.messages[-1]["type"] == "http.disconnect"


@on_each_loop
async def test_a_large_answer_arrives_whole(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    for _ in range(3):
        writer.write(head("/large") + BODY)
        await asyncio.sleep(0.01)  # the client is slow
        assert await answer(reader) == bytes(len(BODY))
    await _is_usable(reader, writer)


@on_each_loop
async def test_a_client_that_does_not_wait_for_a_large_answer_ends_it(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(head("/large") + BODY)
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()
    while not app.sent_all:
        await asyncio.sleep(0.001)


@on_each_loop
async def test_an_answer_while_the_body_is_received_ends_the_connection(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(head("/early") + BODY[: 1 << 20])
    with contextlib.suppress(ConnectionResetError):  # the rest of the body is not read
        await answer(reader)
        assert await reader.read() == b""


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_without_descriptors_a_body_is_refused_and_an_answer_is_sent(
    loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    async def scenario() -> None:
        app = App()
        async with asyncio.timeout(SECONDS), served(app) as connect:
            monkeypatch.setattr("server.connections.socket_transfers.os.dup", fail)
            reader, writer = await connect()
            writer.write(head("/answer", 2) + b"ab")
            assert await answer(reader) == bytes(ANSWER_BYTES)
            writer.write(head("/refused") + BODY)
            assert await answer(reader) == b"no descriptors"
            monkeypatch.undo()
            writer.write(head("/") + BODY)
            assert await answer(reader) == DIGEST
            writer.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(scenario())


@on_each_loop
async def test_an_expectation_is_met(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(head("/", more="Expect: 100-continue\r\n"))
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(BODY)
    assert await answer(reader) == DIGEST
    await _is_usable(reader, writer)


@on_each_loop
async def test_a_chunked_body_is_received_by_the_parser(
    app: App, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY))
    assert await answer(reader) == DIGEST
    assert all(WHOLE_BODY not in each for each in app.messages)
    await _is_usable(reader, writer)
