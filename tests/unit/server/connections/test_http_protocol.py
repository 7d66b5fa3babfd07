"""Which requests the protocol answers at once, and that responses are one write."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from server.connections import http_protocol, writes_of_turn
from server.connections.connection_limits import Connections
from server.connections.http_protocol import HttpProtocol
from server.connections.joined_response import PART_BYTES
from server.connections.plain_requests import (
    LATE_CONTENT,
    MAX_HEADS,
    PLAIN_BODY_BYTES,
    KnownHeads,
    LateContent,
    PlainHead,
    ResponseNow,
)

BODY = b'{"instances":[1]}'


class Wire(asyncio.Transport):
    """Notes what is written; `limit` is what a test lets pass before writing pauses."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written: list[bytes] = []
        self.is_closed = False
        self.is_paused = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def writelines(self, parts: Any) -> None:
        self.written.append(b"".join(parts))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class App:
    """Answers with what the middleware would; `answers` is what it has at once."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []
        self.bodies: list[bytes] = []
        self.now: list[tuple[str, Mapping[bytes, bytes], bytes]] = []
        self.answer: ResponseNow | LateContent | None = ResponseNow(
            200, b"content-length: 3\r\n\r\nnow"
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


@pytest.fixture(autouse=True)
def _turns_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, what is written in a turn is written at its end."""
    monkeypatch.setattr(writes_of_turn, "HOLD_SECONDS", math.inf)


class Connection:
    """A connection whose pieces a test gives one by one; to be used in an event loop."""

    def __init__(self, app: Any) -> None:
        config = uvicorn.Config(app, lifespan="off", log_config=None, proxy_headers=False)
        config.load()
        self.state = ServerState()
        self.state.default_headers = [(b"date", b"today")]
        self.wire = Wire()
        self.protocol = HttpProtocol(config=config, server_state=self.state, app_state={})
        self.protocol.connection_made(self.wire)
        self.receive = self.protocol.data_received


@pytest.mark.parametrize("is_plain", [True, False])
def test_white_space_around_a_value_is_not_part_of_it(is_plain: bool) -> None:
    app = App()
    name = b"accept" if is_plain else b"x-priority"
    after(app, request(name + b":\t low \t "))
    headers = app.now[0][1] if is_plain else dict(app.scopes[0]["headers"])
    assert headers[name] == b"low"


async def converse(app: Any, *received: bytes) -> Wire:
    """Let a connection receive these pieces one by one, and wait until all tasks have ended."""
    connection = Connection(app)
    for data in received:
        connection.receive(data)
        await asyncio.sleep(0)
        while connection.state.tasks:
            await asyncio.wait(list(connection.state.tasks))
            await asyncio.sleep(0)
    connection.protocol.connection_lost(None)
    return connection.wire


def after(app: Any, *received: bytes) -> Wire:
    """The wire after `converse`."""
    return asyncio.run(converse(app, *received))


def after_pieces(app: Any, *received: bytes) -> list[bytes]:
    """What is written when these pieces of requests are received, and then all tasks end."""

    async def scenario() -> Wire:
        connection = Connection(app)
        for data in received:
            connection.receive(data)
            await asyncio.sleep(0)
        while connection.state.tasks:
            await asyncio.wait(list(connection.state.tasks))
            await asyncio.sleep(0)
        connection.protocol.connection_lost(None)
        return connection.wire

    return asyncio.run(scenario()).written


NOW = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 3\r\n\r\nnow"
FULL = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 4\r\n\r\nfull"


def test_a_plain_request_is_answered_at_once_in_one_write() -> None:
    app = App()
    assert after(app, request(b"x-request-id: r")).written == [NOW]
    assert not app.scopes
    ((path, headers, body),) = app.now
    assert (path, body) == ("/m:predict", BODY)
    assert headers == {b"host": b"x", b"x-request-id": b"r", b"content-length": b"17"}


@pytest.mark.parametrize("method", [b"POST", b"GET"])
@pytest.mark.parametrize(
    ("sent", "hosts"),
    [
        (lambda method: request(b"HOST: y", method=method), 2),
        (lambda method: request(b"x-other: 1", b"host: x", method=method), 2),
        (lambda method: request(b"host: y", method=method, version=b"1.0"), 2),
        (lambda method: request(method=method).replace(b"host: x\r\n", b""), 0),
        (lambda method: request(b"x-other: 1", method=method).replace(b"host: x\r\n", b""), 0),
    ],
    ids=["two", "two and more", "two of HTTP/1.0", "none", "none but others"],
)
def test_a_request_without_one_host_is_refused(
    sent: Callable[[bytes], bytes], hosts: int, method: bytes
) -> None:
    app = App()
    data = sent(method)
    wire = after(app, request(), data, request())
    assert wire.written[0] == NOW and len(wire.written) == 2 and wire.is_closed
    assert wire.written[1].startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b'"error":"Expected one Host header, got %d"' % hosts in wire.written[1]
    assert not app.scopes and len(app.now) == 1


