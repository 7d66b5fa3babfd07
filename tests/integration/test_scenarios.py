"""What crosses several parts at once, through the real server process and HTTP."""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

import protos as pb
from runtime.api import DeadlineExceededError, SessionOptions, new_session
from tests.integration.rest_server import check_error, encoded, endless_graph
from tests.integration.server_process import ROOT, SECONDS, ServerProcess
from tests.unit.runtime.sessions.graphs import g1, neg, queue_graph, variable_graph

pytestmark = pytest.mark.usefixtures("both_ways")

POOLS = {
    "session_inter_op_thread_pool": [
        {"num_threads": 2, "global_name": "main"},
        {"num_threads": 1, "global_name": "low"},
    ]
}
MAIN, LOW = 0, 1  # indexes in POOLS
SETTINGS: dict[str, Any] = {
    "rest": {"drain_seconds": 1},
    "models": [{"name": "counter", "base_path": str(ROOT / "examples/models/counter")}],
    "sessions": {"allow_new_global_pools": True},
}
SOAK_SECONDS = 3
CLIENTS = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    path: pathlib.Path = tmp_path_factory.mktemp("scenarios") / "server.yaml"
    path.write_text(json.dumps(SETTINGS))
    process = ServerProcess(f"--config={path}")
    try:
        process.wait_for("Loaded version 1 of model counter")
        yield process
    finally:
        process.end()


