"""Requests that SessionCalls passes on, between two HTTP protocols of the server."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from server.processes.process_client import ProcessClient
from server.processes.session_ids import Place
from server.rest.session_calls import SessionCalls
from tests.unit.server.unix_server import run, serving


class Patient:
    """Waits for every answer."""

    def check(self) -> None:
        pass


class Host:
    """A process whose sessions are all in one other process."""

    def __init__(self, path: pathlib.Path) -> None:
        self.client = ProcessClient(path)

    def client_of(self, place: Place) -> ProcessClient:
        return self.client

    def patience(self, place: Place, deadline: Callable[[], float | None]) -> Patient:
        return Patient()


async def headers_of(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with the headers of the request."""
    headers = [(name.decode(), value.decode()) for name, value in scope["headers"]]
    await JSONResponse(headers)(scope, receive, send)


@pytest.mark.parametrize(
    ("head", "passed"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", [["host", "process"], ["x-request-id", "r"]]),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Kept: b\r\nTE: c\r\n\r\n",
            [["host", "a"], ["x-kept", "b"], ["x-request-id", "r"]],
        ),
    ],
    ids=["HTTP/1.0 has no Host", "what belongs to a connection"],
)
def test_the_headers_that_are_passed_on(
    head: bytes, passed: list[list[str]], tmp_path: pathlib.Path
) -> None:
    answers: list[bytes] = []

    async def scenario() -> None:
        host: Any = Host(tmp_path / "1.http")
        calls = SessionCalls(host)

        async def front(scope: Scope, receive: Receive, send: Send) -> None:
            scope["request_id"] = "r"
            await calls.pass_on(Place(1, 1), scope, receive, send)

        async with (
            serving(tmp_path / "1.http", headers_of),
            serving(tmp_path / "0.http", front),
        ):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "0.http")
            writer.write(head)
            answers.append(await reader.read())
            writer.close()
            host.client.close()

    run(scenario)
    first, _, body = answers[0].partition(b"\r\n\r\n")
    assert b" 200 " in first
    assert body == JSONResponse(passed).body