def test_a_request_of_http_1_0_needs_no_host() -> None:
    app = App()
    wire = after(app, request(version=b"1.0").replace(b"host: x\r\n", b""))
    assert b"full" in wire.written[0] and len(app.scopes) == 1


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


def test_a_head_that_was_sent_before_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request with it is answered like the first one, whatever its body is."""

    async def scenario() -> None:
        connection = Connection(app)
        connection.receive(request(b"x-request-id: known"))
        other = Connection(app)
        monkeypatch.setattr(other.protocol, "parser", None)
        other.receive(request(b"x-request-id: known", body=BODY[::-1]))
        await asyncio.sleep(0)
        assert connection.wire.written == other.wire.written == [NOW]

    app = App()
    asyncio.run(scenario())
    assert [body for _, _, body in app.now] == [BODY, BODY[::-1]]
    assert app.now[0][:2] == app.now[1][:2]


def test_a_known_head_that_is_declined_goes_to_the_application() -> None:
    app = App()
    assert after(app, request()).written == [NOW]
    app.answer = None
    assert after(app, request()).written == [FULL]
    assert app.bodies == [BODY] and len(app.now) == 2


def test_a_known_head_within_another_request_is_a_part_of_that() -> None:
    """Otherwise a client could hide a request from whatever stands before the server."""
    whole = request()
    outer = request(body=whole)
    app = App()
    assert after(app, whole).written == [NOW]
    assert after_pieces(app, outer[: -len(whole)], whole) == [NOW]
    assert [body for _, _, body in app.now] == [BODY, whole]
    assert after_pieces(app, b"POST /m:predict HTTP/1.1\r\nx-other: ", whole) == [FULL]
    assert len(app.now) == 2


def test_a_known_head_before_the_rest_of_its_body_or_more_is_parsed() -> None:
    app = App()
    whole = request()
    assert after(app, whole).written == [NOW]
    assert after_pieces(app, whole[:-1], whole[-1:]) == [NOW]
    assert after(app, whole + whole).written == [NOW, FULL]


@pytest.mark.parametrize(
    "data",
    [
        request() + request(),
        b"\r\n" + request(),
        request().replace(b"host: x", b"host: x" * 1000),
        request(b"x-request-id: a\tb"),
    ],
    ids=["two", "empty line", "long", "ordinary"],
)
def test_only_ordinary_heads_are_remembered(data: bytes, request: pytest.FixtureRequest) -> None:
    heads, head = KnownHeads(), PlainHead("/m:predict", {}, len(BODY))
    heads.add(data, head)
    is_ordinary = request.node.callspec.id == "ordinary"
    assert (heads.find(data) is not None) is is_ordinary


def test_a_full_table_of_heads_begins_anew() -> None:
    heads, first = KnownHeads(), request(b"x-request-id: first")
    head = PlainHead("/m:predict", {}, len(BODY))
    heads.add(first, head)
    assert heads.find(first) == (head, BODY)
    for number in range(MAX_HEADS):
        heads.add(request(b"x-request-id: %d" % number), head)
    assert heads.find(first) is None


def test_connections_are_answered_together_at_the_end_of_a_turn() -> None:
    async def scenario() -> None:
        connections = [Connection(app) for _ in range(3)]
        for connection in connections:
            connection.receive(request())
        assert not any(connection.wire.written for connection in connections)
        await asyncio.sleep(0)
        assert [connection.wire.written for connection in connections] == [[NOW]] * 3

    app = App()
    app.connections = Connections()  # type: ignore[attr-defined] # as the middleware has it
    asyncio.run(scenario())


@pytest.mark.parametrize(
    "happen",
    [
        lambda protocol: protocol.eof_received(),
        lambda protocol: protocol.shutdown(),
        lambda protocol: protocol.refuse(503, "There are too many"),
        lambda protocol: protocol.data_received(b"\0\0"),
        lambda protocol: protocol.data_received(request(b"x-other: a" * 8000)),
    ],
    ids=["end of input", "shutdown", "refused", "no http", "large head"],
)
def test_an_answer_is_written_before_whatever_comes_next(
    happen: Callable[[HttpProtocol], None],
) -> None:
    async def scenario() -> None:
        connection = Connection(app)
        connection.receive(request())
        happen(connection.protocol)
        assert connection.wire.written[0] == NOW
        await asyncio.sleep(0)
        assert NOW not in connection.wire.written[1:]

    app = App()
    asyncio.run(scenario())


def test_the_headers_of_every_response_are_those_of_now() -> None:
    async def scenario() -> None:
        connection = Connection(app)
        connection.receive(request())
        connection.state.default_headers = [(b"date", b"later")]
        connection.receive(request())
        app.answer = ResponseNow(404, b"\r\n")
        connection.receive(request())
        await asyncio.sleep(0)
        assert connection.wire.written == [
            NOW + NOW.replace(b"today", b"later") + b"HTTP/1.1 404 Not Found\r\ndate: later\r\n\r\n"
        ]
        assert connection.state.total_requests == 3

    app = App()
    asyncio.run(scenario())


def test_an_idle_connection_is_closed_some_time_after_its_last_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        now, timers = [100.0], []
        monkeypatch.setattr(loop, "time", lambda: now[0])
        monkeypatch.setattr(loop, "call_later", lambda *timer: timers.append(timer) or Timer())
        connection = Connection(App())
        for now[0] in (100.0, 102.0, 104.0):
            connection.receive(request())
        _, (seconds, expire) = timers  # the first one is of the limits of connections
        assert seconds == connection.protocol.timeout_keep_alive == 5
        now[0] = 105.0
        expire()
        assert [seconds for seconds, _ in timers[1:]] == [5, 4] and not connection.wire.is_closed
        now[0] = 109.0
        expire()
        # What the client sent while the loop was busy has not been read yet.
        assert timers[-1][0] == http_protocol.LAST_LOOK_SECONDS and not connection.wire.is_closed
        connection.receive(request())
        now[0] = 109.1
        expire()
        assert timers[-1][0] == pytest.approx(4.9) and not connection.wire.is_closed
        now[0] = 114.0
        expire()
        expire()
        assert connection.wire.is_closed
        monkeypatch.undo()

    class Timer:
        def cancel(self) -> None:
            pass

    asyncio.run(scenario())


def test_no_more_is_read_while_requests_wait_for_their_turn() -> None:
    """Otherwise they arrive faster than they are answered, and are kept without limit."""

    async def scenario() -> None:
        connection = Connection(App())
        connection.receive(request(method=b"GET") * 3)
        waiting = []
        while connection.protocol.pipeline:
            waiting.append((len(connection.protocol.pipeline), connection.wire.is_paused))
            await asyncio.sleep(0)
        assert {count for count, _ in waiting} == {1, 2}
        assert all(is_paused for _, is_paused in waiting)
        assert not connection.wire.is_paused

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


def test_a_body_that_follows_its_head_soon_is_waited_for() -> None:
    app, whole = App(), request()
    for end in (-len(BODY), -5):
        assert after_pieces(app, whole[:end], whole[end:]) == [NOW]
    assert [body for _, _, body in app.now] == [BODY, BODY] and not app.scopes


def test_a_body_that_comes_late_goes_to_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HOLD_SECONDS", 0)
    app, whole = App(), request()

    async def scenario() -> None:
        connection = Connection(app)
        connection.receive(whole[:-5])
        while not connection.state.tasks:
            await asyncio.sleep(0)
        connection.receive(whole[-5:])
        await asyncio.wait(list(connection.state.tasks))
        assert connection.wire.written == [FULL]

    asyncio.run(scenario())
    assert app.bodies == [BODY] and not app.now


def test_a_request_whose_body_is_waited_for_ends_with_its_connection() -> None:
    """The application is told, as of any request whose client goes away."""
    messages: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        messages.append(await receive())

    app.answer_now = App().answer_now  # type: ignore[attr-defined] # as the middleware has it

    async def scenario() -> None:
        connection = Connection(app)
        connection.receive(request()[:-5])
        assert not connection.state.tasks
        connection.protocol.connection_lost(None)
        await asyncio.wait(list(connection.state.tasks))

    asyncio.run(scenario())
    assert messages == [{"type": "http.disconnect"}]


def test_a_server_that_ends_waits_for_a_body_that_is_being_received() -> None:
    app, whole = App(), request()

    async def scenario() -> None:
        connection = Connection(app)
        connection.receive(whole[:-5])
        connection.protocol.shutdown()
        assert not connection.wire.is_closed
        connection.receive(whole[-5:])
        await asyncio.wait(list(connection.state.tasks))
        assert connection.wire.written[0].endswith(b"full") and connection.wire.is_closed

    asyncio.run(scenario())


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_server_that_ends_answers_what_had_arrived_but_was_not_read(
    is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "LAST_LOOK_SECONDS", 0.001)
    app, late = App(), request(method=b"POST" if is_plain else b"GET")

    async def scenario() -> None:
        connection = Connection(app)
        connection.receive(request())
        connection.protocol.shutdown()
        assert not connection.wire.is_closed
        connection.receive(late)
        while not connection.wire.is_closed:
            await asyncio.sleep(0.001)
        assert connection.wire.written[-1].endswith(b"now" if is_plain else b"full")
        assert len(app.now) + len(app.scopes) == 2

    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_an_expectation_is_met() -> None:
    app = App()
    whole = request(b"expect: 100-continue")
    head, _, body = whole.partition(b"\r\n\r\n")

    async def scenario() -> Wire:
        connection = Connection(app)
        connection.receive(head + b"\r\n\r\n")
        (task,) = connection.state.tasks
        await asyncio.sleep(0)
        assert connection.wire.written == [b"HTTP/1.1 100 Continue\r\n\r\n"]
        connection.receive(body)
        await task
        connection.protocol.connection_lost(None)
        return connection.wire

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


WRONG = {
    "no request": (b"garbage\r\n\r\n", b"400 "),
    "bytes": (b"\0\1\2\xff", b"400 "),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", b"400 "),
    "length": (request(b"content-length: x"), b"400 "),
    "chunk": (request(b"transfer-encoding: chunked", body=b"xyz\r\n"), b"400 "),
    "headers": (request(*[b"x-%d: 1" % number for number in range(200)]), b"431 "),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
@pytest.mark.parametrize("before", ["now", "full", "now full", "full full full"])
def test_what_is_wrong_is_refused_after_the_answers_to_what_is_before(
    wrong: tuple[bytes, bytes], before: str
) -> None:
    data, status = wrong
    plain, low = request(), request(b"x-priority: low")
    first = b"".join(plain if each == "now" else low for each in before.split())

    async def scenario() -> Wire:
        connection = Connection(App())
        connection.receive(first + data + plain * 2)
        while not connection.wire.is_closed:
            await asyncio.sleep(0)
        connection.protocol.connection_lost(None)
        return connection.wire

    wire = asyncio.run(scenario())
    *answers, refusal = wire.written
    assert answers == [NOW if each == "now" else FULL for each in before.split()]
    assert refusal.startswith(b"HTTP/1.1 " + status)


def test_what_is_wrong_is_refused_after_a_response_of_several_writes() -> None:
    start = {**START, "headers": [*START["headers"], (b"x-a", b"b")]}
    wire = after(responding(start, body_part(b"full")), request() + b"\0")
    assert [each[:13] for each in wire.written] == [b"HTTP/1.1 200 ", b"HTTP/1.1 400 "]


def test_nothing_is_received_behind_what_is_refused_later() -> None:
    async def scenario() -> Wire:
        released = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await released.wait()
            await responding(START, body_part(b"full"))(scope, receive, send)

        connection = Connection(app)
        connection.receive(request() + b"\0")
        assert connection.wire.is_paused and not connection.wire.written
        connection.receive(request() * 3)
        assert not connection.protocol.pipeline
        released.set()
        for _ in range(5):
            await asyncio.sleep(0)
        return connection.wire

    wire = asyncio.run(scenario())
    assert wire.written[0] == FULL and len(wire.written) == 2
    assert wire.written[1].startswith(b"HTTP/1.1 400 ") and wire.is_closed


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


def test_a_large_body_is_written_in_parts_between_which_others_run() -> None:
    size = 5 * PART_BYTES // 2
    turns: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        headers = [(b"content-length", b"%d" % size)]
        loop = asyncio.get_running_loop()
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        loop.call_soon(turns.append, 1)
        await send({"type": "http.response.body", "body": memoryview(bytes(size))})
        assert turns == [1]

    written = after(app, request()).written
    assert len(b"".join(written).partition(b"\r\n\r\n")[2]) == size
    assert max(map(len, written)) < 2 * PART_BYTES


class Refusing:
    """An application of a server that ends, which reads no body."""

    def __init__(self) -> None:
        self.connections = Connections()
        self.connections.is_ending = True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": b"no"})


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        ([request()], [True]),
        ([request(method=b"GET", body=b"")], [True]),
        # A client that still sends would get a reset in the place of the response.
        ([request()[:-1]], [False]),
        ([request(body=b"x" * (1 << 20))[: 1 << 17]], [False]),
        ([request()[:-1], request()[-1:] + request()], [False, True]),
        ([request() + request()], [False, True]),
        ([request() + request()[:-1]], [False, False]),
    ],
)
def test_a_server_that_ends_closes_connections_after_their_last_response(
    received: list[bytes], expected: list[bool]
) -> None:
    wire = after(Refusing(), *received)
    *_, responses = b"".join(wire.written).partition(b"HTTP/1.1 503")
    found = [b"connection: close\r\n" in each for each in responses.split(b"HTTP/1.1 503")]
    assert found == expected