class Session:
    """A session of the server; every call is one request."""

    def __init__(self, server: ServerProcess, body: dict[str, Any]) -> None:
        self.client = server.client
        answer = self.client.post("/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        self.path: str = answer.headers["location"]

    def post(self, verb: str, body: dict[str, Any], **options: Any) -> httpx.Response:
        return self.client.post(f"{self.path}:{verb}", json=body, **options)

    def run(
        self, fetch: str = "", feeds: dict[str, Any] | None = None, target: str = "", **options: Any
    ) -> httpx.Response:
        body = {"feeds": feeds or {}, "options": options}
        return self.post("run", body | ({"fetches": [fetch]} if fetch else {"targets": [target]}))

    def value(self, fetch: str, **options: Any) -> Any:
        answer = self.run(fetch, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()["outputs"][fetch]["data"]

    def until_steps(self, count: int) -> None:
        """Wait until that many steps have begun."""
        while self.client.get(self.path).json()["steps"] < count:
            pass

    def delete(self) -> httpx.Response:
        return self.client.delete(self.path)


@pytest.fixture
def threads() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as executor:
        yield executor


Threads = concurrent.futures.ThreadPoolExecutor


def blocking_graph() -> pb.GraphDef:
    """`loop` occupies its thread until it is cancelled; `quick` does not."""
    graph = endless_graph()
    graph.node.append(neg("quick", "start"))
    return graph


def test_one_priority_waits_and_the_other_does_not(server: ServerProcess, threads: Threads) -> None:
    session = Session(server, {"graph_def": encoded(blocking_graph()), "config": POOLS})
    feeds = {"start": 1.0}
    body = {"feeds": feeds, "fetches": ["loop"], "options": {"inter_op_thread_pool": LOW}}
    blocking = threads.submit(session.post, "run", body, headers={"X-Request-Id": "blocking"})
    session.until_steps(1)
    assert session.value("quick", feeds=feeds, inter_op_thread_pool=MAIN) == -1
    late = session.run("quick", feeds, inter_op_thread_pool=LOW, timeout_in_ms=50)
    check_error(late, 504, "DEADLINE_EXCEEDED", "Timed out waiting for notification")
    waiting = threads.submit(session.value, "quick", feeds=feeds, inter_op_thread_pool=LOW)
    session.until_steps(4)
    assert not waiting.done()
    assert session.post("cancel", {"request_id": "blocking"}).status_code == 200
    check_error(blocking.result(SECONDS), 499, "CANCELLED", "")
    assert waiting.result(SECONDS) == -1
    session.delete()


def test_a_step_that_waits_for_a_queue_holds_no_thread(
    server: ServerProcess, threads: Threads
) -> None:
    session = Session(server, {"graph_def": encoded(queue_graph()), "config": POOLS})
    waiting = threads.submit(session.value, "deq", inter_op_thread_pool=LOW)
    session.until_steps(1)
    fed = session.run(target="enq", feeds={"value": 3.0}, inter_op_thread_pool=LOW)
    assert fed.status_code == 200, fed.text
    assert waiting.result(SECONDS) == 3
    session.delete()


def test_a_pool_is_shared_but_never_made_anew(server: ServerProcess) -> None:
    first = Session(server, {"graph_def": encoded(g1()), "config": POOLS})
    other = {"session_inter_op_thread_pool": [{"num_threads": 3, "global_name": "main"}]}
    refused = server.client.post("/v1/sessions", json={"graph_def": encoded(g1()), "config": other})
    check_error(
        refused,
        400,
        "INVALID_ARGUMENT",
        "Pool main configured previously with num_threads=2; cannot re-configure with "
        "num_threads=3",
    )
    assert first.value("n", feeds={"x": 3.0}) == -6
    second = Session(server, {"graph_def": encoded(g1()), "config": POOLS})
    pools = server.client.get("/v1/threadpools").json()["thread_pools"]
    assert [pool["num_threads"] for pool in pools if pool["name"] == "main"] == [2]
    for session in (first, second):
        assert session.delete().status_code == 200


def test_deleting_a_session_cancels_what_waits_in_it(
    server: ServerProcess, threads: Threads
) -> None:
    session = Session(server, {"graph_def": encoded(queue_graph())})
    waiting = [threads.submit(session.run, "deq") for _ in range(3)]
    session.until_steps(3)
    assert session.delete().json() == {}
    for future in waiting:
        check_error(future.result(SECONDS), 499, "CANCELLED", "")
    pools = server.client.get("/v1/threadpools").json()["thread_pools"]
    assert sum(pool["running"] + pool["queued"] for pool in pools) == 0


def test_sessions_of_a_model_count_for_themselves(server: ServerProcess, threads: Threads) -> None:
    first, second = (Session(server, {"model": "counter"}) for _ in range(2))
    assert [first.value("incr_counter") for _ in range(5)] == [1, 2, 3, 4, 5]
    assert second.value("get_counter") == 0
    assert first.value("reset_counter") == 0
    increments = [threads.submit(second.value, "incr_counter") for _ in range(100)]
    concurrent.futures.wait(increments, SECONDS)
    assert second.value("get_counter") == 100
    assert first.value("get_counter") == 0
    predicted = server.client.post(
        "/v1/models/counter:predict", json={"signature_name": "get_counter", "inputs": {}}
    )
    assert predicted.json() == {"outputs": 0.0}
    for session in (first, second):
        session.delete()


def test_session_metadata_is_unique_and_echoed(server: ServerProcess) -> None:
    metadata = {"name": "scenario", "version": 1}
    body = {
        "graph_def": encoded(g1()),
        "config": {"experimental": {"session_metadata": metadata}},
    }
    session = Session(server, body)
    refused = server.client.post("/v1/sessions", json=body)
    check_error(
        refused,
        400,
        "INVALID_ARGUMENT",
        "A session with the same name and version has already been created",
    )
    answer = session.run("n", {"x": 3.0}, trace_level="FULL_TRACE")
    assert answer.json()["run_metadata"]["session_metadata"] == {"name": "scenario", "version": "1"}
    session.delete()
    Session(server, body).delete()


def test_a_step_in_parts_and_the_end_of_its_handle(server: ServerProcess) -> None:
    session = Session(server, {"graph_def": encoded(g1())})
    names = {"feeds": ["x"], "fetches": ["m:0", "n:0"]}
    handle = session.post("partialRunSetup", names).json()["partial_run_handle"]
    part = {"partial_run_handle": handle}
    first = session.post("partialRun", part | {"feeds": {"x": 3.0}, "fetches": ["m:0"]})
    assert first.json()["outputs"]["m:0"]["data"] == 6
    again = session.post("partialRun", part | {"feeds": {"x": 3.0}})
    check_error(again, 400, "INVALID_ARGUMENT", "The feed x has already been fed.")
    last = session.post("partialRun", part | {"fetches": ["n:0"]})
    assert last.json()["outputs"]["n:0"]["data"] == -6
    over = session.post("partialRun", part | {"fetches": ["n:0"]})
    check_error(over, 400, "INVALID_ARGUMENT", "Must run 'setup' before performing partial runs!")
    session.delete()


def test_variables_of_the_master_service_outlive_sessions(server: ServerProcess) -> None:
    options = SessionOptions(server.grpc_address)
    first = new_session(options)
    first.create(variable_graph())
    first.run({"value": np.float32(3)}, [], ["assign"])
    first.close()
    second = new_session(options)
    second.create(variable_graph())
    assert second.run({}, ["read"]) == [3]
    second.close()


def test_a_server_that_is_not_there_is_noticed_by_the_first_step() -> None:
    config = pb.ConfigProto(operation_timeout_in_ms=300)
    session = new_session(SessionOptions("grpc://localhost:1", config))
    started = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        session.create(g1())
        session.run({"x": np.float32(3)}, ["n"])
    assert 0.3 <= time.monotonic() - started < SECONDS


DOCUMENTED = {200, 410, 504}  # done, closed, late


def one_client(server: ServerProcess, number: int, until: float, codes: set[int]) -> None:
    """Runs, extends, times out and closes on sessions of its own and on a shared one."""
    turn = 0
    while time.monotonic() < until:
        turn += 1
        session = Session(server, {"graph_def": encoded(queue_graph())})
        name = f"size_{number}_{turn}"
        more = pb.GraphDef(node=[pb.NodeDef(name=name, op="QueueSizeV2", input=["q"])])
        answers = [
            session.run(target="enq", feeds={"value": 1.0}),
            session.post("extend", {"graph_def": encoded(more)}),
            session.run(name),
            session.run("deq"),
            session.run("deq", timeout_in_ms=5),
            session.delete(),
            session.run(name),
        ]
        codes.update(answer.status_code for answer in answers)
        assert answers[2].json()["outputs"][name]["data"] == 1
        assert answers[4].status_code == 504


def test_many_clients_at_once_get_only_documented_answers(
    server: ServerProcess, threads: Threads
) -> None:
    codes: set[int] = set()
    until = time.monotonic() + SOAK_SECONDS
    clients = [
        threads.submit(one_client, server, number, until, codes) for number in range(CLIENTS)
    ]
    for client in clients:
        client.result(SECONDS + SOAK_SECONDS)
    assert codes == DOCUMENTED
    listed = server.client.get("/v1/sessions").json()["sessions"]
    assert listed == []
