"""Which requests the protocol answers at once, and that responses are one write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from server.http_protocol import HttpProtocol
from server.plain_requests import LATE_CONTENT, PLAIN_BODY_BYTES, LateContent, ResponseNow

BODY = b'{"instances":[1]}'


class Wire(asyncio.Transport):
    """Notes what is written; `limit` is what a test lets pass before writing pauses."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def writelines(self, parts: Any) -> None:
        self.written.append(b"".join(parts))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class App:
    """Answers with what the middleware would; `answers` is what it has at once."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []
        self.bodies: list[bytes] = []
        self.now: list[tuple[str, Mapping[bytes, bytes], bytes]] = []
        self.answer: ResponseNow | LateContent | None = ResponseNow(
            200, [(b"content-length", b"3")], b"now"
        )

    def answer_now(
        self, path: str, headers: Mapping[bytes, bytes], body: bytes
    ) -> ResponseNow | LateContent | None:
        self.now.append((path, headers, body))
        return self.answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)
        headers = [(b"content-length", b"4")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"full"})


def request(
    *headers: bytes, method: bytes = b"POST", target: bytes = b"/m:predict", body: bytes = BODY,
    version: bytes = b"1.1",
) -> bytes:  # fmt: skip
    lines = [b"%b %b HTTP/%b" % (method, target, version), b"host: x", *headers]
    if not any(line.lower().startswith(b"transfer") for line in headers):
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def converse(app: Any, *received: bytes) -> Wire:
    """Let a connection receive these pieces one by one, and wait until all tasks have ended."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, proxy_headers=False)
    config.load()
    state = ServerState()
    state.default_headers = [(b"date", b"today")]
    protocol, wire = HttpProtocol(config=config, server_state=state, app_state={}), Wire()
    protocol.connection_made(wire)
    for data in received:
        protocol.data_received(data)
        while state.tasks:
            await asyncio.wait(list(state.tasks))
            await asyncio.sleep(0)
    protocol.connection_lost(None)
    return wire


def after(app: Any, *received: bytes) -> Wire:
    """The wire after `converse`."""
    return asyncio.run(converse(app, *received))


NOW = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 3\r\n\r\nnow"
FULL = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 4\r\n\r\nfull"


def test_a_plain_request_is_answered_at_once_in_one_write() -> None:
    app = App()
    assert after(app, request(b"x-request-id: r")).written == [NOW]
    assert not app.scopes
    ((path, headers, body),) = app.now
    assert (path, body) == ("/m:predict", BODY)
    assert headers == {b"host": b"x", b"x-request-id": b"r", b"content-length": b"17"}


def test_requests_one_after_the_other_are_answered_at_once() -> None:
    app = App()
    assert after(app, *[request()] * 3).written == [NOW] * 3
    assert len(app.now) == 3 and not app.scopes


def test_a_request_that_is_declined_goes_to_the_application() -> None:
    app = App()
    app.answer = None
    assert after(app, request(), request()).written == [FULL] * 2
    assert app.bodies == [BODY] * 2 and len(app.now) == 2
    assert (app.scopes[0]["method"], app.scopes[0]["path"]) == ("POST", "/m:predict")


def test_late_content_is_for_the_application() -> None:
    async def content() -> bytes:
        return b"late"

    async def scenario() -> None:
        late = app.answer = LateContent("predict", content())
        await converse(app, request())
        assert app.scopes[0][LATE_CONTENT] is late
        assert await late.content == b"late"

    app = App()
    asyncio.run(scenario())


@pytest.mark.parametrize(
    "data",
    [
        request(method=b"GET"),
        request(method=b"PUT"),
        request(version=b"1.0"),
        request(target=b"/m:predict?encoding=b64"),
        request(target=b"http://x/m:predict"),
        request(b"connection: close"),
        request(b"x-priority: low"),
        request(b"x-timeout-ms: 5"),
        request(b"authorization: Bearer x"),
        request(b"content-encoding: gzip"),
        request(b"content-type: application/x-protobuf"),
        request(b"accept: a", b"accept: b"),
        request(body=b" " * PLAIN_BODY_BYTES),
        request(b"transfer-encoding: chunked", body=b"3\r\nabc\r\n0\r\n\r\n"),
    ],
)
def test_any_other_request_goes_to_the_application(data: bytes) -> None:
    app = App()
    (written,) = after(app, data).written
    assert written.startswith(b"HTTP/1.1 200 OK\r\n") and written.endswith(b"full")
    assert not app.now and len(app.scopes) == 1


