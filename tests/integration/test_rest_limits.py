"""Limits of answers and sessions, and paths and methods that are nearly right, over REST."""

from __future__ import annotations

import base64

import numpy as np
import pytest

import protos as pb
from runtime.client import Graph, Variable, float32, ops, placeholder
from server.sessions import open_session
from tests.integration.rest_server import (
    HALF_PLUS_TWO,
    RUN_Y,
    RestServer,
    check_error,
    encoded,
    with_server,
)

pytestmark = pytest.mark.usefixtures("both_ways")

PROTOBUF = {"Content-Type": "application/x-protobuf"}


def growing_graph() -> dict[str, str]:
    """`init` and `grow` a variable `v` to `size` floats; `q` is a queue."""
    graph = Graph()
    with graph.as_default():
        variable = Variable(np.zeros(4, np.float32), name="v", validate_shape=False)
        size = placeholder(float32, [None], name="size")
        ops.AssignVariableOp(variable.handle, size, name="grow")
        queue = ops.FIFOQueueV2([float32], name="q")
        ops.QueueEnqueueV2(queue, [size], name="enqueue")
        ops.QueueDequeueV2(queue, [float32], name="dequeue")
    return {"graph_def": encoded(graph.as_graph_def())}


def test_an_answer_that_is_too_large_is_refused_before_it_is_written():
    async def scenario(server: RestServer) -> None:
        session = await server.create(HALF_PLUS_TWO)
        assert (await server.post(f"{session}:run", RUN_Y)).status_code == 200
        large = {"feeds": {"x:0": [1.0] * 26}, "fetches": ["y:0"]}
        text = "The tensors of the answer have 104 bytes; rest.max_answer_bytes is 100"
        answer = await server.post(f"{session}:run", large)
        check_error(answer, 429, "RESOURCE_EXHAUSTED", text)

        options = {"options": {"feed": ["x:0"], "fetch": ["y:0"]}}
        handle = (await server.post(f"{session}:makeCallable", options)).json()["handle"]
        answer = await server.post(
            f"{session}:runCallable", {"handle": handle, "feeds": [[1.0] * 26]}
        )
        check_error(answer, 429, "RESOURCE_EXHAUSTED", text)

        setup = {"feeds": ["x:0"], "fetches": ["y:0"]}
        begun = (await server.post(f"{session}:partialRunSetup", setup)).json()
        answer = await server.post(f"{session}:partialRun", large | begun)
        check_error(answer, 429, "RESOURCE_EXHAUSTED", text)

        request = pb.RunStepRequest(fetch=["y:0"])
        tensor = request.feed.add(name="x:0").tensor
        tensor.dtype = pb.DT_FLOAT
        tensor.tensor_shape.dim.add(size=26)
        tensor.float_val.append(1.0)
        answer = await server.client.post(
            f"{session}:run", content=request.SerializeToString(), headers=PROTOBUF
        )
        check_error(answer, 429, "RESOURCE_EXHAUSTED", text)

    with_server(scenario, rest={"max_answer_bytes": 100})


def test_strings_count_by_their_length():
    graph = Graph()
    with graph.as_default():
        ops.Fill([3], b"x" * 50, name="text")
    body = {"graph_def": encoded(graph.as_graph_def())}

    async def scenario(server: RestServer) -> None:
        session = await server.create(body)
        answer = await server.post(f"{session}:run", {"fetches": ["text:0"]})
        check_error(answer, 429, "RESOURCE_EXHAUSTED", "rest.max_answer_bytes is 150")

    with_server(scenario, rest={"max_answer_bytes": 150})


async def bytes_held(server: RestServer, session: str) -> int:
    held: int = (await server.client.get(session)).json()["bytes_held"]
    return held


@pytest.mark.parametrize("target", ["grow", "enqueue"])
def test_a_session_that_holds_too_much_runs_no_further_step(monkeypatch, target: str):
    monkeypatch.setattr(open_session, "CHECK_SECONDS", 0.0)

    async def scenario(server: RestServer) -> None:
        session = await server.create(growing_graph())
        small, large = ({"feeds": {"size:0": [1.0] * n}, "targets": [target]} for n in (4, 10**5))
        assert (await server.post(f"{session}:run", small)).status_code == 200
        before = await bytes_held(server, session)
        answer = await server.post(f"{session}:run", large)
        if target == "grow":  # a step may exceed the limit by what it assigns
            assert answer.status_code == 200
            held = await bytes_held(server, session)
            assert held - before == 400_000 - 16
            answer = await server.post(f"{session}:run", small)
            text = f"The session holds {held} bytes; sessions.max_session_bytes is 300000"
        else:  # a queue is refused what exceeds it
            text = "sessions.max_session_bytes is 300000"
            assert await bytes_held(server, session) == before
        check_error(answer, 429, "RESOURCE_EXHAUSTED", text)
        assert (await server.post(f"{session}:close")).status_code == 200

    with_server(scenario, sessions={"max_session_bytes": 300_000})


def test_what_is_read_and_what_is_freed():
    async def scenario(server: RestServer) -> None:
        session = await server.create(growing_graph())
        read = {"fetches": ["dequeue:0", "v/Read/ReadVariableOp:0"]}
        held = []
        for _ in range(2):  # the first time also compiles the steps
            for feeds, target in (([1.0] * 20, "grow"), ([1.0] * 400, "enqueue")):
                step = {"feeds": {"size:0": feeds}, "targets": [target]}
                assert (await server.post(f"{session}:run", step)).status_code == 200
                held.append(await bytes_held(server, session))
            answer = await server.post(f"{session}:run", read)
            assert answer.status_code == 200, answer.text
            held.append(await bytes_held(server, session))
        _, _, empty, grown, full, again = held
        assert grown == again == empty
        assert 1600 <= full - empty <= 2000

    with_server(scenario)


def test_a_slash_at_the_end_of_the_sessions():
    async def scenario(server: RestServer) -> None:
        answer = await server.client.get("/v1/sessions/")
        assert (answer.status_code, answer.json()) == (200, {"sessions": []})
        assert (await server.post("/v1/sessions/", HALF_PLUS_TWO)).status_code == 201

    with_server(scenario)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/sessions", "GET, POST"),
        ("PATCH", "{session}", "DELETE, GET"),
        ("GET", "{session}:run", "POST"),
        ("POST", "/v1/threadpools", "GET"),
    ],
)
def test_a_wrong_method_is_told_all_that_the_path_takes(method: str, path: str, allowed: str):
    async def scenario(server: RestServer) -> None:
        session = await server.create(HALF_PLUS_TWO)
        answer = await server.client.request(method, path.format(session=session))
        check_error(answer, 405, "UNIMPLEMENTED", f"the path takes {allowed}")
        assert answer.headers["allow"] == allowed

    with_server(scenario)


def test_an_error_that_quotes_bytes_of_the_graph_is_text():
    graph = pb.GraphDef()
    node = graph.node.add(name="bad", op="TPUReplicateMetadata")
    node.attr["num_replicas"].i = 1
    node.attr["topology"].s = b"caf\xe9 \xff"
    body = {"graph_def": base64.b64encode(graph.SerializeToString()).decode()}

    async def scenario(server: RestServer) -> None:
        session = await server.create(body)
        answer = await server.post(f"{session}:run", {"targets": ["bad"]})
        check_error(answer, 400, "INVALID_ARGUMENT", r"caf\xe9 \xff")

    with_server(scenario)
