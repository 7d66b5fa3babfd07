"""Requests to another process over a real Unix socket, and what becomes of its connection."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import pathlib
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from starlette.responses import Response as Answer
from starlette.types import Receive, Scope, Send

from server.processes import process_client
from server.processes.process_client import ProcessClient
from tests.unit.server.unix_server import SECONDS, run, serving

LARGE = bytes(range(256)) * 1024  # 256 KiB: a thread sends it
WITH_HOST = ((b"host", b"process"),)


async def parts_of(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for each in parts:
        yield each


async def read(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def until_left(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with the method, the target, the names of the headers and the body."""
    body = await read(receive)
    names = b",".join(name for name, _ in scope["headers"])
    first = f"{scope['method']} {scope['raw_path'].decode()} ".encode() + names
    await Answer(first + b"\n" + body, 202, {"X-Kind": "Echo"})(scope, receive, send)


async def exchange(client: ProcessClient, *request: Any) -> tuple[int, dict[bytes, bytes], bytes]:
    response = await client.send(*request)
    try:
        return response.status, dict(response.headers), await response.content()
    finally:
        response.end()


@pytest.mark.parametrize(
    "parts",
    [[b"small"], [b""], [], [LARGE], [b"a", b"bc", LARGE, b"d", b"", LARGE], [memoryview(LARGE)]],
)
@pytest.mark.parametrize("has_length", [True, False])
def test_a_body_arrives_whole(parts: list[bytes], has_length: bool, tmp_path: pathlib.Path) -> None:
    whole = b"".join(parts)
    length = ((b"content-length", str(len(whole)).encode()),) if has_length else ()

    async def scenario() -> None:
        path = tmp_path / "0.http"
        async with serving(path, echo) as connections:
            client = ProcessClient(path)
            for _ in range(2):
                status, headers, content = await exchange(
                    client, "POST", b"/a%20b?c=d", (*WITH_HOST, *length), parts_of(parts)
                )
                sent = b"content-length" if has_length else b"transfer-encoding"
                assert content == b"POST /a%20b host," + sent + b"\n" + whole
                assert (status, headers[b"x-kind"]) == (202, b"Echo")
            assert len(connections) == 1
            client.close()

    run(scenario)


def test_requests_without_a_body_and_without_one_in_the_response(tmp_path: pathlib.Path) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        status = 204 if scope["path"] == "/nothing" else 200
        await Answer(b"" if status == 204 else b"text", status)(scope, receive, send)

    async def scenario() -> None:
        path = tmp_path / "0.http"
        async with serving(path, app):
            client = ProcessClient(path)
            status, headers, content = await exchange(client, "HEAD", b"/", WITH_HOST)
            assert (status, headers[b"content-length"], content) == (200, b"4", b"")
            assert (await exchange(client, "GET", b"/", WITH_HOST))[::2] == (200, b"text")
            assert (await exchange(client, "DELETE", b"/nothing", WITH_HOST))[::2] == (204, b"")
            client.close()

    run(scenario)


def test_parts_are_passed_on_as_they_arrive(tmp_path: pathlib.Path) -> None:
    has_received, may_go_on = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["body"] == b"first"
        has_received.set()
        assert await read(receive) == b"second"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await may_go_on.wait()
        await send({"type": "http.response.body", "body": b"two"})

    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        await has_received.wait()
        yield b"second"

    async def scenario() -> None:
        path = tmp_path / "0.http"
        async with serving(path, app):
            client = ProcessClient(path)
            response = await client.send("POST", b"/", WITH_HOST, body())
            parts = response.parts()
            assert await anext(parts) == b"one"
            may_go_on.set()
            assert [each async for each in parts] == [b"two"]
            response.end()
            client.close()

    run(scenario)


def test_a_response_that_is_not_read_ends_its_connection(tmp_path: pathlib.Path) -> None:
    has_ended = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        await until_left(receive)
        has_ended.set()

    async def scenario() -> None:
        path = tmp_path / "0.http"
        async with serving(path, app):
            client = ProcessClient(path)
            response = await client.send("GET", b"/", WITH_HOST)
            response.end()
            await has_ended.wait()

    run(scenario)


def test_ending_a_request_ends_its_connection(tmp_path: pathlib.Path) -> None:
    has_begun, has_ended = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        has_begun.set()
        await until_left(receive)
        has_ended.set()

    async def scenario() -> None:
        path = tmp_path / "0.http"
        async with serving(path, app):
            sending = asyncio.ensure_future(ProcessClient(path).send("GET", b"/", WITH_HOST))
            await has_begun.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            await has_ended.wait()

    run(scenario)


