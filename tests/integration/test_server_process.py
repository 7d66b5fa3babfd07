"""The real process: start, serve sessions on a model, clients that go away, drain on SIGTERM."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator

import httpx
import pytest

from tests.integration.rest_server import check_error, encoded, endless_graph
from tests.integration.server_process import ROOT, SECONDS, ServerProcess

HALF_PLUS_TWO = ROOT / "tests" / "fixtures" / "saved_models" / "half_plus_two"
RUN_LOOP = {"feeds": {"start": 1.0}, "fetches": ["loop"]}


@pytest.fixture
def config(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copytree(HALF_PLUS_TWO, tmp_path / "half_plus_two" / "7")
    model = {"name": "half_plus_two", "base_path": str(tmp_path / "half_plus_two")}
    path = tmp_path / "server.yaml"
    path.write_text(json.dumps({"models": [model], "rest": {"drain_seconds": 1}}))
    return path


@pytest.fixture
def server(config: pathlib.Path) -> Iterator[ServerProcess]:
    process = ServerProcess(f"--config={config}")
    try:
        yield process
    finally:
        process.end()


def test_a_session_on_a_model_from_start_to_end(server: ServerProcess) -> None:
    client = server.client
    assert client.get("/healthz").status_code == 200
    server.wait_for("Loaded version 7 of model half_plus_two")
    while (ready := client.get("/readyz")).status_code == 503:
        pass  # the log line comes a moment before
    assert ready.json() == {"status": "ready"}
    create = {"model": "half_plus_two", "version": 7, "tags": ["serve"]}
    answer = client.post("/v1/sessions", json=create)
    assert answer.status_code == 201, answer.text
    session = answer.headers["location"]
    listed = client.get(session).json()
    assert listed["model"] == {"name": "half_plus_two", "version": 7}
    assert listed["shared_weights"] is True
    run = {"feeds": {"x:0": [[1.0], [2.0]]}, "fetches": ["y:0"], "priority": "low"}
    answer = client.post(f"{session}:run", json=run)
    assert answer.json()["outputs"]["y:0"]["data"] == [[2.5], [3.0]]
    predicted = client.post("/v1/models/half_plus_two:predict", content='{"instances": [1, 2]}')
    assert predicted.json() == {"predictions": [2.5, 3.0]}
    assert client.post(f"{session}:close").status_code == 200
    check_error(client.post(f"{session}:run", json=run), 410, "CANCELLED", "has been closed")
    wrong = client.post("/v1/sessions", json=create | {"tags": ["train"]})
    check_error(wrong, 400, "INVALID_ARGUMENT", "loaded with the tags ['serve']")
    assert "runstep_sessions_open 0.0" in client.get("/monitoring/prometheus/metrics").text
    assert server.stop() == 0


def test_a_client_that_goes_away_cancels_its_step(server: ServerProcess) -> None:
    client = server.client
    create = client.post("/v1/sessions", json={"graph_def": encoded(endless_graph())})
    session = create.headers["location"]
    with pytest.raises(httpx.ReadTimeout):
        client.post(f"{session}:run", json=RUN_LOOP, timeout=0.2)
    while client.get(session).json()["state"] == "RUNNING":
        pass
    metrics = client.get("/monitoring/prometheus/metrics").text
    assert 'runstep_steps_total{code="CANCELLED",priority="normal"} 1.0' in metrics


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_a_server_that_is_ready_answers_on_every_port(config: pathlib.Path) -> None:
    port = free_port()
    server = ServerProcess(f"--config={config}", f"--port={port}")
    try:
        reasons = set()
        while (ready := server.client.get("/readyz")).status_code == 503:
            reasons.add(ready.json()["error"])
        with socket.create_connection(("127.0.0.1", port), SECONDS):
            pass
        assert any("the gRPC port is not open" in reason for reason in reasons)
    finally:
        server.end()


def test_a_server_whose_grpc_port_is_taken_is_never_ready_and_ends(config: pathlib.Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        # A port that may be shared is not tried before the models are loaded.
        shared = "--grpc_channel_arguments=grpc.so_reuseport=1"
        server = ServerProcess(f"--config={config}", f"--port={taken.getsockname()[1]}", shared)
        try:
            with pytest.raises(httpx.TransportError):
                while server.client.get("/readyz").status_code == 503:
                    pass
            server.wait_for("for gRPC")
            assert server.process.wait(SECONDS) == 1
        finally:
            server.end()


def test_a_server_that_is_stopped_before_grpc_is_open_ends(config: pathlib.Path) -> None:
    server = ServerProcess(f"--config={config}")
    try:
        assert server.stop() == 0
    finally:
        server.end()


def raw_request(path: str, body: object = None) -> bytes:
    """An HTTP request as bytes."""
    content = b"" if body is None else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    head = f"{method} {path} HTTP/1.1\r\nHost: here\r\nContent-Length: {len(content)}\r\n"
    return f"{head}Content-Type: application/json\r\n\r\n".encode() + content


# 4,000 are more than the socket's buffers take: an end without a reset would come behind them.
@pytest.mark.parametrize(("queued", "leaves"), [(1, "closes"), (50, "closes"), (4000, "resets")])
def test_a_client_that_pipelines_and_goes_away_cancels_its_step(
    server: ServerProcess, queued: int, leaves: str
) -> None:
    client = server.client
    create = client.post("/v1/sessions", json={"graph_def": encoded(endless_graph())})
    session = create.headers["location"]
    address = urllib.parse.urlsplit(server.http_address)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(raw_request(f"{session}:run", RUN_LOOP))
        while client.get(session).json()["state"] != "RUNNING":
            pass
        connection.sendall(raw_request("/healthz"))
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(queued - 1):
                connection.send(raw_request("/healthz"))
        if leaves == "resets":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    while client.get(session).json()["state"] == "RUNNING":
        pass
    metrics = client.get("/monitoring/prometheus/metrics").text
    assert 'runstep_steps_total{code="CANCELLED",priority="normal"} 1.0' in metrics


def test_a_client_that_pipelines_and_stays_gets_its_answers_in_their_order(
    server: ServerProcess,
) -> None:
    client = server.client
    create = client.post("/v1/sessions", json={"graph_def": encoded(endless_graph())})
    session = create.headers["location"]
    timed = RUN_LOOP | {"options": {"timeout_in_ms": 300}}
    address = urllib.parse.urlsplit(server.http_address)
    with socket.create_connection((address.hostname, address.port), SECONDS) as connection:
        connection.sendall(
            raw_request(f"{session}:run", timed)
            + raw_request("/healthz")
            + raw_request(f"{session}:run", timed)
            + raw_request("/healthz")
        )
        received = b""
        while received.count(b"alive") < 2:
            piece = connection.recv(1 << 16)
            assert piece, received
            received += piece
    statuses = re.findall(rb"HTTP/1.1 (\d+)", received)
    assert statuses == [b"504", b"200", b"504", b"200"]


def test_sigterm_waits_for_steps_up_to_the_grace_time_and_refuses_new_work(
    server: ServerProcess,
) -> None:
    client = server.client
    create = client.post("/v1/sessions", json={"graph_def": encoded(endless_graph())})
    session = create.headers["location"]
    with concurrent.futures.ThreadPoolExecutor() as threads:
        timed = RUN_LOOP | {"options": {"timeout_in_ms": 500}}
        finishing = threads.submit(client.post, f"{session}:run", json=timed)
        endless = threads.submit(client.post, f"{session}:run", json=RUN_LOOP)
        while client.get(session).json()["steps"] < 2:
            pass
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("Draining: 2 requests are running")
        check_error(client.get("/readyz"), 503, "UNAVAILABLE", "The server is draining")
        refused = client.post("/v1/sessions", json={})
        check_error(refused, 503, "UNAVAILABLE", "takes no new work")
        small = client.post("/v1/models/half_plus_two:predict", json={"instances": [1]})
        check_error(small, 503, "UNAVAILABLE", "takes no new work")
        alive = client.get("/healthz")
        assert alive.status_code == 200
        assert [each.headers.get("connection") for each in (refused, small, alive)] == 3 * ["close"]
        check_error(finishing.result(), 504, "DEADLINE_EXCEEDED", "Timed out")
        check_error(endless.result(), 499, "CANCELLED", "Session has been closed.")
    assert server.process.wait(SECONDS) == 0
    server.wait_for("1 requests still run after 1 s; cancelling them")


def test_a_second_signal_ends_the_process(server: ServerProcess) -> None:
    client = server.client
    create = client.post("/v1/sessions", json={"graph_def": encoded(endless_graph())})
    session = create.headers["location"]
    with concurrent.futures.ThreadPoolExecutor() as threads:
        running = threads.submit(client.post, f"{session}:run", json=RUN_LOOP)
        while client.get(session).json()["steps"] < 1:
            pass
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("Draining")
        assert server.stop() == 0
        # However far the answer came: the step did not go on.
        assert running.exception() is not None or running.result().status_code in (499, 500)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--config=nowhere.yaml"], "NOT_FOUND: Configuration file nowhere.yaml does not exist"),
        (["--model_name=m"], "INVALID_ARGUMENT: --model_name=m needs --model_base_path"),
        (["--rest_api_port=70000"], "where 0 is none, or free, got 70000 (flag --rest_api_port)"),
        (["--tensorflow_session_parallelism=-1"], "must not be negative, got -1"),
    ],
)
def test_wrong_flags_are_told(flags: list[str], text: str) -> None:
    command = [sys.executable, "-m", "server.main", "serve", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert text in done.stderr