def test_a_body_in_pieces_goes_to_the_application_as_soon_as_there_is_a_task_for_it() -> None:
    app = App()
    whole = request()
    config = uvicorn.Config(app, lifespan="off", log_config=None, proxy_headers=False)
    config.load()

    async def scenario() -> None:
        state = ServerState()
        protocol = HttpProtocol(config=config, server_state=state, app_state={})
        protocol.connection_made(Wire())
        protocol.data_received(whole[:-5])
        (task,) = state.tasks
        await asyncio.sleep(0)
        protocol.data_received(whole[-5:])
        await task
        protocol.connection_lost(None)

    asyncio.run(scenario())
    assert app.bodies == [BODY] and not app.now


def test_an_expectation_is_met() -> None:
    app = App()
    whole = request(b"expect: 100-continue")
    head, _, body = whole.partition(b"\r\n\r\n")

    async def scenario() -> Wire:
        config = uvicorn.Config(app, lifespan="off", log_config=None, proxy_headers=False)
        config.load()
        state, wire = ServerState(), Wire()
        protocol = HttpProtocol(config=config, server_state=state, app_state={})
        protocol.connection_made(wire)
        protocol.data_received(head + b"\r\n\r\n")
        (task,) = state.tasks
        await asyncio.sleep(0)
        assert wire.written == [b"HTTP/1.1 100 Continue\r\n\r\n"]
        protocol.data_received(body)
        await task
        protocol.connection_lost(None)
        return wire

    wire = asyncio.run(scenario())
    assert wire.written[1].endswith(b"full") and not app.now


def test_of_pipelined_requests_one_is_answered_at_once() -> None:
    """The others wait for the loop, so that other connections have their turn."""
    app = App()
    wire = after(app, request() * 4)
    assert wire.written == [NOW, FULL, FULL, FULL]
    assert len(app.now) == 1


def test_a_request_behind_one_that_runs_waits() -> None:
    app = App()
    assert after(app, request(b"x-priority: low") + request()).written == [FULL, FULL]
    assert not app.now


def test_what_is_no_http_is_refused() -> None:
    app = App()
    wire = after(app, b"POST m HTTP/9\r\n\r\n")
    assert wire.written[0].startswith(b"HTTP/1.1 400") and wire.is_closed
    assert not app.now and not app.scopes


def test_what_follows_an_answer_and_is_no_http_is_refused() -> None:
    app = App()
    wire = after(app, request() + b"\0\0")
    assert wire.written[0] == NOW
    assert wire.written[1].startswith(b"HTTP/1.1 400") and wire.is_closed


def test_an_application_without_answers_gets_every_request() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    assert after(app, request()).written == [b"HTTP/1.1 204 No Content\r\ndate: today\r\n\r\n"]


Sending = Callable[[Any], Any]


def responding(*messages: dict[str, Any]) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        for message in messages:
            await send(message)

    return app


START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}
HEAD = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 4\r\n\r\n"


def body_part(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


def test_the_head_is_written_with_the_first_part_of_the_body() -> None:
    app = responding(START, body_part(b"fu", more=True), body_part(b"ll"))
    assert after(app, request()).written == [HEAD + b"fu", b"ll"]


def test_a_response_to_head_has_no_body() -> None:
    app = responding(START, body_part(b"full"))
    assert after(app, request(method=b"HEAD", body=b"")).written == [HEAD]


def test_a_connection_that_is_not_kept_is_closed_after_the_response() -> None:
    app = responding(START, body_part(b"full"))
    wire = after(app, request(b"connection: close"))
    assert wire.written == [HEAD[:-2] + b"connection: close\r\n\r\nfull"]
    assert wire.is_closed


def test_half_a_response_breaks_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    wire = after(responding(START), request())
    assert wire.is_closed and b"500" not in b"".join(wire.written)


def test_a_response_without_a_length_is_chunked() -> None:
    app = responding(START | {"headers": []}, body_part(b"full"))
    (written,) = after(app, request()).written
    assert written.endswith(b"transfer-encoding: chunked\r\n\r\n4\r\nfull\r\n0\r\n\r\n")
