"""Several processes that serve as one: sessions, listings, limits, and the end of a process."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import grpc
import httpx
import numpy as np
import pytest

import protos as pb
from runtime.api import RuntimeSession, SessionOptions, new_session
from runtime.errors import AbortedError
from server.rest.session_docs import half_plus_two_graph
from tests.integration.rest_server import RUN_Y, check_error, encoded, endless_graph
from tests.integration.server_process import (
    ROOT,
    SECONDS,
    ServerProcess,
    children_of,
    on_free_ports,
)

SESSIONS = 12
MODEL = ROOT / "examples" / "models" / "half_plus_two"
PREDICT = "/v1/models/half_plus_two:predict"


def config_file(folder: pathlib.Path, **settings: object) -> pathlib.Path:
    path = folder / "server.yaml"
    path.write_text(
        json.dumps(
            {
                "processes": 2,
                "models": [{"name": "half_plus_two", "base_path": str(MODEL)}],
                "sessions": {"max_open": SESSIONS},
                "rest": {"host": "127.0.0.1", "drain_seconds": 1},
                "thread_pools": [
                    {"name": "online", "num_threads": 3, "queue_size": 100},
                    {"name": "background", "num_threads": 2, "low_priority": True},
                ],
                **settings,
            }
        )
    )
    return path


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ServerProcess]:
    process = ServerProcess(f"--config={config_file(tmp_path)}")
    try:
        process.wait_for("Serving on")
        yield process
    finally:
        workers = workers_of(process)
        process.end()
        wait_until(lambda: not any(map(is_running, workers)))


def workers_of(server: ServerProcess) -> list[int]:
    """The process ids of the workers, in no order."""
    return children_of(server.process.pid)


def is_running(process_id: int) -> bool:
    try:
        text = pathlib.Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def wait_until(holds: object, seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator] # a function
        assert time.monotonic() < end
        time.sleep(0.02)


def afresh(server: ServerProcess, method: str, path: str, **options: object) -> httpx.Response:
    """A request on a connection of its own, which any process may accept."""
    return httpx.request(method, server.http_address + path, timeout=SECONDS, **options)  # type: ignore[arg-type] # httpx's


def open_sessions(server: ServerProcess, count: int) -> list[str]:
    """Open sessions, at the same time so that each process gets some."""
    body = {"graph_def": encoded(half_plus_two_graph())}
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        answers = list(
            threads.map(lambda _: afresh(server, "POST", "/v1/sessions", json=body), range(count))
        )
    assert {answer.status_code for answer in answers} == {201}
    return [answer.json()["session"] for answer in answers]


def place(session: str) -> str:
    found = re.search(r"-(\d+-\d+)$", session)
    assert found is not None
    return found[1]


def in_both(server: ServerProcess) -> list[str]:
    """Sessions of which each process has some, and room for one more."""
    sessions: list[str] = []
    while len({place(session) for session in sessions}) < 2:
        for session in sessions:
            afresh(server, "DELETE", f"/v1/sessions/{session}")
        sessions = open_sessions(server, SESSIONS - 1)
    return sessions


def test_connections_that_stay_open_are_divided(server: ServerProcess) -> None:
    body = {"graph_def": encoded(half_plus_two_graph())}
    sessions: list[str] = []
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            client = stack.enter_context(httpx.Client(timeout=SECONDS))
            answer = client.post(f"{server.http_address}/v1/sessions", json=body)
            sessions.append(answer.json()["session"])
        assert min(collections.Counter(map(place, sessions)).values()) >= 3


def test_a_session_is_reached_from_every_process(server: ServerProcess) -> None:
    for session in in_both(server):
        for _ in range(6):
            answer = afresh(server, "POST", f"/v1/sessions/{session}:run", json=RUN_Y)
            assert answer.status_code == 200, answer.text
            assert "y:0" in answer.json()["outputs"]
        described = afresh(server, "GET", f"/v1/sessions/{session}").json()
        assert (described["session"], described["steps"]) == (session, 6)
        wrong = afresh(
            server, "POST", f"/v1/sessions/{session}:run", json={"feeds": {}, "fetches": ["none"]}
        )
        check_error(wrong, 400, "INVALID_ARGUMENT", "Tensor none:0")
        assert len(wrong.headers.get_list("x-request-id")) == 1
        assert afresh(server, "DELETE", f"/v1/sessions/{session}").status_code == 200
        for _ in range(4):
            gone = afresh(server, "POST", f"/v1/sessions/{session}:run", json=RUN_Y)
            check_error(gone, 410, "CANCELLED", "has been closed")
    # No process has ever been in the last slot.
    for unknown in ["A" * 22 + end for end in ("-1-7", "-9-0", "", "-2-0")]:
        missing = afresh(server, "GET", f"/v1/sessions/{unknown}")
        check_error(missing, 404, "NOT_FOUND", f"Session {unknown} is not found.")


def test_large_bodies_and_answers_pass_between_processes(server: ServerProcess) -> None:
    values = np.arange(300_000, dtype=np.float32)
    feeds = {"x:0": {"dtype": "float32", "shape": [len(values)], "data": values.tolist()}}
    for session in in_both(server):
        answer = afresh(
            server, "POST", f"/v1/sessions/{session}:run", json={"feeds": feeds, "fetches": ["y:0"]}
        )
        assert answer.status_code == 200, answer.text
        found = np.array(answer.json()["outputs"]["y:0"]["data"], np.float32)
        np.testing.assert_array_equal(found, values / 2 + 2)


def test_what_is_for_the_host_is_said_by_every_process(server: ServerProcess) -> None:
    sessions = in_both(server)
    for predicted in range(1, 11):
        listed = afresh(server, "GET", "/v1/sessions").json()["sessions"]
        assert sorted(each["session"] for each in listed) == sorted(
            f"{session[:4]}…" for session in sessions
        )
        pools = {
            pool["name"]: pool
            for pool in afresh(server, "GET", "/v1/threadpools").json()["thread_pools"]
        }
        assert (pools["online"]["num_threads"], pools["background"]["num_threads"]) == (3, 2)
        answer = afresh(server, "POST", PREDICT, json={"instances": [1, 2]})
        assert answer.json() == {"predictions": [2.5, 3.0]}
        metrics = afresh(server, "GET", "/monitoring/prometheus/metrics").text
        assert f"runstep_sessions_open {len(sessions)}.0" in metrics
        assert f'runstep_requests_total{{api="predict",status="200"}} {predicted}.0' in metrics
        assert ":tensorflow:serving:request_count{" in metrics
    sessions += open_sessions(server, 1)
    for _ in range(6):
        refused = afresh(server, "POST", "/v1/sessions", json={})
        check_error(refused, 429, "RESOURCE_EXHAUSTED", f"{SESSIONS} sessions are open")
    afresh(server, "DELETE", f"/v1/sessions/{sessions[0]}")
    open_sessions(server, 1)


def predictions(server: ServerProcess) -> int:
    """Return how many predictions the metrics count."""
    metrics = afresh(server, "GET", "/monitoring/prometheus/metrics").text
    found = re.search(r'^runstep_requests_total{api="predict",status="200"} (\d+)', metrics, re.M)
    assert found is not None
    return int(found[1])


def test_a_process_that_is_killed_is_replaced(server: ServerProcess) -> None:
    sessions = in_both(server)
    lost_place = place(sessions[0])
    slot = int(lost_place.partition("-")[0])
    line = "runstep_sessions_open"
    assert line in afresh(server, "GET", "/monitoring/prometheus/metrics").text
    for _ in range(20):
        answer = afresh(server, "POST", PREDICT, json={"instances": [1]})
        assert answer.json() == {"predictions": [2.5]}
    assert predictions(server) == 20
    before = workers_of(server)
    by_slot = {slot_of(each, server): each for each in before}
    os.kill(by_slot[slot], signal.SIGKILL)
    kept = [session for session in sessions if place(session) != lost_place]
    lost = [session for session in sessions if place(session) == lost_place]
    wait_until(lambda: afresh(server, "GET", f"/v1/sessions/{lost[0]}").status_code == 410)
    for session in lost:
        gone = afresh(server, "POST", f"/v1/sessions/{session}:run", json=RUN_Y)
        check_error(gone, 410, "CANCELLED", "was killed by signal 9")
    for session in kept:
        answer = afresh(server, "POST", f"/v1/sessions/{session}:run", json=RUN_Y)
        assert answer.status_code == 200, answer.text
    for _ in range(20):
        answer = afresh(server, "POST", PREDICT, json={"instances": [1]})
        assert answer.json() == {"predictions": [2.5]}
        assert predictions(server) >= 20  # those of the killed process too, or a rate would jump
    wait_until(lambda: afresh(server, "GET", "/readyz").status_code == 200)
    wait_until(lambda: len(workers_of(server)) == 2)
    assert predictions(server) == 40
    assert f"runstep_sessions_open {len(kept)}.0" in (
        afresh(server, "GET", "/monitoring/prometheus/metrics").text
    )
    new = in_both_after(server, len(lost))
    assert {place(session) for session in new} <= {f"{slot}-1", *map(place, kept)}
    server.wait_for(f"Process {slot} ({by_slot[slot]}) was killed by signal 9")
    folder = socket_of(by_slot[1 - slot], server).parent
    assert places_of_sockets(folder) == {f"{slot}.1", f"{1 - slot}.0"}
    assert server.stop() == 0


def test_a_process_that_cannot_load_its_models_gets_no_requests(tmp_path: pathlib.Path) -> None:
    model = shutil.copytree(MODEL, tmp_path / "half_plus_two")
    settings = {
        "models": [{"name": "half_plus_two", "base_path": str(model)}],
        "model_loading": {"max_retries": 0},
        "model_poll_seconds": 0.2,
    }
    server = ServerProcess(f"--config={config_file(tmp_path, **settings)}")
    try:
        server.wait_for("Serving on")
        workers = workers_of(server)
        graph = next(model.glob("*/saved_model.pb"))
        content = graph.read_bytes()
        graph.write_bytes(b"damaged")
        os.kill(workers[1], signal.SIGKILL)
        server.wait_for("another one takes its place")
        server.wait_for("can't parse")
        for _ in range(30):
            answer = afresh(server, "POST", PREDICT, json={"instances": [1]})
            assert answer.json() == {"predictions": [2.5]}
            assert is_ready(server, "half_plus_two")
        assert afresh(server, "GET", "/readyz").status_code == 503
        graph.write_bytes(content)
        wait_until(lambda: afresh(server, "GET", "/readyz").status_code == 200)
        in_both(server)
    finally:
        server.end()


def is_ready(server: ServerProcess, name: str) -> bool:
    """Whether a process says so that is reached by a new gRPC connection."""
    address = server.grpc_address.removeprefix("grpc://")
    request = pb.inference.ModelReadyRequest(name=name).SerializeToString()
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelReady")
        answer = call(request, timeout=SECONDS)
    return bool(pb.inference.ModelReadyResponse.FromString(answer).ready)


def in_both_after(server: ServerProcess, count: int) -> list[str]:
    sessions = open_sessions(server, count)
    for session in sessions:
        answer = afresh(server, "POST", f"/v1/sessions/{session}:run", json=RUN_Y)
        assert answer.status_code == 200, answer.text
    return sessions


def slot_of(process_id: int, server: ServerProcess) -> int:
    """The slot of a worker."""
    return int(socket_of(process_id, server).name.partition(".")[0])


def socket_of(process_id: int, server: ServerProcess) -> pathlib.Path:
    """The Unix socket that a worker listens on."""
    found = subprocess.run(
        ["grep", "-a", "", "/proc/net/unix"], capture_output=True, text=True, check=True
    ).stdout
    inodes = {
        match[1]: pathlib.Path(match[2])
        for match in re.finditer(r" (\d+) (\S*/runstep-\S+/\d+\.\d+\.http)", found)
    }
    for path in pathlib.Path(f"/proc/{process_id}/fd").iterdir():
        link = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(path))
        if link is not None and link[1] in inodes:
            return inodes[link[1]]
    raise AssertionError(f"process {process_id} of {server.process.pid} listens nowhere")


def places_of_sockets(folder: pathlib.Path) -> set[str]:
    """The slots and generations whose sockets are in the folder of a server."""
    return {path.stem for path in folder.iterdir() if path.is_socket()}


def test_a_step_in_a_process_that_is_killed_ends_with_the_reason(server: ServerProcess) -> None:
    body = {"graph_def": encoded(endless_graph())}
    sessions: list[str] = []
    with contextlib.ExitStack() as stack:
        threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(SESSIONS))
        while len({place(session) for session in sessions}) < 2:
            client = stack.enter_context(httpx.Client(timeout=SECONDS))  # its connection stays open
            answer = client.post(f"{server.http_address}/v1/sessions", json=body)
            sessions.append(answer.json()["session"])
        by_slot = {slot_of(each, server): each for each in workers_of(server)}
        steps = [
            threads.submit(
                afresh, server, "POST", f"/v1/sessions/{session}:run",
                json={"feeds": {"start": 1.0}, "fetches": ["loop"]},
            )
            for session in sessions
        ]  # fmt: skip
        for session in sessions:
            wait_until(
                lambda session=session: (
                    afresh(server, "GET", f"/v1/sessions/{session}").json()["state"] == "RUNNING"
                )
            )
        os.kill(by_slot[1], signal.SIGKILL)
        for session in sessions:
            if place(session) == "0-0":
                assert afresh(server, "DELETE", f"/v1/sessions/{session}").status_code == 200
        for session, step in zip(sessions, steps, strict=True):
            try:
                answer = step.result(SECONDS)
            except httpx.TransportError:  # its own connection was with the process that ended
                continue
            status = 410 if place(session) == "1-0" else 499
            assert answer.status_code == status, answer.text


def test_tensorflow_master_is_in_one_process(server: ServerProcess) -> None:
    address = server.grpc_address
    server.wait_for("Serving on")

    def opened() -> RuntimeSession:
        session = new_session(SessionOptions(address))
        session.create(half_plus_two_graph())
        return session

    with concurrent.futures.ThreadPoolExecutor(6) as threads:

        def use(number: int) -> float:
            session = opened()
            try:
                return float(session.run({"x:0": np.float32(number)}, ["y:0"])[0])
            finally:
                session.close()

        assert list(threads.map(use, range(12))) == [number / 2 + 2 for number in range(12)]
    session = opened()
    feeds = {"x:0": np.float32(4)}
    assert session.run(feeds, ["y:0"]) == [4.0]
    by_slot = {slot_of(each, server): each for each in workers_of(server)}
    os.kill(by_slot[0], signal.SIGKILL)
    wait_until(lambda: afresh(server, "GET", "/readyz").status_code == 503)
    wait_until(lambda: afresh(server, "GET", "/readyz").status_code == 200)
    with pytest.raises(AbortedError, match="Possibly, this master has restarted"):
        session.run(feeds, ["y:0"])


def test_the_processes_end_with_the_one_that_supervises_them(server: ServerProcess) -> None:
    workers = workers_of(server)
    assert len(workers) == 2
    folders = socket_folders()
    assert folders
    server.process.kill()
    server.process.wait(SECONDS)
    wait_until(lambda: not any(map(is_running, workers)))
    assert not any(pathlib.Path(folder).exists() for folder in folders - socket_folders())


def socket_folders() -> set[str]:
    """Of the servers that have sockets now."""
    text = pathlib.Path("/proc/net/unix").read_text()
    return set(re.findall(r"(\S*/runstep-\w+)/0\.0\.http", text))


def test_a_long_folder_for_temporary_files_does_not_matter(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("t" * 120)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    server = ServerProcess(f"--config={config_file(tmp_path)}")
    try:
        server.wait_for("Serving on")
        assert server.stop() == 0
    finally:
        server.end()


def test_a_terminal_interrupt_drains_once(server: ServerProcess) -> None:
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(SECONDS) == 0
    assert server.log.count("Traceback") == 0
    assert sum("Draining" in line for line in server.log) == 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"processes": 0}, "must be a number from 1 to 64, or auto"),
        ({"processes": "many"}, "must be a number from 1 to 64, or auto"),
        ({"grpc": {"socket_path": "/tmp/none"}}, "grpc.socket_path requires 1"),
    ],
)
def test_what_requires_one_process_is_a_sentence(
    settings: dict[str, object], sentence: str, tmp_path: pathlib.Path
) -> None:
    path = config_file(tmp_path, **settings)
    result = subprocess.run(
        [sys.executable, "-m", "server.main", "serve", f"--config={path}"],
        cwd=ROOT, env=on_free_ports(), capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert result.returncode == 1
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_that_is_missing_is_said_as_by_one_process(tmp_path: pathlib.Path) -> None:
    said = set()
    for processes in (1, 2):
        path = config_file(
            tmp_path, model_config_file=str(tmp_path / "missing"), models=[], processes=processes
        )
        result = subprocess.run(
            [sys.executable, "-m", "server.main", "serve", f"--config={path}"],
            cwd=ROOT, env=on_free_ports(), capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        assert result.returncode == 1
        said.add(result.stderr)
    (text,) = said
    assert text.startswith("runstep: NOT_FOUND: Cannot read the model config file")
    assert text.count("\n") == 1


def test_a_server_whose_processes_cannot_start_ends(tmp_path: pathlib.Path) -> None:
    models = [{"name": "none", "base_path": str(tmp_path / "none")}]  # so that it is never ready
    server = ServerProcess(f"--config={config_file(tmp_path, models=models)}")
    try:
        server.wait_for("Could not find base path")
        os.kill(children_of(server.process.pid)[0], signal.SIGKILL)
        assert server.process.wait(SECONDS) == 1
        server.wait_for("was killed by signal 9 before the server was ready")
    finally:
        server.end()
