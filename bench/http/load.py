"""Load an HTTP server from one thread over several connections, each with one request at a time.

    python -m bench.http.load ADDRESS PATH BODY CONNECTIONS SECONDS [HEADER …]

BODY is the text of the body, or the name of its file after `@`: an argument has at most 128 KiB.
HEADER is `Name: value`; without any, the body is JSON. Prints {"per_second", "p50_ms", "p99_ms",
"client"} as JSON; `client` is the part of the time for which this process computed, of one core.
The request is the same every time, and the head of an answer comes in one piece, which allows a
loop that is faster than any server here: without a parser.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import select
import socket
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence

from bench.measure import percentile

RECEIVE_BYTES = 1 << 16
ANSWER_SECONDS = 120  # 128 callers of a large model on a busy machine
JSON = ("Content-Type: application/json",)


class Connection:
    """A connection with one request under way."""

    def __init__(self, address: tuple[str, int], request: bytes) -> None:
        self.socket = socket.create_connection(address, timeout=ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._received = 0
        self._length = 0
        self.sent = 0.0

    def send(self) -> None:
        """Send the request; remember when."""
        self._received = 0
        self.sent = time.perf_counter()
        self.socket.sendall(self._request)

    def receive(self) -> bool:
        """Take in what has arrived; return whether the answer is complete.

        Raises:
            RuntimeError: The answer is no 200, or longer than it says.
        """
        data = self.socket.recv(RECEIVE_BYTES)
        if not self._received and not data.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"unexpected answer: {data[:300]!r}")
        if not self._received:
            self._length = self._length_of(data)
        self._received += len(data)
        if self._received > self._length:
            raise RuntimeError(f"{self._received} bytes instead of {self._length}: {data!r}")
        return self._received == self._length

    def first_answer(self) -> None:
        """Send the request once, and take the length of the answer's head and body."""
        self.socket.sendall(self._request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.socket.recv(RECEIVE_BYTES)
        if not data.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"unexpected answer: {data[:300]!r}")
        self._length = self._length_of(data)
        left = self._length - len(data)
        while left > 0:
            left -= len(self.socket.recv(RECEIVE_BYTES))

    @staticmethod
    def _length_of(data: bytes) -> int:
        """Return the bytes of an answer, from its beginning, which must have the whole head."""
        head, end, _ = data.partition(b"\r\n\r\n")
        (length,) = [
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ]
        return len(head) + len(end) + length


@contextlib.contextmanager
def connected(
    address: str, path: str, body: bytes, connections: int, headers: Sequence[str] = JSON
) -> Iterator[tuple[dict[int, Connection], select.epoll]]:
    """Open the connections; yield them by their file, and what waits for all of them."""
    host, port = urllib.parse.urlsplit(address).netloc.split(":")
    head = "".join(f"{line}\r\n" for line in (f"POST {path} HTTP/1.1", f"Host: {host}", *headers))
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    with contextlib.ExitStack() as stack, select.epoll() as poll:
        opened: dict[int, Connection] = {}
        for _ in range(connections):
            each = Connection((host, int(port)), request)
            stack.enter_context(each.socket)
            if not opened:  # one at a time, many callers would keep the first idle for too long
                each.first_answer()
            opened[each.socket.fileno()] = each
            poll.register(each.socket, select.EPOLLIN)
        yield opened, poll


def load(
    address: str,
    path: str,
    body: bytes,
    connections: int,
    seconds: float,
    headers: Sequence[str] = JSON,
) -> list[float]:
    """Return the seconds of each request; requests still under way at the end don't count."""
    times: list[float] = []
    with connected(address, path, body, connections, headers) as (opened, poll):
        end = time.perf_counter() + seconds
        for each in opened.values():
            each.send()
        while time.perf_counter() < end:
            for number, _ in poll.poll(ANSWER_SECONDS):
                if opened[number].receive():
                    times.append(time.perf_counter() - opened[number].sent)
                    opened[number].send()
    return times


def print_figures(run: Callable[[], list[float]], seconds: float) -> None:
    """Print the figures of a run, which returns the seconds of its requests."""
    begun, computed = time.perf_counter(), time.process_time()
    times = run()
    share = (time.process_time() - computed) / (time.perf_counter() - begun)
    figures = {
        "per_second": len(times) / seconds,
        "p50_ms": percentile(times, 50) * 1e3,
        "p99_ms": percentile(times, 99) * 1e3,
        "client": share,
    }
    print(json.dumps(figures))


def main() -> None:
    address, path, body, connections, seconds, *headers = sys.argv[1:]
    content = pathlib.Path(body[1:]).read_bytes() if body.startswith("@") else body.encode()
    print_figures(
        lambda: load(address, path, content, int(connections), float(seconds), headers or JSON),
        float(seconds),
    )


if __name__ == "__main__":
    main()
