"""Connections between the processes of a server, beside those of clients that keep none or few."""

from __future__ import annotations

import pathlib
import socket
import time
from collections.abc import Iterator

import pytest

from tests.integration.server_process import ServerProcess
from tests.integration.test_processes import (
    afresh,
    config_file,
    in_both,
    is_running,
    socket_of,
    wait_until,
    workers_of,
)

SECONDS = 10.0  # for what takes some milliseconds
KEPT_SECONDS = 0.5  # a connection of a client that is idle
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ServerProcess]:
    rest = {"host": "0.0.0.0", "keep_alive_seconds": KEPT_SECONDS, "drain_seconds": 1}
    process = ServerProcess(f"--config={config_file(tmp_path, rest=rest)}")
    try:
        process.wait_for("Serving on")
        yield process
    finally:
        workers = workers_of(process)
        process.end()
        wait_until(lambda: not any(map(is_running, workers)))


def connected(server: ServerProcess) -> socket.socket:
    host, _, port = server.http_address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), SECONDS)


def test_processes_keep_connections_for_longer_than_clients_may(server: ServerProcess) -> None:
    with connected(server) as client, socket.socket(socket.AF_UNIX) as process:
        process.settimeout(SECONDS)
        process.connect(str(socket_of(workers_of(server)[0], server)))
        for each in (client, process):
            each.sendall(HEALTH)
            assert each.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert client.recv(1) == b""  # it is closed
        time.sleep(KEPT_SECONDS)
        process.sendall(HEALTH)
        assert process.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_a_request_without_a_host_reaches_sessions_everywhere(server: ServerProcess) -> None:
    for session in in_both(server):
        for _ in range(4):
            with connected(server) as client:
                client.sendall(f"GET /v1/sessions/{session} HTTP/1.0\r\n\r\n".encode())
                assert b" 200 " in client.recv(1 << 16).partition(b"\r\n")[0]
        assert afresh(server, "DELETE", f"/v1/sessions/{session}").status_code == 200
