"""HttpTransport with a small server: which requests are sent again, and errors of answers."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator

import pytest

from runtime.api import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    UnavailableError,
    UnknownError,
)
from runtime.sessions.remote.http_transport import HttpTransport


class Server(http.server.ThreadingHTTPServer):
    """Answers with the next of `answers`: (status, body); None breaks the connection."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, bytes] | None] = []
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.waits = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        if self.path == "/waits":
            self.server.waits.wait(30)
        answer = self.server.answers.pop(0)
        if answer is None:
            self.close_connection = True
            return
        status, body = answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the library's names

    def log_message(self, *_: object) -> None:
        """Write nothing to stderr."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.waits.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def transport(server: Server) -> Iterator[HttpTransport]:
    made = HttpTransport(server.address + "/")
    yield made
    made.close()


def test_a_deadline_travels_as_a_header(server: Server, transport: HttpTransport) -> None:
    server.answers = [(200, b"answer")]
    assert transport.send("POST", "/v1/x", b"body", 1.5, {"X-Request-Id": "id"}) == b"answer"
    ((method, path, headers),) = server.seen
    assert (method, path) == ("POST", "/v1/x")
    assert headers["X-Timeout-Ms"] == "1500"
    assert headers["X-Request-Id"] == "id"
    assert headers["Content-Type"] == "application/x-protobuf"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_changes_nothing_twice_is_sent_again(
    server: Server, transport: HttpTransport, method: str
) -> None:
    server.answers = [None, (200, b"answer")]
    assert transport.send(method, "/v1/x") == b"answer"
    server.answers = [None, None]
    with pytest.raises(UnavailableError, match=f"{method} /v1/x: "):
        transport.send(method, "/v1/x")
    assert len(server.seen) == 4


def test_a_step_is_not_sent_again(server: Server, transport: HttpTransport) -> None:
    server.answers = [None]
    with pytest.raises(UnavailableError, match="POST /v1/x: "):
        transport.send("POST", "/v1/x", b"body")
    assert len(server.seen) == 1


def test_nobody_listens() -> None:
    server = Server()
    address = server.address
    server.server_close()
    transport = HttpTransport(address)
    with pytest.raises(UnavailableError, match="Connection refused"):
        transport.send("POST", "/v1/x", b"")
    transport.close()


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (409, b'{"error": "seen", "code": "ABORTED"}', AbortedError, "seen"),
        (410, b'{"error": "Session has been closed."}', CancelledError, "Session has been closed."),
        (504, b"a proxy's page", DeadlineExceededError, "a proxy's page"),
        (503, b"[1]", UnavailableError, r"\[1\]"),
        (418, b'{"error": "tea", "code": "POT"}', UnknownError, "tea"),
    ],
)
def test_error_answers(
    server: Server, transport: HttpTransport, status: int, body: bytes, kind: type, text: str
) -> None:
    server.answers = [(status, body)]
    with pytest.raises(kind, match=text):
        transport.send("POST", "/v1/x", b"")


def test_a_cancel_is_repeated_until_the_step_is_there(
    server: Server, transport: HttpTransport
) -> None:
    server.answers = [(404, b'{"error": "runs no step"}'), (404, b"{}"), (200, b"{}")]
    transport.cancel_step("/v1/sessions/s", "id", threading.Event())
    assert [path for _, path, _ in server.seen] == ["/v1/sessions/s:cancel"] * 3


def test_a_step_that_is_over_is_not_cancelled(server: Server, transport: HttpTransport) -> None:
    answered = threading.Event()
    answered.set()
    transport.cancel_step("/v1/sessions/s", "id", answered)
    assert server.seen == []


def test_a_closed_transport_says_so(server: Server) -> None:
    transport = HttpTransport(server.address)
    transport.close()
    started = time.monotonic()
    with pytest.raises(CancelledError, match=r"Session has been closed\."):
        transport.send("GET", "/v1/x")
    assert time.monotonic() - started < 5


def test_all_requests_of_a_transport_have_the_same_affinity(server: Server) -> None:
    transports = [HttpTransport(server.address) for _ in range(2)]
    server.answers = [(200, b"")] * 4
    for transport in (*transports, *transports):
        transport.send("POST", "/")
    for transport in transports:
        transport.close()
    first, second, *again = [headers["x-session-affinity"] for _, _, headers in server.seen]
    assert again == [first, second]
    assert first != second
