"""What is sent again, and how answers become errors: the rules, and both clients that keep them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from runstep import AsyncClient, Client
from runstep.client import model_calls, session_calls
from runstep.client.exchange import Answer, Request, Retries, check
from runstep.client.http_requests import Connection
from runtime.errors import (
    CancelledError,
    Code,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnavailableError,
)

NO_PAUSE = Retries(attempts=3, first_pause=0.0, longest_pause=0.0)


class Server:
    """Answers by a script, one entry a request: a status, or an exception of httpx.

    Refusals have `Retry-After: 1`, as the server's have; `error` is the text of errors.
    """

    def __init__(self, *script: int | Exception, error: str = "no", after: str = "1") -> None:
        self.script, self.requests = list(script), list[httpx.Request]()
        self.error, self.after = error, after

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        entry = self.script.pop(0)
        if isinstance(entry, Exception):
            raise entry
        body: dict[str, Any] = {"error": self.error}
        if entry == 200:
            body = {"outputs": {"y:0": {"dtype": "int32", "shape": [], "b64": "BwAAAA=="}}}
            body |= {"session": "s", "models": [], "graph_version": 1}
        headers = {"X-Request-Id": "r1"}
        if entry in (429, 503) and self.after:
            headers["Retry-After"] = self.after
        return httpx.Response(entry, json=body, headers=headers)


def blocking(server: Server, act: Callable[[Any], Any]) -> Any:
    with Client(retries=NO_PAUSE, transport=httpx.MockTransport(server)) as client:
        return act(client)


def concurrent(server: Server, act: Callable[[Any], Any]) -> Any:
    async def run() -> Any:
        async with AsyncClient(retries=NO_PAUSE, transport=httpx.MockTransport(server)) as client:
            return await act(client)

    return asyncio.run(run())


def models(client: Any) -> Any:
    return client.models()


def step(client: Any) -> Any:
    session = client.session("m")
    session.opened = {"session": "s"}
    return session.run("y:0")


def prediction(client: Any) -> Any:
    return client.predict_json("m", {"instances": [1]})


def lost(error: type[httpx.HTTPError]) -> httpx.HTTPError:
    return error("lost")  # type: ignore[call-arg]  # the request is optional


@pytest.mark.parametrize("run", [blocking, concurrent])
@pytest.mark.parametrize(
    ("act", "script", "sent", "fails"),
    [
        (models, (503, 429, 200), 3, None),
        (models, (503, 503, 503), 3, UnavailableError),
        (models, (500,), 1, OpError),
        (models, (lost(httpx.ReadError), 200), 2, None),
        (models, (lost(httpx.ConnectError),) * 3, 3, UnavailableError),
        (prediction, (503, 200), 2, None),
        (prediction, (429, 429, 429), 3, ResourceExhaustedError),
        (prediction, (504,), 1, DeadlineExceededError),
        (prediction, (lost(httpx.ConnectError), 200), 2, None),
        (prediction, (lost(httpx.ReadError),), 1, UnavailableError),
        (prediction, (lost(httpx.ReadTimeout),), 1, DeadlineExceededError),
        # A step may have changed the session's state before it failed.
        (step, (429,), 1, ResourceExhaustedError),
        (step, (503,), 1, UnavailableError),
        (step, (lost(httpx.ReadError),), 1, UnavailableError),
        (step, (lost(httpx.ConnectError), 200), 2, None),
    ],
)
def test_what_is_sent_again(
    run: Callable[..., Any],
    act: Callable[[Any], Any],
    script: tuple[int | Exception, ...],
    sent: int,
    fails: type[OpError] | None,
) -> None:
    server = Server(*script)
    if fails is None:
        run(server, act)
    else:
        with pytest.raises(fails):
            run(server, act)
    assert len(server.requests) == sent
    assert server.script == []


@pytest.mark.parametrize("run", [blocking, concurrent])
def test_a_step_returns_arrays(run: Callable[..., Any]) -> None:
    value = run(Server(200), step)
    assert (value.dtype, value.shape, value.item()) == (np.int32, (), 7)


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (404, b'{"error": "no", "code": "NOT_FOUND"}', (Code.NOT_FOUND, "no")),
        (400, b'{"error": "a", "code": "OUT_OF_RANGE"}', (Code.OUT_OF_RANGE, "a")),
        (410, b'{"error": "closed"}', (Code.CANCELLED, "closed")),
        (502, b"<html>proxy</html>", (Code.UNAVAILABLE, "<html>proxy</html>")),
        (418, b"", (Code.UNKNOWN, "HTTP status 418")),
        (400, b'["odd"]', (Code.INVALID_ARGUMENT, '["odd"]')),
    ],
)
def test_errors_are_the_classes_of_the_runtime(
    status: int, content: bytes, error: tuple[Code, str]
) -> None:
    with pytest.raises(OpError) as caught:
        check(Answer(status, {"x-request-id": "r7"}, content))
    found: Any = caught.value
    assert (found.code, found.message) == error
    assert (found.status, found.request_id) == (status, "r7")


@pytest.mark.parametrize("run", [blocking, concurrent])
@pytest.mark.parametrize(
    ("text", "after"),
    [("OOM when allocating\n\t [[{{node Fill}}]]", "1"), ("a proxy is overloaded", "")],
    ids=["in a step", "without Retry-After"],
)
def test_what_may_have_begun_is_not_sent_again(
    run: Callable[..., Any], text: str, after: str
) -> None:
    server = Server(429, error=text, after=after)
    with pytest.raises(ResourceExhaustedError):
        run(server, prediction)
    assert len(server.requests) == 1
    reads = Server(503, 200, error=text, after=after)
    run(reads, models)
    assert len(reads.requests) == 2


READ = Request("GET", "/", is_idempotent=True, is_refusable=True)
LONG = 1000.0


def test_pauses_grow_up_to_a_limit_and_respect_the_server() -> None:
    retries = Retries(attempts=10, first_pause=0.1, longest_pause=1.0)

    def after(retries: Retries, header: str) -> float | None:
        return retries.pause_after_answer(1, READ, Answer(503, {"retry-after": header}, b""), LONG)

    pauses = [retries.pause_after_failure(n, READ, LONG, was_sent=True) for n in (1, 2, 3, 9)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 1.0])
    assert after(retries, "3") == 1.0
    assert after(Retries(), "3") == 3.0
    assert after(Retries(), "soon") == 0.1


def test_one_attempt_is_one_request() -> None:
    once = Retries(attempts=1)
    assert once.pause_after_answer(1, READ, Answer(503, {}, b""), LONG) is None
    assert once.pause_after_failure(1, READ, LONG, was_sent=False) is None


@pytest.mark.parametrize("run", [blocking, concurrent])
def test_nothing_is_sent_again_after_the_time_of_the_call(run: Callable[..., Any]) -> None:
    server = Server(429, 200)
    kept = Retries(longest_pause=5.0)
    assert kept.pause_after_answer(1, READ, Answer(429, {"retry-after": "1"}, b""), 0.9) is None
    with pytest.raises(ResourceExhaustedError):
        run(server, lambda client: client.predict_json("m", {}, timeout=0.0))
    assert len(server.requests) == 1


def test_later_attempts_have_the_rest_of_the_time() -> None:
    connection = Connection(timeout=60.0)
    request = Request("POST", "/", timeout=2.0)
    assert connection.request(request, 0.5)["headers"] == {"X-Timeout-Ms": "1500"}
    assert connection.request(request, 9.0)["headers"] == {"X-Timeout-Ms": "1"}
    assert connection.seconds_left(READ, 10.0) == 50.0


@pytest.mark.parametrize("run", [blocking, concurrent])
def test_health_of_a_server_that_does_not_answer(run: Callable[..., Any]) -> None:
    for failure in (httpx.ConnectError, httpx.ReadTimeout):
        for ask in (lambda client: client.is_alive(), lambda client: client.is_ready()):
            assert run(Server(*[lost(failure)] * 3), ask) is False
    assert run(Server(503), lambda client: client.is_ready()) is False
    assert run(Server(200), lambda client: client.is_alive()) is True


def test_what_the_block_raises_is_not_hidden_by_the_end_of_the_session() -> None:
    gone = (200, *[lost(httpx.ConnectError)] * 3)

    def fail(client: Client) -> None:
        with client.session("m"):
            raise LookupError("the caller's")

    with pytest.raises(LookupError, match="the caller's"):
        blocking(Server(*gone), fail)

    async def fail_asyncio(client: AsyncClient) -> None:
        async with client.session("m"):
            raise LookupError("the caller's")

    with pytest.raises(LookupError, match="the caller's"):
        concurrent(Server(*gone), fail_asyncio)

    def end(client: Client) -> None:
        with client.session("m"):
            pass

    with pytest.raises(UnavailableError):
        blocking(Server(*gone), end)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"url": "localhost:8501"}, "expected http://host:port, got 'localhost:8501'"),
        ({"url": "ftp://host"}, "expected http://host:port"),
        ({"api_key": "a", "token": "b"}, "expected one of api_key, token and user"),
    ],
)
def test_wrong_arguments(arguments: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        Client(**arguments)  # type: ignore[arg-type]  # all of them are strings


@pytest.mark.parametrize(
    ("arguments", "header", "value"),
    [
        ({"api_key": "k"}, "X-API-Key", "k"),
        ({"token": "t"}, "Authorization", "Bearer t"),
        ({"user": ("a", "b")}, "Authorization", "Basic YTpi"),
    ],
)
def test_credentials(arguments: Any, header: str, value: str) -> None:
    server = Server(200)
    with Client(transport=httpx.MockTransport(server), **arguments) as client:
        client.models()
    assert server.requests[0].headers[header] == value


def test_paths_of_a_proxy_and_timeouts_are_kept() -> None:
    server = Server(200)
    url = "https://proxy/models-of/us"
    with Client(url, transport=httpx.MockTransport(server)) as client:
        client.predict_json("a/b", {}, label="best one", timeout=25)
    (request,) = server.requests
    assert str(request.url) == f"{url}/v1/models/a%2Fb/labels/best%20one:predict"
    # What is left of the time when the request is written.
    assert 20_000 < int(request.headers["X-Timeout-Ms"]) <= 25_000


def test_bodies_that_are_no_json() -> None:
    with pytest.raises(InvalidArgumentError, match="the request can't be written as JSON"):
        blocking(Server(), lambda client: client.predict_json("m", {"x": object()}))


def test_sessions_know_whether_they_are_open() -> None:
    server = Server(200, 200)
    with Client(transport=httpx.MockTransport(server)) as client:
        session = client.session("m")
        with pytest.raises(OpError, match="the session is not open: use `with`, or `open`"):
            session.run("y:0")
        with session:
            assert session.id == "s"
            with pytest.raises(OpError, match="the session is open already"):
                session.open()
    assert [request.method for request in server.requests] == ["POST", "DELETE"]


def test_a_session_has_one_source() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got \['model', 'graph_def'\]"):
        blocking(Server(), lambda client: client.session("m", graph_def=b"").open())


def test_a_closed_session_is_cancelled() -> None:
    with pytest.raises(CancelledError):
        blocking(Server(410), step)


@pytest.mark.parametrize(
    ("priority", "expected"), [("low", "low"), (None, None), ("", None), ("niedrig·", None)]
)
def test_a_priority_is_in_the_head_too(priority: str | None, expected: str | None) -> None:
    predicting = model_calls.predict("m", {"x": np.float32([1])}, priority=priority)
    running = session_calls.run("s", "y:0", priority=priority, request_id="r")
    for steps in (predicting, running):
        request = next(steps)
        assert request.headers.get("X-Priority") == expected
        assert (b'"priority"' in request.content) is (priority is not None)
