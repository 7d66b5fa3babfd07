"""The real process on bad days: killed, ended while it starts, without descriptors or disk."""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.conformance.case import Graph
from tests.faults import full_pipe
from tests.integration.rest_server import encoded, endless_graph
from tests.integration.server_process import (
    ROOT,
    SECONDS,
    ServerProcess,
    children_of,
    on_free_ports,
)
from tests.unit.runtime.sessions.child_process.child_processes import is_running, until

HALF_PLUS_TWO = ROOT / "tests" / "fixtures" / "saved_models" / "half_plus_two"
INSTANTS = 12  # of the start at which a signal is sent


@pytest.fixture
def models(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copytree(HALF_PLUS_TWO, tmp_path / "models" / "1")
    return tmp_path / "models"


@contextlib.contextmanager
def serving(models: pathlib.Path, *flags: str) -> Iterator[ServerProcess]:
    server = ServerProcess(
        "--host=127.0.0.1", "--model_name=m", f"--model_base_path={models}",
        "--file_system_poll_wait_seconds=0.05", *flags,
    )  # fmt: skip
    try:
        until_ready(server)
        yield server
    finally:
        server.end()


def until_ready(server: ServerProcess) -> None:
    while server.client.get("/readyz").status_code != 200:
        assert server.process.poll() is None


def predict(server: ServerProcess, version: int = 1) -> None:
    answer = server.client.post(f"/v1/models/m/versions/{version}:predict", json={"instances": [2]})
    assert answer.json() == {"predictions": [3.0]}, answer.text


def is_caught(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


# Signals


def seconds_until_ready(models: pathlib.Path) -> float:
    began = time.monotonic()
    with serving(models):
        return time.monotonic() - began


def test_a_signal_at_any_instant_of_the_start_ends_the_process_cleanly(
    models: pathlib.Path,
) -> None:
    longest = 1.2 * seconds_until_ready(models)
    for instant in range(INSTANTS):
        sent = (signal.SIGTERM, signal.SIGINT)[instant % 2]
        command = [sys.executable, "-m", "server.main", "serve"]
        flags = ["--host=127.0.0.1", "--model_name=m", f"--model_base_path={models}"]
        with subprocess.Popen(
            [*command, *flags], cwd=ROOT, stderr=subprocess.PIPE, env=on_free_ports()
        ) as process:
            time.sleep(instant / INSTANTS * longest)
            has_handler = is_caught(process.pid, sent)
            children = children_of(process.pid)
            process.send_signal(sent)
            assert process.stderr is not None
            log = process.stderr.read().decode()
            code = process.wait(SECONDS)
        where = f"{sent.name} at instant {instant} of {INSTANTS}:\n{log}"
        assert not [child for child in children if is_running(child)], where
        if has_handler:
            assert code == 0, where
            assert "Traceback" not in log, where
        else:  # the interpreter itself starts
            assert code in (0, -sent, 1), where


@pytest.mark.parametrize("processes", [1, 2])
def test_a_second_signal_ends_a_server_that_drains(models: pathlib.Path, processes: int) -> None:
    loop = {"feeds": {"start:0": 1}, "fetches": [], "targets": ["loop"]}
    with serving(models, f"--processes={processes}") as server:
        body = {"graph_def": encoded(endless_graph())}
        path = server.client.post("/v1/sessions", json=body).headers["location"]

        def run() -> None:
            with contextlib.suppress(httpx.HTTPError):  # the connection ends
                server.client.post(f"{path}:run", json=loop)

        running = threading.Thread(target=run)
        running.start()
        while server.client.get(path).json()["steps"] == 0:
            pass
        server.process.send_signal(signal.SIGINT)
        server.wait_for("Draining: 1 requests are running")
        assert server.stop() == 0
        running.join()
    assert "Traceback" not in "".join(server.log)


def test_a_server_that_was_killed_leaves_nothing_and_starts_again(models: pathlib.Path) -> None:
    graph = Graph()
    x = graph.placeholder("float32", "x")
    for _ in range(20):
        x = graph.add("MatrixInverse", x)[0]
    graph.add("Identity", x, name="y")
    body = {"feeds": {"x": [[float(i == j) for i in range(64)] for j in range(64)]}}
    run = {**body, "fetches": [], "targets": ["y"], "priority": "low"}
    with serving(models) as server:
        session = server.client.post("/v1/sessions", json={"graph_def": encoded(graph.graph_def)})
        path = session.headers["location"]
        while not children_of(server.process.pid):
            assert server.client.post(f"{path}:run", json=run).status_code == 200
        children = children_of(server.process.pid)
        http = server.http_address.rpartition(":")[2]
        grpc = server.grpc_address.rpartition(":")[2]
        held = socket.create_connection(("127.0.0.1", int(http)))  # keeps the port busy for a while
        server.process.kill()
        server.process.wait()
        until(lambda: not any(map(is_running, children)))
    with held, serving(models, f"--rest_api_port={http}", f"--port={grpc}") as again:
        predict(again)
        assert again.client.post(f"{path}:run", json=run).status_code == 404
        assert again.stop() == 0


# Limits of the system


def set_limit(server: ServerProcess, which: int, value: int) -> None:
    _, hard = resource.prlimit(server.process.pid, which)
    resource.prlimit(server.process.pid, which, (value, hard))


def test_a_server_without_descriptors_recovers(models: pathlib.Path) -> None:
    with serving(models) as server:
        predict(server)
        server.wait_for("Serving on")  # nothing is imported any more
        descriptors = f"/proc/{server.process.pid}/fd"
        used = len(os.listdir(descriptors))
        set_limit(server, resource.RLIMIT_NOFILE, used + 4)
        port = int(server.http_address.rpartition(":")[2])
        waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
        while len(os.listdir(descriptors)) < used + 4:
            assert server.process.poll() is None
        shutil.copytree(HALF_PLUS_TWO, models / "2")
        server.wait_for("Too many open files")  # of the poll, or of the load
        for connection in waiting:
            connection.close()
        set_limit(server, resource.RLIMIT_NOFILE, used + 200)
        predict(server)  # on the connection that was open all the time
        with httpx.Client(base_url=server.http_address, timeout=SECONDS) as client:
            assert client.get("/healthz").status_code == 200
            while True:
                states = client.get("/v1/models/m").json()["model_version_status"]
                if {each["version"]: each["state"] for each in states}.get("2") == "AVAILABLE":
                    break
        predict(server, 2)
        assert server.stop() == 0


@contextlib.contextmanager
def log_on_a_full_disk() -> Iterator[int]:
    with open("/dev/full", "wb") as full:
        yield full.fileno()


@contextlib.contextmanager
def log_that_nobody_reads() -> Iterator[int]:
    with full_pipe() as (_, writer):
        yield writer


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("log", [log_on_a_full_disk, log_that_nobody_reads])
def test_a_server_that_can_not_write_its_log_serves_and_ends_with_0(
    log: Callable[[], contextlib.AbstractContextManager[int]],
    processes: int,
    models: pathlib.Path,
) -> None:
    with serving(models) as server:
        address = server.http_address
        assert server.stop() == 0
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "server.main", "serve", f"--rest_api_port={port}"]
    flags = [
        "--host=127.0.0.1", "--model_name=m", f"--model_base_path={models}",
        f"--processes={processes}",
    ]  # fmt: skip
    with (
        log() as error,
        subprocess.Popen(
            [*command, *flags], cwd=ROOT, stderr=error, env=on_free_ports()
        ) as process,
        httpx.Client(base_url=address, timeout=SECONDS) as client,
    ):
        try:
            wait_until_ready(process, client)
            answer = client.post("/v1/models/m:predict", json={"instances": [2]})
            assert answer.json() == {"predictions": [3.0]}
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


def wait_until_ready(process: subprocess.Popen[bytes], client: httpx.Client) -> None:
    """Wait until a server is ready, which must not end before."""
    is_ready = False
    while not is_ready:
        assert process.poll() is None
        with contextlib.suppress(httpx.TransportError):
            is_ready = client.get("/readyz").status_code == 200


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("processes", [1, 2])
def test_closed_standard_streams_are_no_descriptors_of_the_server(
    models: pathlib.Path, processes: int, closed: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = [f"--rest_api_port={port}", f"--processes={processes}", f"--model_base_path={models}"]
    command = [sys.executable, "-m", "server.main", "serve", "--host=127.0.0.1", *flags]
    with (
        subprocess.Popen(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *command], cwd=ROOT, env=on_free_ports()
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS) as client,
    ):
        try:
            wait_until_ready(process, client)
            for each in (process.pid, *children_of(process.pid)):
                assert os.readlink(f"/proc/{each}/fd/2") == os.devnull
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


# Files that change


def test_a_version_that_appears_before_its_files_serves_soon(models: pathlib.Path) -> None:
    with serving(models) as server:
        (models / "2").mkdir()
        server.wait_for("Loading version 2")
        (models / "2" / "saved_model.pb").write_bytes(b"\x0a\xff")  # the beginning of a copy
        server.wait_for("can't parse")
        shutil.copytree(HALF_PLUS_TWO, models / "2", dirs_exist_ok=True)
        server.wait_for("Loaded version 2")
        predict(server, 2)


def test_a_version_whose_variables_arrive_later_serves_then(models: pathlib.Path) -> None:
    with serving(models) as server:
        (models / "2").mkdir()
        shutil.copy(HALF_PLUS_TWO / "saved_model.pb", models / "2")
        server.wait_for("2/variables/variables.index is not there")
        predict(server, 1)
        shutil.copytree(HALF_PLUS_TWO / "variables", models / "2" / "variables")
        server.wait_for("Loaded version 2")
        predict(server, 2)


def test_a_loaded_model_does_not_need_its_files(models: pathlib.Path) -> None:
    with serving(models) as server:
        for path in models.rglob("*"):
            if path.is_file():
                os.truncate(path, 0)
        predict(server)
        session = server.client.post("/v1/sessions", json={"model": "m"})
        run = {"feeds": {"x:0": [[2.0]]}, "fetches": ["y:0"]}
        answer = server.client.post(f"{session.headers['location']}:run", json=run)
        assert answer.json()["outputs"]["y:0"]["data"] == [[3.0]]
