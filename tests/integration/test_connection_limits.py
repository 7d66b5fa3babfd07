"""Connections that send too much, too slowly or nothing, against the server process."""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.integration.server_process import ROOT, ServerProcess, on_free_ports

SECONDS = 30

CONFIG = """
rest: {host: 127.0.0.1, header_seconds: 1, body_seconds: 1, keep_alive_seconds: 1,
       max_connections: 40, max_header_bytes: 8192, max_headers: 20}
models: [{name: half_plus_two, base_path: examples/models/half_plus_two}]
"""
HEAD = b"POST /v1/models/half_plus_two:predict HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = b"x" * 600_000  # more than is read from a socket at once
BODY = b'{"instances": [1.0]}'
REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    path = tmp_path_factory.mktemp("configs") / "server.yaml"
    path.write_text(CONFIG)
    process = ServerProcess(f"--config={path}")
    try:
        wait_until_ready(process)
        yield process
    finally:
        process.end()


def wait_until_ready(server: ServerProcess) -> None:
    server.wait_for("gRPC listens on port")
    deadline = time.monotonic() + SECONDS
    while server.client.get("/readyz").status_code != 200:
        assert time.monotonic() < deadline


def connect(server: ServerProcess, *parts: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", int(server.http_address.rpartition(":")[2])))
    made.settimeout(SECONDS)
    for part in parts:
        with contextlib.suppress(ConnectionError):  # refused before all of it is sent
            made.sendall(part)
    return made


def received(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    text = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            text += part
    return text


def check_alive(server: ServerProcess) -> None:
    with connect(server, REQUEST) as connection:
        assert b'"predictions":[2.5]' in connection.recv(1 << 16)


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ((), b""),
        ((b"\r\n\r\n",), b""),
        ((REQUEST,), b"200"),
        ((HEAD,), b"408"),
        ((HEAD, b"X-More"), b"408"),
        ((HEAD + b"Content-Length: 20\r\n\r\n", b'{"inst'), b"408"),
        ((HEAD + b"Content-Length: 2000000\r\n\r\n", b'{"inst'), b"408"),
        ((CHUNKED, b"5\r\n{}"), b"408"),
        ((REQUEST, HEAD), b"408"),
        ((HEAD + b"X: " + b"x" * 9000,), b"431"),
        ((HEAD + b"X: " + b"x" * 9000 + b"\r\n\r\n",), b"431"),
        ((HEAD, b"x: y\r\n" * 20 + b"\r\n"), b"431"),
        ((b"GET /" + b"x" * 9000,), b"431"),
        ((CHUNKED, b"0\r\nX: " + LONG), b"431"),
        ((CHUNKED, b"2;" + LONG), b"431"),
        ((b"\r\n" * 5000,), b"431"),
    ],
)  # fmt: skip
def test_a_connection_that_takes_too_much_or_too_long_ends(
    server: ServerProcess, parts: tuple[bytes, ...], status: bytes
) -> None:
    with connect(server, *parts) as connection:
        text = received(connection)
    # A response is lost if the client still sends when the connection is closed.
    is_reset = not text and any(LONG in part for part in parts)
    if status and not is_reset:
        assert b"HTTP/1.1 " + status in text, text
    else:
        assert text == b""
    check_alive(server)


@pytest.mark.parametrize("length", [60_000, 2_000_000])
def test_a_client_that_drips_a_body_ends(server: ServerProcess, length: int) -> None:
    with connect(server, HEAD + b"Content-Length: %d\r\n\r\n" % length) as connection:
        connection.settimeout(0.05)
        text, deadline = b"", time.monotonic() + SECONDS
        while not text and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                connection.sendall(b" ")
                text = connection.recv(1 << 16)
    assert b"HTTP/1.1 408" in text and b"rest.body_seconds" in text


def test_a_client_that_does_not_read_its_response_ends(server: ServerProcess) -> None:
    body = b'{"instances": [%s]}' % b",".join([b"1.25"] * 2_000_000)
    head = HEAD + b"Content-Length: %d\r\n\r\n" % len(body)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(SECONDS)
        connection.connect(("127.0.0.1", int(server.http_address.rpartition(":")[2])))
        connection.sendall(head + body)
        wait_for_descriptors(server, connections=1)
        wait_for_descriptors(server, connections=0)


def wait_for_descriptors(server: ServerProcess, connections: int) -> None:
    """Wait until the server has so many connections on the HTTP port."""
    port = int(server.http_address.rpartition(":")[2])
    deadline = time.monotonic() + SECONDS
    server.client.close()  # a connection of its own
    while established(port) != connections:
        assert time.monotonic() < deadline
    server.client = type(server.client)(base_url=server.http_address, timeout=SECONDS)


def established(port: int) -> int:
    """Return how many sockets with this local port are connected or were closed by the other."""
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(
        int(field[1].rpartition(":")[2], 16) == port and field[3] in ("01", "08")
        for field in fields
    )


def test_more_connections_than_the_limit_are_refused_until_others_end(
    server: ServerProcess,
) -> None:
    half = HEAD + b"Content-Length: 20\r\n\r\n{"
    held = [connect(server, half) for _ in range(40)]
    with connect(server) as refused:
        text = received(refused)
    assert b"HTTP/1.1 503" in text and b"retry-after: 1" in text and b"rest.max_connections" in text
    for connection in held:
        assert b"408" in received(connection)
        connection.close()
    check_alive(server)


def test_a_server_without_descriptors_serves_again_when_there_are_some(tmp_path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(CONFIG.replace("max_connections: 40", "max_connections: 100000"))
    command = (
        "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80));"
        "sys.argv[0] = 'runstep'; runpy.run_module('server.main', run_name='__main__')"
    )
    server = ServerProcess.__new__(ServerProcess)
    process = subprocess.Popen(
        [sys.executable, "-c", command, "serve", f"--config={path}"],
        cwd=ROOT, stderr=subprocess.PIPE, text=True, env=on_free_ports(),
    )  # fmt: skip
    server.follow(process)
    try:
        wait_until_ready(server)
        held: list[socket.socket] = []
        with contextlib.suppress(OSError):
            held.extend(connect(server) for _ in range(200))
        for connection in held:
            connection.close()
        deadline = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(ConnectionError, AssertionError):
                check_alive(server)
                break
            assert time.monotonic() < deadline
        assert process.poll() is None
    finally:
        server.end()


def test_descriptors_of_this_process_are_enough() -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > len(os.listdir("/proc/self/fd")) + 300
