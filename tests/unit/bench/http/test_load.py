"""The load generator against a server of a few lines."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from collections.abc import Iterator

import pytest

from bench.http.load import load

BODY = b'{"instances": [1.0]}'


@contextlib.contextmanager
def server(answers: list[bytes]) -> Iterator[str]:
    """Answer every request with the next of the answers, the last one for ever."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            count = 0
            while self.rfile.readline():
                while self.rfile.readline().strip():
                    pass
                assert self.rfile.read(len(BODY)) == BODY
                self.wfile.write(answers[min(count, len(answers) - 1)])
                count += 1

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()


def test_headers_may_be_given() -> None:
    with server([answer("200 OK", b"[1.0]")]) as address:
        assert load(address, "/", BODY, 1, 0.05, ["Content-Type: x/y", "X-Priority: low"])


def answer(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def test_requests_are_answered_one_after_the_other_on_each_connection() -> None:
    with server([answer("200 OK", b"[1.0]")]) as address:
        times = load(address, "/", BODY, 2, 0.05)
    assert len(times) >= 2
    assert all(0 < each < 10 for each in times)


def test_an_error_at_the_start_or_later_ends_the_run() -> None:
    good, bad = answer("200 OK", b"[1.0]"), answer("503 Busy", b"[1.0]")
    for answers in ([bad], [good, bad]):
        with server(answers) as address, pytest.raises(RuntimeError, match="503 Busy"):
            load(address, "/", BODY, 1, 10)


def test_an_answer_may_have_another_length_than_the_one_before() -> None:
    answers = [answer("200 OK", b"[1.0]"), answer("200 OK", b"[1.0, 2.0]")]
    with server(answers) as address:
        assert len(load(address, "/", BODY, 1, 0.05)) >= 1


def test_an_answer_that_is_longer_than_it_says_ends_the_run() -> None:
    answers = [answer("200 OK", b"[1.0]"), answer("200 OK", b"[1.0]") + b"more"]
    with server(answers) as address, pytest.raises(RuntimeError, match="instead of"):
        load(address, "/", BODY, 1, 10)
