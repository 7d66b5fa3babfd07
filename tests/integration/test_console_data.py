"""The console's calls on sessions and models, against a whole application."""

from __future__ import annotations

import asyncio
import functools
import pathlib
import threading
from typing import Any

import pytest

import runtime.client as tf
from runtime.client import ops
from runtime.foundation.running_task import check_task
from runtime.sessions.direct import short_step
from server.access.caller import masked
from server.console import session_routes
from tests.integration.access import bearer, write_keys
from tests.integration.rest_server import (
    RUN_Y,
    RestServer,
    check_error,
    encoded,
    endless_graph,
    with_server,
)
from tests.integration.server_process import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "saved_models"
HOSTILE = '</script><img src=x onerror="alert(1)">'
API = "/console/api"


def models(*names: str) -> dict[str, Any]:
    """The setting for example models of these names."""
    folder = ROOT / "examples" / "models"
    return {"models": [{"name": name, "base_path": str(folder / name)} for name in names]}


@functools.cache
def working_graph() -> dict[str, str]:
    """A variable `v`, a queue `q`, a table `t`, and a step `broken` that fails."""
    with tf.Graph().as_default() as graph:
        queue = tf.FIFOQueue(5, [tf.float32], shapes=[[]], name="q", shared_name="q")
        queue.enqueue_many([tf.placeholder(tf.float32, [None], name="x")], name="fill")
        queue.dequeue(name="take")
        table = ops.mutable_hash_table_v2(
            key_dtype=tf.string, value_dtype=tf.int64, shared_name="t", name="t"
        )
        ops.lookup_table_insert_v2(
            table, tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64), name="insert"
        )
        handle = ops.var_handle_op(dtype=tf.float32, shape=[4], shared_name="v", name="v")
        ops.assign_variable_op(handle, tf.constant([0.0, 1.0, 1.0, 4.0]), name="assign")
        never = ops.var_handle_op(dtype=tf.float32, shape=[1], shared_name="never", name="never")
        ops.read_variable_op(never, dtype=tf.float32, name="broken")
        tf.constant(HOSTILE, name="text")
    return {"graph_def": encoded(graph.as_graph_def())}


async def opened(server: RestServer) -> tuple[str, str]:
    """A session of `working_graph` that has run some steps; its path and the console's."""
    session = await server.create(working_graph() | {"name": HOSTILE})
    for body in (
        {"feeds": {"x:0": [1.0, 2.0]}, "targets": ["fill"]},
        {"targets": ["insert", "assign"]},
    ):
        answer = await server.post(f"{session}:run", body)
        assert answer.status_code == 200, answer.text
    check_error(
        await server.post(f"{session}:run", {"fetches": ["broken:0"]}),
        400, "FAILED_PRECONDITION", "never",
    )  # fmt: skip
    return session, f"{API}/sessions/{session.rpartition('/')[2]}"


async def found(server: RestServer, path: str, **kwargs: Any) -> Any:
    answer = await server.client.get(path, **kwargs)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def test_a_session_with_its_steps() -> None:
    async def scenario(server: RestServer) -> None:
        session, path = await opened(server)
        (listed,) = (await found(server, f"{API}/sessions"))["sessions"]
        assert listed["session"] == masked(session.rpartition("/")[2])
        assert listed["masked"] is True and listed["owner"] == "" and listed["name"] == HOSTILE
        one = await found(server, path)
        assert one["steps"] == 3 and one["running"] == [] and one["lease_seconds"] > 0
        assert [(step["what"], step["code"]) for step in one["last_steps"]] == [
            ("broken:0", "FAILED_PRECONDITION"),
            ("run insert and 1 more", "OK"),
            ("x:0 → run fill", "OK"),
        ]
        assert {step["pool"] for step in one["last_steps"]} == {"online"}
        assert all(step["request_id"] for step in one["last_steps"])
        assert all(0 <= step["run_seconds"] < 60 for step in one["last_steps"])
        check_error(await server.client.get(f"{API}/sessions/none"), 404, "NOT_FOUND", "not found")

    with_server(scenario)


def test_a_running_step_is_shown_until_it_is_cancelled() -> None:
    async def scenario(server: RestServer) -> None:
        session = await server.create({"graph_def": encoded(endless_graph())})
        path = f"{API}/sessions/{session.rpartition('/')[2]}"
        body = {"feeds": {"start:0": 1.0}, "fetches": ["loop:0"]}
        headers = {"x-request-id": "endless"}
        running = asyncio.create_task(server.post(f"{session}:run", body, headers=headers))
        await server.until_running(session)
        (step,) = (await found(server, path))["running"]
        assert step["request_id"] == "endless" and step["what"] == "start:0 → loop:0"
        assert step["pool"] == "online" and step["seconds"] >= 0 and step["started_at"]
        await server.post(f"{session}:cancel", {"request_id": "endless"})
        assert (await running).status_code == 499
        one = await found(server, path)
        assert one["running"] == [] and one["last_steps"][0]["code"] == "CANCELLED"
        graph = await found(server, f"{path}/graph")
        assert {function["name"] for function in graph["functions"]} == {"for_ever", "unchanged"}

    with_server(scenario)


