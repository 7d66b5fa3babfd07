"""Calls of gRPC over a real Unix socket, from ProcessCalls by way of PassedRpcs to a handler."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from runtime.errors import (
    DeadlineExceededError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from server.background.passed_rpcs import PassedRpcs
from server.connections.connection_limits import Connections
from server.processes import patience
from server.processes.patience import Patience
from server.processes.process_client import ProcessClient
from server.processes.session_ids import Place
from server.processes.socket_files import http_socket
from server.rpc.call import RETRY_AFTER, CallContext
from server.rpc.direct_calls import DirectCalls
from server.rpc.process_calls import ProcessCalls
from server.rpc.rpc_answers import Handler
from tests.unit.server.unix_server import SECONDS, run, serving

PLACE = Place(1, 2)
PATH = "/service/Method"
LARGE = bytes(range(256)) * 4096  # 1 MiB: a thread sends and receives it
LOW = CallContext(None, {"x-priority": "low", "grpc-timeout": "1S", "text": "ü"})


class Row:
    """The row of a process whose event loop runs, in the table of processes."""

    generation = PLACE.generation
    beat = float("inf")


class Host:
    """The process that passes calls on."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.client = ProcessClient(http_socket(folder, PLACE))

    def client_of(self, place: Place) -> ProcessClient:
        return self.client

    def patience(self, place: Place, deadline: Callable[[], float | None]) -> Patience:
        return Patience(Row(), place, deadline)  # type: ignore[arg-type] # it has what is used


def process(
    folder: pathlib.Path, handler: Handler
) -> contextlib.AbstractAsyncContextManager[Connections]:
    """Answer calls as the process at PLACE."""
    return serving(http_socket(folder, PLACE), PassedRpcs(DirectCalls({PATH: handler})))


def test_messages_and_metadata_arrive_as_they_are(tmp_path: pathlib.Path) -> None:
    seen: list[Any] = []

    async def handler(data: bytes, context: Any) -> bytes:
        seen.append((len(data), dict(context.invocation_metadata()), context.time_remaining()))
        return data[::-1]

    async def scenario() -> None:
        async with process(tmp_path, handler) as connections:
            calls = ProcessCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
            for data in (LARGE, b"small", b"", LARGE + b"x"):
                assert await calls.call(PLACE, PATH, data, LOW) == data[::-1]
            limited = CallContext(7.5, LOW.metadata, certificate_names=("client",))
            assert await calls.call(PLACE, PATH, b"", limited) == b""
            assert len(connections) == 1  # one after the other on one connection
            await asyncio.gather(*(calls.call(PLACE, PATH, LARGE, LOW) for _ in range(3)))
            assert len(connections) == 3
            calls._host.client.close()

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
            calls = ProcessCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
            answer = await calls.call(PLACE, PATH, LARGE, LOW)
            assert isinstance(answer, error)
            assert answer.message == "why: ü"
            assert answer.retry_after_seconds == (3 if trailers else error("").retry_after_seconds)
            calls._host.client.close()

    run(scenario)


def test_what_the_process_does_not_answer_is_an_error_of_the_system(tmp_path: pathlib.Path) -> None:
    async def handler(data: bytes, context: Any) -> bytes:
        raise RuntimeError("a fault of the server's own")

    async def scenario() -> None:
        calls = ProcessCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
        with pytest.raises(FileNotFoundError):
            await calls.call(PLACE, PATH, LARGE, LOW)  # nobody listens
        async with process(tmp_path, handler):
            with pytest.raises(ConnectionError, match="Process 1 of the server answers with 500"):
                await calls.call(PLACE, PATH, LARGE, LOW)
            calls._host.client.close()

    run(scenario)


def test_a_method_that_is_not_there_is_unimplemented(tmp_path: pathlib.Path) -> None:
    async def handler(data: bytes, context: Any) -> bytes:
        raise AssertionError("not called")

    async def scenario() -> None:
        async with process(tmp_path, handler):
            calls = ProcessCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
            answer = await calls.call(PLACE, "/service/Other", LARGE, LOW)
            assert isinstance(answer, UnimplementedError)
            calls._host.client.close()

    run(scenario)


class Waiting:
    """A handler that waits until its call is cancelled."""

    def __init__(self) -> None:
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def __call__(self, data: bytes, context: Any) -> bytes:
        self.begun.set()
        try:
            await asyncio.sleep(SECONDS)
        finally:
            self.ended.set()
        return b""


def test_an_end_of_the_process_is_an_error_of_the_system(tmp_path: pathlib.Path) -> None:
    async def scenario() -> None:
        calls, handler = ProcessCalls(Host(tmp_path)), Waiting()  # type: ignore[arg-type] # it has what is used
        async with process(tmp_path, handler):
            call = asyncio.ensure_future(calls.call(PLACE, PATH, LARGE, LOW))
            await handler.begun.wait()
        with pytest.raises(ConnectionError, match="has closed the connection"):
            await call

    run(scenario)


def test_ending_a_call_ends_it_there(tmp_path: pathlib.Path) -> None:
    async def scenario() -> None:
        calls, handler = ProcessCalls(Host(tmp_path)), Waiting()  # type: ignore[arg-type] # it has what is used
        async with process(tmp_path, handler):
            call = asyncio.ensure_future(calls.call(PLACE, PATH, LARGE, LOW))
            await handler.begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await handler.ended.wait()

    run(scenario)


def test_a_call_that_the_process_cancels_when_it_ends_is_not_answered(
    tmp_path: pathlib.Path,
) -> None:
    async def scenario() -> None:
        calls, handler = ProcessCalls(Host(tmp_path)), Waiting()  # type: ignore[arg-type] # it has what is used
        answers = DirectCalls({PATH: handler})
        async with serving(http_socket(tmp_path, PLACE), PassedRpcs(answers)):
            call = asyncio.ensure_future(calls.call(PLACE, PATH, LARGE, LOW))
            await handler.begun.wait()
            await answers.stop(0)
            with pytest.raises(ConnectionError, match="Process 1 of the server answers with 503"):
                await call
            calls._host.client.close()

    run(scenario)


def test_a_process_that_hangs_is_unavailable_and_a_call_has_its_deadline(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.01)

    async def scenario() -> None:
        async with process(tmp_path, Waiting()):
            calls = ProcessCalls(Host(tmp_path))  # type: ignore[arg-type] # it has what is used
            limited = CallContext(0.05, {"x-priority": "low"})
            answer = await calls.call(PLACE, PATH, b"small", limited)
            assert isinstance(answer, DeadlineExceededError)
            monkeypatch.setattr(Row, "beat", 1)  # long ago
            with pytest.raises(UnavailableError, match="its event loop has not run"):
                await calls.call(PLACE, PATH, b"small", LOW)
            calls._host.client.close()

    run(scenario)
