"""Large calls of gRPC over real Unix sockets, from LargeCalls to the handlers of PassedRpcs."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from runtime.errors import NotFoundError, OpError, ResourceExhaustedError, UnavailableError
from server.background.large_calls import LargeCalls
from server.background.passed_rpcs import Handler, PassedRpcs
from server.connections.connection_limits import ConnectionLimits, Connections
from server.connections.http_protocol import HttpProtocol
from server.processes.patience import Patience
from server.processes.session_ids import Place
from server.processes.socket_files import http_socket
from server.rpc.call import RETRY_AFTER, CallContext

PLACE = Place(1, 2)
PATH = "/service/Method"
LARGE = bytes(range(256)) * 4096  # 1 MiB: a thread sends and receives it
LOW = CallContext(None, {"x-priority": "low", "grpc-timeout": "1S", "text": "ü"})
SECONDS = 20.0  # for what takes some milliseconds
LIMITS = ConnectionLimits(
    max_connections=100,
    max_header_bytes=1 << 16,
    max_headers=100,
    header_seconds=SECONDS,
    body_seconds=SECONDS,
    keep_alive_seconds=SECONDS,
)


class Row:
    """The row of a process whose event loop runs, in the table of processes."""

    generation = PLACE.generation
    beat = float("inf")


class Host:
    """The process that passes calls on."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def patience(self, place: Place, deadline: Callable[[], float | None]) -> Patience:
        return Patience(Row(), place, deadline)  # type: ignore[arg-type] # it has what is used


class App:
    """The application on the socket of the process that answers."""

    answer_now = None

    def __init__(self, handler: Handler) -> None:
        self.rpcs = PassedRpcs({PATH: handler})
        self.connections = Connections(LIMITS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.rpcs(scope, receive, send)


@contextlib.asynccontextmanager
async def process(folder: pathlib.Path, handler: Handler) -> AsyncIterator[App]:
    """Answer calls as the process at PLACE, with the HTTP protocol of the server."""
    app: Any = App(handler)
    config = uvicorn.Config(app, http=HttpProtocol, log_config=None)
    config.load()
    state = uvicorn.server.ServerState()
    server = await asyncio.get_running_loop().create_unix_server(
        lambda: HttpProtocol(config=config, server_state=state, app_state={}),
        str(http_socket(folder, PLACE)),
    )
    try:
        yield app
    finally:
        server.close()
        for each in list(state.connections):
            each.transport.abort()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(scenario(), SECONDS)

    asyncio.run(limited())


def test_messages_and_metadata_arrive_as_they_are(tmp_path: pathlib.Path) -> None:
    seen: list[Any] = []

    async def handler(data: bytes, context: Any) -> bytes:
        seen.append((len(data), dict(context.invocation_metadata()), context.time_remaining()))
        return data[::-1]

    async def scenario() -> None:
        async with process(tmp_path, handler) as app:
            calls = LargeCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
            for data in (LARGE, b"small", b"", LARGE + b"x"):
                assert await calls.call(PLACE, PATH, data, LOW) == data[::-1]
            limited = CallContext(7.5, LOW.metadata, certificate_names=("client",))
            assert await calls.call(PLACE, PATH, b"", limited) == b""
            assert len(app.connections) == 1  # one after the other on one connection
            await asyncio.gather(*(calls.call(PLACE, PATH, LARGE, LOW) for _ in range(3)))
            assert len(app.connections) == 3
            calls.close()

    run(scenario)
    assert [size for size, _, _ in seen] == [len(LARGE), 5, 0, len(LARGE) + 1, 0, *[len(LARGE)] * 3]
    metadata = {"x-priority": "low", "text": "ü"}
    assert seen[0][1:] == (metadata, None)
    assert seen[4][1]["x-runstep-certificate-names"] == '["client"]'
    assert seen[4][2] == 7.5


@pytest.mark.parametrize(
    ("code", "trailers", "error"),
    [
        (grpc.StatusCode.NOT_FOUND, (), NotFoundError),
        (grpc.StatusCode.UNAVAILABLE, (), UnavailableError),  # the process has said so
        (grpc.StatusCode.RESOURCE_EXHAUSTED, ((RETRY_AFTER, "3"),), ResourceExhaustedError),
    ],
)
def test_an_error_is_a_response(
    code: grpc.StatusCode, trailers: Any, error: type[OpError], tmp_path: pathlib.Path
) -> None:
    async def handler(data: bytes, context: Any) -> bytes:
        await context.abort(code, "why: ü", trailers)
        raise AssertionError("abort raises")

    async def scenario() -> None:
        async with process(tmp_path, handler):
            calls = LargeCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
            answer = await calls.call(PLACE, PATH, LARGE, LOW)
            assert isinstance(answer, error)
            assert answer.message == "why: ü"
            assert answer.retry_after_seconds == (3 if trailers else error("").retry_after_seconds)
            calls.close()

    run(scenario)


def test_what_the_process_does_not_answer_is_unavailable(tmp_path: pathlib.Path) -> None:
    async def handler(data: bytes, context: Any) -> bytes:
        raise RuntimeError("a fault of the server's own")

    async def scenario() -> None:
        calls = LargeCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
        with pytest.raises(UnavailableError, match="Process 1 of the server does not answer"):
            await calls.call(PLACE, PATH, LARGE, LOW)  # nobody listens
        async with process(tmp_path, handler):
            with pytest.raises(UnavailableError, match="answers with 404"):
                await calls.call(PLACE, "/service/Other", LARGE, LOW)
            with pytest.raises(UnavailableError, match="answers with 500"):
                await calls.call(PLACE, PATH, LARGE, LOW)
            calls.close()

    run(scenario)


def test_a_process_that_ends_during_a_call_is_unavailable(tmp_path: pathlib.Path) -> None:
    begun = asyncio.Event()

    async def handler(data: bytes, context: Any) -> bytes:
        begun.set()
        await asyncio.sleep(SECONDS)
        return b""

    async def scenario() -> None:
        calls = LargeCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
        async with process(tmp_path, handler):
            call = asyncio.ensure_future(calls.call(PLACE, PATH, LARGE, LOW))
            await begun.wait()
        with pytest.raises(UnavailableError, match="closed the connection"):
            await call

    run(scenario)


def test_ending_a_call_ends_it_there(tmp_path: pathlib.Path) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def handler(data: bytes, context: Any) -> bytes:
        begun.set()
        try:
            await asyncio.sleep(SECONDS)
        finally:
            ended.set()
        return b""

    async def scenario() -> None:
        calls = LargeCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
        async with process(tmp_path, handler):
            call = asyncio.ensure_future(calls.call(PLACE, PATH, LARGE, LOW))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await ended.wait()

    run(scenario)