def test_an_error_of_the_body_is_that_of_the_request(tmp_path: pathlib.Path) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        raise ValueError("no more")

    async def scenario() -> None:
        path = tmp_path / "0.http"
        async with serving(path, echo):
            client = ProcessClient(path)
            with pytest.raises(ValueError, match="no more"):
                await client.send("POST", b"/", WITH_HOST, body())
            assert (await exchange(client, "GET", b"/", WITH_HOST))[0] == 202
            client.close()

    run(scenario)


def test_a_connection_that_was_closed_meanwhile_is_not_used(tmp_path: pathlib.Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "0.http"
        client = ProcessClient(path)
        for _ in range(2):
            async with serving(path, echo):
                assert (await exchange(client, "GET", b"/", WITH_HOST))[0] == 202
        with pytest.raises(FileNotFoundError):
            await client.send("GET", b"/", WITH_HOST)

    run(scenario)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nconte", b"no HTTP\r\n\r\n"])
def test_what_is_no_response_is_an_error_of_the_system(said: bytes, tmp_path: pathlib.Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    async def scenario() -> None:
        path = tmp_path / "0.http"
        server = await asyncio.start_unix_server(answer, path)
        with pytest.raises(OSError, match="The other process"):
            await ProcessClient(path).send("GET", b"/", WITH_HOST)
        server.close()

    run(scenario)


def test_a_process_that_ends_during_its_response_is_an_error(tmp_path: pathlib.Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        writer.close()

    async def scenario() -> None:
        path = tmp_path / "0.http"
        server = await asyncio.start_unix_server(answer, path)
        response = await ProcessClient(path).send("GET", b"/", WITH_HOST)
        with pytest.raises(ConnectionResetError):
            await response.content()
        response.end()
        server.close()

    run(scenario)


@pytest.mark.parametrize("is_freed", [True, False])
def test_a_queue_that_is_full_is_waited_for(
    is_freed: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_client, "CONNECT_SECONDS", SECONDS if is_freed else 0.05)

    async def scenario() -> None:
        path = tmp_path / "0.http"
        with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as stack:
            listener.bind(str(path))
            listener.listen(0)
            with pytest.raises(BlockingIOError):
                while True:
                    waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
                    waiting.setblocking(False)
                    waiting.connect(str(path))
            sending = asyncio.ensure_future(ProcessClient(path).send("GET", b"/", WITH_HOST))
            await asyncio.sleep(0.02)
            if not is_freed:
                with pytest.raises(BlockingIOError):
                    await sending
                return
            listener.accept()[0].close()
            await asyncio.sleep(0.05)
            connection = stack.enter_context(listener.accept()[0])
            connection.settimeout(SECONDS)
            answer = b"HTTP/1.1 204 No Content\r\n\r\n"
            while not connection.recv(1 << 10).endswith(b"\r\n\r\n"):
                pass
            connection.sendall(answer)
            response = await sending
            assert response.status == 204
            response.end()

    run(scenario)


@pytest.mark.parametrize("size", [10, 1 << 22])
def test_a_response_before_the_whole_request_was_sent_is_read(
    size: int, tmp_path: pathlib.Path
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nmore")
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        path = tmp_path / "0.http"
        server = await asyncio.start_unix_server(answer, path)
        client = ProcessClient(path)
        for _ in range(2):
            status, _, content = await exchange(
                client, "POST", b"/", WITH_HOST, parts_of([b"a" * size] * 4)
            )
            assert (status, content) == (413, b"more")
        client.close()
        server.close()

    run(scenario)


def test_a_connection_is_kept_for_some_seconds_and_not_by_a_client_that_is_closed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        path = tmp_path / "0.http"
        async with serving(path, echo) as connections:
            client = ProcessClient(path)
            await exchange(client, "GET", b"/", WITH_HOST)
            monkeypatch.setattr(process_client, "_IDLE_SECONDS", -1.0)
            await exchange(client, "GET", b"/", WITH_HOST)
            await asyncio.sleep(0.05)
            assert len(connections) == 1  # the first one was closed, not used
            response = await client.send("GET", b"/", WITH_HOST)
            assert await response.content()
            client.close()
            response.end()
            await asyncio.sleep(0.05)
            assert len(connections) == 0

    run(scenario)


def test_a_response_leaves_nothing_for_the_collector(tmp_path: pathlib.Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "0.http"
        async with serving(path, echo):
            client = ProcessClient(path)
            for _ in range(3):
                await exchange(client, "POST", b"/", WITH_HOST, parts_of([b"text"]))
            left = [each for each in gc.get_objects() if isinstance(each, process_client._Incoming)]
            assert not left
            client.close()

    gc.collect()
    gc.disable()
    try:
        run(scenario)
    finally:
        gc.enable()
