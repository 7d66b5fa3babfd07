"""Endless and stuck steps: what they cost the other sessions, loading, calls and readiness."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import numpy as np
import pytest

import protos as pb
from runtime.foundation import thread_pool
from runtime.foundation.running_task import check_task
from runtime.sessions.direct.direct_session import DirectSession
from server.codec.large.slices import pause_if_due
from server.codec.session.json_steps import JsonSteps
from server.rest import models
from server.rest.inference_protocol import api
from tests.conformance.case import Graph
from tests.integration.rest_server import (
    HALF_PLUS_TWO,
    RUN_Y,
    RestServer,
    check_error,
    encoded,
    endless_graph,
    with_server,
)

ENDLESS = {"graph_def": encoded(endless_graph())}
RUN_LOOP = {"feeds": {"start": 1.0}, "fetches": ["loop"]}
HALF_MODEL = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}
SECONDS = 60  # to wait for an answer


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "RELIEF_SECONDS", 0.01)
    monkeypatch.setattr(thread_pool, "BUSY_SECONDS", 0.02)


def one_thread(name: str) -> dict[str, object]:
    """Settings with one pool of one thread."""
    return {
        "thread_pools": ({"name": name, "num_threads": 1},),
        "priorities": {"normal": name},
    }


def test_one_session_s_endless_steps_do_not_starve_another():
    async def scenario(server: RestServer) -> None:
        greedy, modest = await server.create(ENDLESS), await server.create()
        steps = [asyncio.create_task(server.post(f"{greedy}:run", RUN_LOOP)) for _ in range(20)]
        await server.until_running(greedy)
        for _ in range(3):
            answer = await asyncio.wait_for(server.post(f"{modest}:run", RUN_Y), SECONDS)
            assert answer.json()["outputs"]["y:0"]["data"] == [2.5, 3.0, 4.5]
        assert (await server.pools())["taking_turns"]["running"] == 1
        assert not any(step.done() for step in steps)
        await server.post(f"{greedy}:close")
        assert {step.status_code for step in await asyncio.gather(*steps)} == {499}

    with_server(scenario, **one_thread("taking_turns"))


def products() -> pb.GraphDef:
    """A step of some milliseconds, which an event loop would not run itself."""
    graph = Graph()
    x = value = graph.placeholder("float32", "x")
    for number in range(40):
        value = graph.add("MatMul", value, x, name=f"product{number}")[0]
    graph.add("Max", value, np.int32([0, 1]), name="largest")
    return graph.graph_def


def test_sessions_take_turns_in_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "BUSY_SECONDS", SECONDS)  # no thread is added
    create = {"graph_def": encoded(products())}
    run = {"feeds": {"x": np.eye(256).tolist()}, "fetches": ["largest"]}

    async def scenario(server: RestServer) -> None:
        greedy, modest = await server.create(create), await server.create(create)
        for session in (greedy, modest):
            assert (await server.post(f"{session}:run", run)).status_code == 200
        steps = [asyncio.create_task(server.post(f"{greedy}:run", run)) for _ in range(40)]
        while (await server.pools())["in_turns"]["queued"] < 20:
            await asyncio.sleep(0)
        ended = sum(step.done() for step in steps)
        answer = await asyncio.wait_for(server.post(f"{modest}:run", run), SECONDS)
        assert answer.json()["outputs"]["largest"]["data"] == 1
        # One that ran, one whose turn was first, and those that ended while the body was read.
        assert sum(step.done() for step in steps) - ended < 10
        assert {step.status_code for step in await asyncio.gather(*steps)} == {200}

    with_server(scenario, **one_thread("in_turns"))


def test_a_step_has_a_longest_time_unless_only_this_machine_reaches_the_server():
    async def scenario(server: RestServer) -> None:
        session = await server.create(ENDLESS)
        answer = await server.post(f"{session}:run", RUN_LOOP)
        check_error(answer, 504, "DEADLINE_EXCEEDED", "Timed out")
        late = RUN_LOOP | {"options": {"timeout_in_ms": 3_600_000}}  # the client's wish is no more
        check_error(await server.post(f"{session}:run", late), 504, "DEADLINE_EXCEEDED", "Timed")
        assert (await server.client.get(session)).json()["state"] == "IDLE"

    with_server(scenario, sessions={"max_step_seconds": 0.05})


def test_a_session_has_a_limit_of_steps_that_wait_or_run():
    async def scenario(server: RestServer) -> None:
        session = await server.create(ENDLESS)
        steps = [asyncio.create_task(server.post(f"{session}:run", RUN_LOOP)) for _ in range(3)]
        done, _ = await asyncio.wait(steps, return_when=asyncio.FIRST_COMPLETED)
        text = "2 steps of the session wait or run, which is the most (sessions.max_running_steps)"
        check_error(done.pop().result(), 429, "RESOURCE_EXHAUSTED", text)
        await server.post(f"{session}:close")
        await asyncio.wait(steps)

    with_server(scenario, sessions={"max_running_steps": 2})


def test_no_step_keeps_a_model_from_loading():
    async def scenario(server: RestServer) -> None:
        session = await server.create(ENDLESS)
        low = RUN_LOOP | {"priority": "low"}
        steps = [asyncio.create_task(server.post(f"{session}:run", low)) for _ in range(3)]
        await server.until_running(session)
        end = time.monotonic() + SECONDS
        while (await server.client.get("/readyz")).status_code != 200:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        answer = await server.post("/v1/models/half_plus_two:predict", {"instances": [1.0]})
        assert answer.json() == {"predictions": [2.5]}
        # The pool of loading has no name by which a session could find it.
        config = {"session_inter_op_thread_pool": [{"global_name": "loading"}]}
        answer = await server.post("/v1/sessions", HALF_PLUS_TWO | {"config": config})
        check_error(answer, 400, "INVALID_ARGUMENT", "There is no thread pool named 'loading'")
        await server.post(f"{session}:close")
        await asyncio.wait(steps)

    with_server(scenario, models=(HALF_MODEL,))


def test_steps_in_the_caller_s_thread_do_not_stop_calls():
    async def scenario(server: RestServer) -> None:
        session, other = await server.create(ENDLESS), await server.create()
        here = RUN_LOOP | {"options": {"inter_op_thread_pool": -1}}
        steps = [asyncio.create_task(server.post(f"{session}:run", here)) for _ in range(12)]
        await server.until_running(session)
        options = {"options": {"feed": ["x:0"], "fetch": ["y:0"]}}
        answer = await asyncio.wait_for(server.post(f"{other}:makeCallable", options), SECONDS)
        assert answer.json() == {"handle": 1}
        step = RUN_Y | {"options": {"inter_op_thread_pool": -1}}
        assert (await asyncio.wait_for(server.post(f"{other}:run", step), SECONDS)).is_success
        await server.post(f"{session}:close")
        await asyncio.wait(steps)

    with_server(scenario)


def test_a_step_that_was_short_so_far_does_not_block_the_event_loop():
    async def scenario(server: RestServer) -> None:
        session = await server.create(ENDLESS)
        for _ in range(10):  # the loop ends at once, because NaN differs from itself
            answer = await server.post(f"{session}:run", RUN_LOOP | {"feeds": {"start": "NaN"}})
            assert answer.is_success
        step = asyncio.create_task(server.post(f"{session}:run", RUN_LOOP))
        await server.until_running(session)
        assert (await server.client.get("/healthz")).is_success
        await server.post(f"{session}:close")
        check_error(await step, 499, "CANCELLED", "Run call was cancelled")

    with_server(scenario)


@pytest.mark.parametrize(
    ("call", "method", "body"),
    [
        ("makeCallable", "make_callable", {"options": {"feed": ["x:0"], "fetch": ["y:0"]}}),
        ("partialRunSetup", "partial_run_setup", {"feeds": ["x:0"], "fetches": ["y:0"]}),
        ("extend", "extend", {"graph_def": ""}),
        ("", "create", HALF_PLUS_TWO),
    ],
)
def test_every_call_has_a_deadline(
    call: str, method: str, body: dict[str, object], monkeypatch: pytest.MonkeyPatch
):
    ended = threading.Event()

    def endless(*_: object) -> None:
        try:
            while True:
                check_task()
        finally:
            ended.set()

    async def scenario(server: RestServer) -> None:
        session = await server.create()
        # Only the endless call has so little time; the others must succeed on a busy machine.
        monkeypatch.setattr(server.services.sessions, "_call_seconds", 0.05)
        monkeypatch.setattr(DirectSession, method, endless)
        answer = await server.post(f"{session}:{call}" if call else "/v1/sessions", body)
        check_error(answer, 504, "DEADLINE_EXCEEDED", "Timed out")
        assert await asyncio.to_thread(ended.wait, SECONDS)  # its thread is free again
        assert (await server.client.get("/v1/sessions")).json()["sessions"][1:] == []

    with_server(scenario)


def test_a_server_whose_threads_are_all_stuck_is_not_ready():
    async def scenario(server: RestServer) -> None:
        pool, release = server.services.priorities.default.pool, threading.Event()
        for _ in range(2):
            begun = threading.Event()

            def stuck(begun: threading.Event = begun) -> None:
                begun.set()
                release.wait(SECONDS)

            pool.schedule(stuck, ended=("the step has ended",))
            assert await asyncio.to_thread(begun.wait, SECONDS)
        assert (await server.pools())["getting_stuck"]["stuck"] == 2
        answer = await server.client.get("/readyz")
        text = "Not ready: all threads of pool getting_stuck are stuck in kernels of ended steps"
        check_error(answer, 503, "UNAVAILABLE", text)
        release.set()
        while (await server.client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0)

    with_server(scenario, **one_thread("getting_stuck"))


@pytest.mark.parametrize(
    ("path", "body", "module", "reader"),
    [
        ("/v1/models/half_plus_two:predict", {"instances": [1]}, models, "parse_document"),
        ("/v1/models/half_plus_two:predict", {"instances": [1]}, models, "predict_inputs"),
        ("/v1/models/half_plus_two:regress", {"examples": [{}]}, models, "examples_tensor"),
        ("/v2/models/half_plus_two/infer", {"inputs": []}, api, "read_infer_request"),
        (":run", {"fetches": []}, JsonSteps, "read_run"),
        (":partialRun", {"fetches": []}, JsonSteps, "read_partial_run"),
        (":runCallable", {"feeds": []}, JsonSteps, "read_run_callable"),
    ],
)
def test_the_deadline_is_kept_while_a_body_is_read(
    path: str, body: dict[str, object], module: object, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def read(*_: object, **__: object) -> None:
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                pause_if_due()
        finally:
            ended.set()

    monkeypatch.setattr(module, reader, read)
    content = json.dumps(body).encode().ljust(1 << 20)

    async def scenario(server: RestServer) -> None:
        target = f"{await server.create()}{path}" if path.startswith(":") else path
        while (await server.client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        headers = {"X-Timeout-Ms": "100"}
        answer = await server.client.post(target, content=content, headers=headers)
        assert answer.status_code == 504 and "Timed out" in answer.json()["error"]
        assert time.monotonic() - began < SECONDS / 2
        assert await asyncio.to_thread(ended.wait, SECONDS / 2)  # the thread is not lost

    with_server(scenario, models=(HALF_MODEL,))