def test_steps_that_run_at_once_are_among_the_last(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(short_step, "INLINE_SECONDS", 1e9)

    async def scenario(server: RestServer) -> None:
        session = await server.create()
        for _ in range(60):
            assert (await server.post(f"{session}:run", RUN_Y)).status_code == 200
        one = await found(server, f"{API}/sessions/{session.rpartition('/')[2]}")
        assert one["steps"] == 60 and len(one["last_steps"]) == 50
        assert one["last_steps"][0]["what"] == "x:0 → y:0"
        assert one["last_steps"][0]["pool"] == "online"

    with_server(scenario)


def test_what_a_session_holds() -> None:
    async def scenario(server: RestServer) -> None:
        _, path = await opened(server)
        graph = await found(server, f"{path}/graph")
        assert graph["nodes"] == sum(op["count"] for op in graph["ops"]) and not graph["truncated"]
        assert {"op": "VarHandleOp", "count": 2} in graph["ops"]
        assert graph["placeholders"] == [{"name": "x:0", "dtype": "float32", "shape": [-1]}]
        held = await found(server, f"{path}/resources")
        assert held["variables"] == [{"name": "v", "dtype": "float32", "shape": [4], "bytes": 16}]
        (queue,) = held["queues"]
        assert (queue["name"], queue["kind"]) == ("q", "FIFOQueue")
        assert (queue["size"], queue["capacity"]) == (2, 5)
        (table,) = held["others"]
        assert (table["kind"], table["size"]) == ("MutableHashTable", 2)
        assert held["truncated"] is False
        histogram = await found(server, f"{path}/histogram", params={"variable": "v"})
        assert (histogram["count"], histogram["min"], histogram["max"]) == (4, 0, 4)
        assert sum(histogram["counts"]) == 4 and histogram["mean"] == 1.5
        assert len(histogram["edges"]) == len(histogram["counts"]) + 1
        no = await server.client.get(f"{path}/histogram", params={"variable": HOSTILE})
        check_error(no, 404, "NOT_FOUND", "has no variable")
        no = await server.client.get(f"{path}/histogram")
        check_error(no, 400, "INVALID_ARGUMENT", "variable")
        assert await found(server, f"{path}/signatures") == {"signatures": []}

    with_server(scenario)


def test_a_histogram_has_a_deadline_and_ends_with_its_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, ended = threading.Event(), threading.Event()

    def count_for_ever(*_: object) -> bytes:
        began.set()
        try:
            while True:
                check_task()
        finally:
            ended.set()

    monkeypatch.setattr(session_routes, "histogram_json", count_for_ever)

    async def scenario(server: RestServer) -> None:
        session = await server.create()
        path = f"{API}/sessions/{session.rpartition('/')[2]}/histogram?variable=v"
        asked = asyncio.create_task(server.client.get(path))
        await asyncio.to_thread(began.wait, 30)
        asked.cancel()
        assert await asyncio.to_thread(ended.wait, 30)
        began.clear()
        ended.clear()
        monkeypatch.setattr(session_routes, "HISTOGRAM_SECONDS", 0.05)
        check_error(await server.client.get(path), 504, "DEADLINE_EXCEEDED", "")
        assert await asyncio.to_thread(ended.wait, 30)

    with_server(scenario)


def test_the_signatures_of_a_sessions_model() -> None:
    async def scenario(server: RestServer) -> None:
        await asyncio.to_thread(server.services.models.wait_until_settled, 30)
        session = await server.create({"model": "half_plus_two"})
        path = f"{API}/sessions/{session.rpartition('/')[2]}"
        (signature,) = [
            each
            for each in (await found(server, f"{path}/signatures"))["signatures"]
            if each["name"] == "serving_default"
        ]
        (given,), (fetched,) = signature["inputs"], signature["outputs"]
        assert given["dtype"] == fetched["dtype"] == "float32"
        step = {"feeds": {given["tensor"]: given["example"]}, "fetches": [fetched["tensor"]]}
        assert (await server.post(f"{session}:run", step)).status_code == 200
        assert (await found(server, path))["version"] == 1

    with_server(scenario, **models("half_plus_two"))


def test_a_step_of_a_session_is_traced() -> None:
    async def scenario(server: RestServer) -> None:
        session, path = await opened(server)
        answer = await server.post(f"{path}/trace", {"targets": ["insert"], "fetches": ["text:0"]})
        assert answer.status_code == 200, answer.text
        trace = answer.json()
        spans = [span for lane in trace["lanes"] for span in lane["spans"]]
        assert "insert" in {span["node"] for span in spans}
        assert {lane["pool"] for lane in trace["lanes"]} == {"online"}
        assert trace["slowest"] and trace["seconds"] > 0 and trace["truncated"] is False
        assert trace["chrome_trace"]["traceEvents"]
        assert (await server.client.get(session)).json()["steps"] == 4
        broken = await server.post(f"{path}/trace", {"fetches": ["broken:0"]})
        check_error(broken, 400, "FAILED_PRECONDITION", "never")

    with_server(scenario)


def test_each_example_request_of_the_models_can_be_sent() -> None:
    names = ("half_plus_two", "counter", "digits")

    async def scenario(server: RestServer) -> None:
        await asyncio.to_thread(server.services.models.wait_until_settled, 60)
        for name in names:
            model = await found(server, f"{API}/models/{name}")
            assert (model["name"], model["version"], model["state"]) == (name, 1, "AVAILABLE")
            assert model["versions"] == [1] and model["base_path"] is None  # nobody is an admin
            assert model["ops"] and model["missing_ops"] == []
            assert model["memory"]["graph_bytes"] > 0 and model["memory"]["weights_bytes"] > 0
            assert all(row["why"] and row["nodes"] for row in model["unclustered"])
            predicted = [
                each["example"] for each in model["signatures"]
                if each["example"] and each["example"]["path"].endswith(":predict")
            ]  # fmt: skip
            assert predicted
            for example in predicted:
                answer = await server.post(f"/{example['path']}", example["body"])
                assert answer.status_code == 200, answer.text
        other = await server.client.get(f"{API}/models/half_plus_two", params={"version": "7"})
        check_error(other, 404, "NOT_FOUND", "7")
        other = await server.client.get(f"{API}/models/half_plus_two", params={"version": "x"})
        check_error(other, 400, "INVALID_ARGUMENT", "version must be an integer")
        check_error(await server.client.get(f"{API}/models/{HOSTILE[2:]}"), 404, "NOT_FOUND", "")

    with_server(scenario, **models(*names))


def test_a_signature_of_a_model_is_traced() -> None:
    async def scenario(server: RestServer) -> None:
        await asyncio.to_thread(server.services.models.wait_until_settled, 30)
        path = f"{API}/models/half_plus_two/trace"
        answer = await server.post(path, {"inputs": {"x": [2.0]}, "version": 1})
        assert answer.status_code == 200, answer.text
        assert answer.json()["slowest"] and answer.json()["lanes"]
        check_error(
            await server.post(path, {"inputs": {"x": [2.0]}, "signature_name": "none"}),
            400, "INVALID_ARGUMENT", "none",
        )  # fmt: skip
        check_error(
            await server.post(path, {"inputs": {"x": [2.0]}, "version": "1.5"}),
            400, "INVALID_ARGUMENT", "version must be an integer",
        )  # fmt: skip

    with_server(scenario, **models("half_plus_two"))


def test_with_authentication_only_the_owner_and_admins_see_a_session(
    tmp_path: pathlib.Path,
) -> None:
    async def scenario(server: RestServer) -> None:
        answer = await server.post("/v1/sessions", {}, headers=bearer("alice"))
        path = f"{API}/sessions/{answer.headers['location'].rpartition('/')[2]}"
        for part in ("", "/graph", "/signatures", "/resources", "/histogram?variable=v"):
            other = await server.client.get(f"{path}{part}", headers=bearer("bob"))
            check_error(other, 404, "NOT_FOUND", "is not found")
            unknown = await server.client.get(f"{path}{part}")
            assert unknown.status_code == 401
        check_error(
            await server.post(f"{path}/trace", {}, headers=bearer("bob")), 404, "NOT_FOUND", ""
        )
        reader = await server.client.get(f"{API}/sessions", headers=bearer("reader"))
        check_error(reader, 403, "PERMISSION_DENIED", "role sessions")
        (own,) = (await found(server, f"{API}/sessions", headers=bearer("alice")))["sessions"]
        assert own["masked"] is False and own["owner"] == "alice"
        assert (await found(server, f"{API}/sessions", headers=bearer("bob")))["sessions"] == []
        (listed,) = (await found(server, f"{API}/sessions", headers=bearer("root")))["sessions"]
        assert listed["masked"] is True and listed["owner"] == "alice"
        assert (await found(server, path, headers=bearer("root")))["owner"] == "alice"
        await asyncio.to_thread(server.services.models.wait_until_settled, 30)
        seen = await found(server, f"{API}/models/half_plus_two", headers=bearer("reader"))
        assert str(ROOT) not in str(seen) and seen["base_path"] is None
        seen = await found(server, f"{API}/models/half_plus_two", headers=bearer("root"))
        assert seen["base_path"] == str(ROOT / "examples" / "models" / "half_plus_two")
        denied = await server.post(
            f"{API}/models/half_plus_two/trace", {"inputs": {"x": [1.0]}}, headers=bearer("reader")
        )
        check_error(denied, 403, "PERMISSION_DENIED", "role predict")

    with_server(
        scenario,
        access={"keys_file": write_keys(tmp_path / "keys.yaml")},
        **models("half_plus_two"),
    )


def test_the_calls_are_not_in_the_openapi_document() -> None:
    async def scenario(server: RestServer) -> None:
        paths = (await server.client.get("/openapi.json")).json()["paths"]
        assert paths and not [path for path in paths if "console" in path]

    with_server(scenario)
