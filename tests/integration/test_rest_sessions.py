"""Sessions over REST, by the wire's rules: real services, the application in this process."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import re
import zlib
from collections.abc import AsyncIterator

import numpy as np
import pytest

import protos as pb
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from server.rest.session_docs import EXAMPLES, half_plus_two_graph, square_of_y_graph
from tests.integration.rest_server import (
    HALF_PLUS_TWO,
    RUN_Y,
    RestServer,
    check_error,
    encoded,
    endless_graph,
    with_server,
)

pytestmark = pytest.mark.usefixtures("both_ways")

PROTOBUF = {"Content-Type": "application/x-protobuf"}
RUN_LOOP = {"feeds": {"start": 1.0}, "fetches": ["loop"]}


async def completed(server: RestServer, pool: str) -> int:
    """How many tasks the pool has done; an answer comes after its step was counted."""
    return (await server.pools())[pool]["completed"]


def test_create_run_extend_run_close_then_410():
    async def scenario(server: RestServer) -> None:
        answer = await server.post("/v1/sessions", HALF_PLUS_TWO | {"name": "mine"})
        assert answer.status_code == 201
        body = answer.json()
        session = answer.headers["location"]
        assert session == f"/v1/sessions/{body['session']}"
        assert re.fullmatch(r"[A-Za-z0-9_-]{22,}", body["session"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["expires_at"])
        assert body["graph_version"] == 0
        assert body["thread_pools"] == ["online", "background"]
        assert body["devices"] == [
            {
                "name": "/job:localhost/replica:0/task:0/device:CPU:0",
                "device_type": "CPU",
                "memory_limit": 268435456,
            }
        ]
        before = await completed(server, "background")
        answer = await server.post(f"{session}:run", RUN_Y | {"priority": "low"})
        y = {"dtype": "float32", "shape": [3], "data": [2.5, 3.0, 4.5]}
        assert answer.json() == {"outputs": {"y:0": y}}
        assert await completed(server, "background") == before + 1

        graph = encoded(square_of_y_graph())
        answer = await server.post(f"{session}:extend", {"graph_def": graph, "graph_version": 0})
        assert answer.json() == {"graph_version": 1}
        answer = await server.post(f"{session}:run", {"feeds": {"x": 1}, "fetches": ["z", "y:0"]})
        outputs = answer.json()["outputs"]
        assert list(outputs) == ["z", "y:0"]
        assert outputs["z"] == {"dtype": "float32", "shape": [], "data": 6.25}

        listed = (await server.client.get("/v1/sessions")).json()["sessions"]
        described = (await server.client.get(session)).json()
        assert listed == [described | {"session": f"{described['session'][:4]}…"}]  # masked
        assert (listed[0]["name"], listed[0]["steps"], listed[0]["model"]) == ("mine", 2, None)
        assert listed[0]["graph_version"] == 1 and not listed[0]["shared_weights"]

        assert (await server.post(f"{session}:close")).json() == {}
        assert (await server.client.delete(session)).status_code == 200
        for verb in ("run", "extend", "keepAlive", "cancel"):
            body = {"extend": {"graph_def": ""}, "cancel": {"request_id": "x"}}.get(verb, {})
            answer = await server.post(f"{session}:{verb}", body)
            check_error(answer, 410, "CANCELLED", "Session has been closed.")
        for path in ("", "/graph", "/devices"):
            answer = await server.client.get(session + path)
            check_error(answer, 410, "CANCELLED", "Session has been closed.")
        assert (await server.client.get("/v1/sessions")).json() == {"sessions": []}

    with_server(scenario)


@pytest.mark.parametrize("verb", ["run", "partialRun", "runCallable"])
def test_a_session_that_is_closed_while_a_body_arrives_is_gone(verb: str):
    async def scenario(server: RestServer) -> None:
        session = await server.create(HALF_PLUS_TWO)

        async def body() -> AsyncIterator[bytes]:
            yield b"{"
            await server.post(f"{session}:close")
            yield b"}"

        answer = await server.client.post(f"{session}:{verb}", content=body())
        check_error(answer, 410, "CANCELLED", "Session has been closed.")

    with_server(scenario)


def test_the_first_of_two_headers_of_a_name_counts():
    async def scenario(server: RestServer) -> None:
        session = await server.create(HALF_PLUS_TWO)
        headers = [("X-Priority", "low"), ("X-Priority", "urgent")]
        answer = await server.post(f"{session}:run", RUN_Y, headers=headers)
        assert answer.status_code == 200, answer.text
        answer = await server.post(f"{session}:run", RUN_Y, headers=headers[::-1])
        check_error(answer, 400, "INVALID_ARGUMENT", "Unknown priority 'urgent'")

    with_server(scenario)


def test_the_examples_of_the_docs_work():
    async def scenario(server: RestServer) -> None:
        session = await server.create(EXAMPLES["create_session"])
        for call in ("run_session:run", "extend_session:extend", "keep_session_alive:keepAlive",
                     "make_callable:makeCallable", "run_callable:runCallable",
                     "release_callable:releaseCallable"):  # fmt: skip
            name, verb = call.split(":")
            answer = await server.post(f"{session}:{verb}", EXAMPLES[name])
            assert answer.status_code == 200, answer.text
        schema = (await server.client.get("/openapi.json")).json()
        documented = schema["paths"]["/v1/sessions/{session_id}:run"]["post"]
        example = documented["requestBody"]["content"]["application/json"]["example"]
        assert example == EXAMPLES["run_session"]

    with_server(scenario)


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", ":run", 405, "Method not allowed here; the path takes POST"),
        ("PUT", ":extend", 405, "Method not allowed here; the path takes POST"),
        ("PATCH", "", 405, "Method not allowed here"),
        ("POST", "/graph", 405, "Method not allowed here; the path takes GET"),
        ("POST", ":walk", 404, "No such path"),
        ("GET", ":graph", 404, "No such path"),
        ("GET", "/nodes", 404, "No such path"),
    ],
)
def test_wrong_methods_and_unknown_verbs(method: str, path: str, status: int, text: str):
    async def scenario(server: RestServer) -> None:
        session = await server.create(HALF_PLUS_TWO)
        answer = await server.client.request(method, session + path)
        check_error(answer, status, "UNIMPLEMENTED" if status == 405 else "NOT_FOUND", text)

    with_server(scenario)


def test_the_page_of_docs_has_every_call_and_loads_nothing():
    async def scenario(server: RestServer) -> None:
        answer = await server.client.get("/docs")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        schema = (await server.client.get("/openapi.json")).json()
        for path in schema["paths"]:
            assert f"<code>{path}</code>" in answer.text
        assert not re.search(r"<script|<link|https?://", answer.text)

    with_server(scenario)


def test_an_empty_session_is_created_by_its_first_extend():
    async def scenario(server: RestServer) -> None:
        session = await server.create({})
        answer = await server.post(f"{session}:run", RUN_Y)
        check_error(answer, 400, "INVALID_ARGUMENT", "Session was not created with a graph")
        answer = await server.post(f"{session}:extend", HALF_PLUS_TWO)
        assert answer.json() == {"graph_version": 0}
        graph = (await server.client.get(f"{session}/graph")).json()
        assert graph["graph_version"] == 0
        back = pb.GraphDef.FromString(base64.b64decode(graph["graph_def"]))
        assert [node.name for node in back.node] == ["x", "half", "two", "half_x", "y"]
        assert (await server.post(f"{session}:run", RUN_Y)).status_code == 200

    with_server(scenario)


def test_a_meta_graph_opens_a_session():
    async def scenario(server: RestServer) -> None:
        meta = pb.MetaGraphDef(graph_def=half_plus_two_graph())
        session = await server.create({"meta_graph_def": encoded(meta)})
        assert (await server.post(f"{session}:run", RUN_Y)).status_code == 200

    with_server(scenario)


@pytest.mark.parametrize(
    ("body", "status", "code", "text"),
    [
        ({"graph_def": "", "meta_graph_def": ""}, 400, "INVALID_ARGUMENT",
         "Expected at most one of model, export_dir, graph_def, meta_graph_def; "
         "got graph_def, meta_graph_def"),
        ({"model": "m", "graph_def": ""}, 400, "INVALID_ARGUMENT", "got model, graph_def"),
        ({"model": "m", "version": 1, "label": "l"}, 400, "INVALID_ARGUMENT",
         "at most one of version and label"),
        ({"version": 1}, 400, "INVALID_ARGUMENT", "version needs a model"),
        ({"model": "m"}, 404, "NOT_FOUND", "Servable not found for request: Latest(m)"),
        ({"model": "m", "version": 3}, 404, "NOT_FOUND", "Specific(m, 3)"),
        ({"model": "m", "label": "l"}, 400, "INVALID_ARGUMENT", "Unrecognized servable version"),
        ({"grpah_def": ""}, 400, "INVALID_ARGUMENT", "Unknown key: grpah_def; known keys are"),
        ({"graph_def": "!"}, 400, "INVALID_ARGUMENT", "graph_def: b64 is not valid base64"),
        ({"graph_def": "/////w=="}, 400, "INVALID_ARGUMENT", "not a serialized GraphDef"),
        ({"graph_def": encoded(pb.GraphDef(node=[pb.NodeDef(name="n", op="NoSuchOp")]))}, 404,
         "NOT_FOUND", "NoSuchOp"),
        ({"lease_seconds": 0}, 400, "INVALID_ARGUMENT", "lease_seconds must be more than 0"),
        ({"lease_seconds": 86401}, 400, "INVALID_ARGUMENT", "at most 86400, got 86401"),
        ({"lease_seconds": "1"}, 400, "INVALID_ARGUMENT", "lease_seconds"),
        ({"config": {"no_such_field": 1}}, 400, "INVALID_ARGUMENT", "config is not a ConfigProto"),
        ({"config": {"session_inter_op_thread_pool": [{"global_name": "online",
          "num_threads": 3}]}}, 400, "INVALID_ARGUMENT",
         "Pool online configured previously with num_threads=0; "
         "cannot re-configure with num_threads=3"),
        ({"config": {"session_inter_op_thread_pool": [{"global_name": "new"}]}}, 400,
         "INVALID_ARGUMENT", "There is no thread pool named 'new'"),
        ({"config": {"session_inter_op_thread_pool": [{"num_threads": 9}]}}, 400,
         "INVALID_ARGUMENT", "asks for 9 threads; a session may have 8"),
        ({"config": {"device_count": {"CPU": 1000}}}, 400, "INVALID_ARGUMENT", "at most 64"),
        ({"config": {"device_count": {"CPU": -1}}}, 404, "NOT_FOUND", "No CPU devices"),
    ],
)  # fmt: skip
def test_create_refuses_and_leaves_no_session(body, status, code, text):
    async def scenario(server: RestServer) -> None:
        check_error(await server.post("/v1/sessions", body), status, code, text)
        assert (await server.client.get("/v1/sessions")).json() == {"sessions": []}

    with_server(scenario)


@pytest.mark.parametrize(
    ("body", "status", "code", "text"),
    [
        ({}, 400, "INVALID_ARGUMENT", "Must specify at least one target to fetch or execute."),
        (RUN_Y | {"fetch": ["y"]}, 400, "INVALID_ARGUMENT", "Unknown keys: fetch; known keys are"),
        ({"feeds": {"x": 1, "x:0": 1}, "fetches": ["y"]}, 400, "INVALID_ARGUMENT",
         'Endpoint "x:0" fed more than once.'),
        ({"feeds": {"x": 1}, "fetches": ["x:0"]}, 400, "INVALID_ARGUMENT",
         "x:0 is both fed and fetched."),
        ({"feeds": {"q": 1}, "fetches": ["y"]}, 400, "INVALID_ARGUMENT", "q:0"),
        ({"feeds": {"x": 1}, "fetches": ["q"]}, 400, "INVALID_ARGUMENT", "q:0"),
        ({"feeds": {"x": 1}, "targets": ["q"]}, 404, "NOT_FOUND",
         "PruneForTargets: Some target nodes not found: q"),
        ({"fetches": ["y"]}, 400, "INVALID_ARGUMENT",
         "You must feed a value for placeholder tensor 'x' with dtype float"),
        ({"feeds": {"x": [True]}, "fetches": ["y"]}, 400, "INVALID_ARGUMENT",
         "Tensor x: Expected a number at element 0, got true or false"),
        ({"feeds": {"x": {"dtype": "int32", "shape": [], "data": 1}}, "fetches": ["y"]}, 400,
         "INVALID_ARGUMENT", "Expects arg[0] to be float but int32 is provided"),
        ({"feeds": [], "fetches": ["y"]}, 400, "INVALID_ARGUMENT", "feeds must be an object"),
        ({"feeds": {}, "fetches": "y"}, 400, "INVALID_ARGUMENT", "fetches must be a list"),
        (RUN_Y | {"priority": "urgent"}, 400, "INVALID_ARGUMENT",
         "Unknown priority 'urgent'; known are normal, low"),
        (RUN_Y | {"priority": 1}, 400, "INVALID_ARGUMENT", "priority must be a string"),
        (RUN_Y | {"priority": "low", "options": {"inter_op_thread_pool": 0}}, 400,
         "INVALID_ARGUMENT", "either priority or options.inter_op_thread_pool"),
        (RUN_Y | {"options": {"inter_op_thread_pool": 2}}, 400, "INVALID_ARGUMENT",
         "Invalid inter_op_thread_pool: 2"),
        (RUN_Y | {"options": {"timeout": 2}}, 400, "INVALID_ARGUMENT", "options is not a RunOpt"),
        (RUN_Y | {"options": 3}, 400, "INVALID_ARGUMENT", "options must be an object"),
    ],
)  # fmt: skip
def test_run_refuses(body, status, code, text):
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        check_error(await server.post(f"{session}:run", body), status, code, text)
        assert (await server.post(f"{session}:run", RUN_Y)).status_code == 200

    with_server(scenario)


@pytest.mark.parametrize("shape", [[2, 4], [3], []])
def test_feeds_are_checked_against_the_placeholder_s_shape(shape):
    graph = half_plus_two_graph()
    graph.node[0].attr["shape"].shape.dim.add(size=-1)
    graph.node[0].attr["shape"].shape.dim.add(size=3)

    async def scenario(server: RestServer) -> None:
        session = await server.create({"graph_def": encoded(graph)})
        value = {"dtype": "float32", "shape": shape, "data": [1] * int(np.prod(shape))}
        body = {"feeds": {"x:0": value}, "fetches": ["y"]}
        text = (
            f"Cannot feed value of shape {tuple(shape)} for Tensor x:0, which has shape (None, 3)"
        )
        check_error(await server.post(f"{session}:run", body), 400, "INVALID_ARGUMENT", text)

    with_server(scenario)


def test_extend_is_an_optimistic_lock_and_atomic():
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        good = encoded(square_of_y_graph())
        answer = await server.post(f"{session}:extend", {"graph_def": good, "graph_version": 99})
        check_error(answer, 409, "ABORTED", "Current version is 0 but caller expected 99.")
        answer = await server.post(f"{session}:extend", HALF_PLUS_TWO)
        check_error(answer, 400, "INVALID_ARGUMENT", "which was created by a previous call")
        assert (await server.post(f"{session}:extend", {"graph_def": good})).status_code == 200

    with_server(scenario)


def test_unknown_ids_are_404_and_wrong_methods_are_told():
    async def scenario(server: RestServer) -> None:
        for answer in (
            await server.post("/v1/sessions/nope:run", RUN_Y),
            await server.post("/v1/sessions/nope:close"),
            await server.client.get("/v1/sessions/nope"),
        ):
            check_error(answer, 404, "NOT_FOUND", "Session nope is not found.")
        check_error(await server.client.get("/nope"), 404, "NOT_FOUND", "No such path")
        for path in ("/healthz/", "/v1/threadpools/", "/v1"):  # no redirection
            check_error(await server.client.get(path), 404, "NOT_FOUND", "No such path")

    with_server(scenario)


def test_too_many_sessions_are_429_with_retry_after():
    async def scenario(server: RestServer) -> None:
        await server.create({"lease_seconds": 7})
        answer = await server.post("/v1/sessions", {})
        check_error(answer, 429, "RESOURCE_EXHAUSTED", "1 sessions are open, which is the most")
        assert 1 <= int(answer.headers["retry-after"]) <= 7

    with_server(scenario, sessions={"max_open": 1})


def test_a_deadline_answers_504_and_the_session_lives_on():
    async def scenario(server: RestServer) -> None:
        session = await server.create({"graph_def": encoded(endless_graph())})
        late = RUN_LOOP | {"options": {"timeout_in_ms": 30}}
        answer = await server.post(f"{session}:run", late)
        check_error(answer, 504, "DEADLINE_EXCEEDED", "Timed out waiting for notification")
        answer = await server.post(f"{session}:run", RUN_LOOP, headers={"X-Timeout-Ms": "30"})
        check_error(answer, 504, "DEADLINE_EXCEEDED", "Timed out waiting for notification")
        answer = await server.post(f"{session}:run", RUN_LOOP, headers={"X-Timeout-Ms": "soon"})
        check_error(answer, 400, "INVALID_ARGUMENT", "X-Timeout-Ms must be a positive integer")
        assert (await server.post(f"{session}:extend", HALF_PLUS_TWO)).status_code == 200
        assert (await server.post(f"{session}:run", RUN_Y)).status_code == 200

    with_server(scenario)


def test_cancel_ends_one_step_by_its_request_id():
    async def scenario(server: RestServer) -> None:
        session = await server.create({"graph_def": encoded(endless_graph())})
        step = asyncio.create_task(
            server.post(f"{session}:run", RUN_LOOP, headers={"X-Request-Id": "step-1"})
        )
        await server.until_running(session)
        answer = await server.post(f"{session}:cancel", {"request_id": "step-2"})
        check_error(answer, 404, "NOT_FOUND", "runs no step of request 'step-2'")
        assert (await server.post(f"{session}:cancel", {"request_id": "step-1"})).json() == {}
        check_error(await step, 499, "CANCELLED", "Step was cancelled by request.")
        assert (await server.client.get(session)).json()["state"] == "IDLE"

    with_server(scenario)


def test_close_cancels_running_steps():
    async def scenario(server: RestServer) -> None:
        session = await server.create({"graph_def": encoded(endless_graph())})
        step = asyncio.create_task(server.post(f"{session}:run", RUN_LOOP))
        await server.until_running(session)
        assert (await server.post(f"{session}:close")).status_code == 200
        check_error(await step, 499, "CANCELLED", "Run call was cancelled")

    with_server(scenario)


def test_a_full_queue_is_429():
    pools = [{"name": "narrow", "num_threads": 1, "queue_size": 1}]

    async def scenario(server: RestServer) -> None:
        session = await server.create({"graph_def": encoded(endless_graph())})
        steps = [asyncio.create_task(server.post(f"{session}:run", RUN_LOOP)) for _ in range(3)]
        done, _ = await asyncio.wait(steps, return_when=asyncio.FIRST_COMPLETED)
        check_error(done.pop().result(), 429, "RESOURCE_EXHAUSTED", "queue of thread pool narrow")
        await server.post(f"{session}:close")
        await asyncio.wait(steps)

    with_server(
        scenario,
        thread_pools=pools,
        priorities={"normal": "narrow"},
        load_thread_pool="narrow",
    )


def test_priority_by_header_and_pools_of_the_session_s_own():
    config = {"session_inter_op_thread_pool": [{"num_threads": 1}, {"global_name": "background",
              "num_threads": 1}]}  # fmt: skip

    async def scenario(server: RestServer) -> None:
        answer = await server.post("/v1/sessions", HALF_PLUS_TWO | {"config": config})
        session, own = answer.headers["location"], f"{answer.json()['session']}/Compute0"
        assert answer.json()["thread_pools"] == [own, "background"]
        own = f"{own[:4]}…/Compute0"  # in the list of all pools the id is masked

        low = await completed(server, "background")
        await server.post(f"{session}:run", RUN_Y, headers={"X-Priority": "low"})
        assert await completed(server, "background") == low + 1
        header = {"X-Priority": "low"}
        await server.post(f"{session}:run", RUN_Y | {"priority": "normal"}, headers=header)
        await server.post(f"{session}:run", RUN_Y | {"options": {"inter_op_thread_pool": 0}})
        assert await completed(server, own) == 1
        await server.post(f"{session}:run", RUN_Y | {"options": {"inter_op_thread_pool": 1}})
        assert await completed(server, "background") == low + 2  # the body won over the header
        answer = await server.post(
            f"{session}:run", RUN_Y | {"options": {"inter_op_thread_pool": -1}}
        )
        assert answer.status_code == 200
        await server.post(f"{session}:close")
        assert own not in await server.pools()

    with_server(scenario)


def test_answers_as_bytes_and_with_metadata():
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        answer = await server.post(f"{session}:run?encoding=b64", RUN_Y)
        assert answer.json()["outputs"]["y:0"] == {
            "dtype": "float32", "shape": [3], "b64": "AAAgQAAAQEAAAJBA",
        }  # fmt: skip
        answer = await server.post(f"{session}:run?encoding=hex", RUN_Y)
        check_error(answer, 400, "INVALID_ARGUMENT", "encoding must be one of json, b64")
        answer = await server.post(
            f"{session}:run", RUN_Y | {"options": {"trace_level": "FULL_TRACE"}}
        )
        (device,) = answer.json()["run_metadata"]["step_stats"]["dev_stats"]
        assert "y" in {node["node_name"] for node in device["node_stats"]}

    with_server(scenario)


@pytest.mark.parametrize(
    ("policy", "written"),
    [("string", b'"NaN"'), ("token", b"NaN"), ("null", b"null")],
)
def test_non_finite_answers(policy, written):
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        answer = await server.client.post(
            f"{session}:run", content=b'{"feeds": {"x": [NaN, "NaN"]}, "fetches": ["y"]}'
        )
        assert b'"data":[%s,%s]' % (written, written) in answer.content

    with_server(scenario, rest={"non_finite": policy})


def test_protobuf_bodies():
    async def scenario(server: RestServer) -> None:
        async def call(path: str, message, kind):
            answer = await server.client.post(
                path, content=message.SerializeToString(), headers=PROTOBUF
            )
            assert answer.headers["content-type"] == PROTOBUF["Content-Type"], answer.text
            return kind.FromString(answer.content)

        request = pb.CreateSessionRequest(graph_def=half_plus_two_graph())
        created = await call("/v1/sessions", request, pb.CreateSessionResponse)
        session = f"/v1/sessions/{created.session_handle}"
        x = tensor_to_proto(np.array([1, 2], np.float32))
        step = pb.RunStepRequest(feed=[pb.NamedTensorProto(name="x", tensor=x)], fetch=["y:0"])
        answer = await call(f"{session}:run", step, pb.RunStepResponse)
        assert [tensor.name for tensor in answer.tensor] == ["y:0"]
        np.testing.assert_array_equal(tensor_from_proto(answer.tensor[0].tensor), [2.5, 3])
        extend = pb.ExtendSessionRequest(graph_def=square_of_y_graph(), current_graph_version=0)
        extended = await call(f"{session}:extend", extend, pb.ExtendSessionResponse)
        assert extended.new_graph_version == 1
        await call(f"{session}:close", pb.CloseSessionRequest(), pb.CloseSessionResponse)
        answer = await server.client.post(f"{session}:run", content=b"\xff", headers=PROTOBUF)
        check_error(answer, 410, "CANCELLED", "Session has been closed.")
        answer = await server.client.post("/v1/sessions", content=b"\xff", headers=PROTOBUF)
        check_error(answer, 400, "INVALID_ARGUMENT", "not a serialized CreateSessionRequest")

    with_server(scenario)


def test_oversize_bodies_are_413_and_the_server_goes_on():
    async def scenario(server: RestServer) -> None:
        answer = await server.client.post("/v1/sessions", content=b"x" * 2000)
        check_error(answer, 413, "INVALID_ARGUMENT", "2000 bytes; rest.max_body_bytes is 1000")

        async def chunks():
            for _ in range(3):
                yield b"x" * 500

        answer = await server.client.post("/v1/sessions", content=chunks())
        check_error(answer, 413, "INVALID_ARGUMENT", "rest.max_body_bytes is 1000")
        assert (await server.post("/v1/sessions", {})).status_code == 201

    with_server(scenario, rest={"max_body_bytes": 1000})


@pytest.mark.parametrize("encoding", ["json", "b64"])
def test_large_tensors_go_through(encoding):
    x = np.arange(200_000, dtype=np.float32)
    data = {"data": x.tolist()}
    if encoding == "b64":
        data = {"b64": base64.b64encode(x.tobytes()).decode()}

    async def scenario(server: RestServer) -> None:
        session = await server.create()
        feed = {"dtype": "float32", "shape": [2, 100_000]} | data
        answer = await server.post(
            f"{session}:run?encoding={encoding}", {"feeds": {"x": feed}, "fetches": ["y"]}
        )
        written = answer.json()["outputs"]["y"]
        assert written["shape"] == [2, 100_000]
        if encoding == "b64":
            y = np.frombuffer(base64.b64decode(written["b64"]), np.float32)
        else:
            y = np.array(written["data"], np.float32).ravel()
        np.testing.assert_array_equal(y, x / 2 + 2)

    with_server(scenario)


def test_bodies_may_be_compressed_but_not_bombs():
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        headers = {"Content-Encoding": "gzip"}
        body = gzip.compress(json.dumps(RUN_Y).encode())
        answer = await server.client.post(f"{session}:run", content=body, headers=headers)
        assert answer.json()["outputs"]["y:0"]["data"] == [2.5, 3.0, 4.5]
        bomb = gzip.compress(b" " * 2001)
        answer = await server.client.post("/v1/sessions", content=bomb, headers=headers)
        check_error(answer, 413, "INVALID_ARGUMENT", "inflates to more than 2000 bytes")
        headers = {"Content-Encoding": "deflate"}
        body = zlib.compress(json.dumps(RUN_Y).encode())
        answer = await server.client.post(f"{session}:run", content=body, headers=headers)
        assert answer.json()["outputs"]["y:0"]["data"] == [2.5, 3.0, 4.5]
        headers = {"Content-Encoding": "br"}
        answer = await server.client.post(f"{session}:run", content=b"x", headers=headers)
        check_error(answer, 400, "INVALID_ARGUMENT", "must be gzip, deflate or identity, got 'br'")

    with_server(scenario, rest={"max_body_bytes": 2000})


def test_files_are_closed_to_graphs_from_the_wire(tmp_path):
    graph = pb.GraphDef()
    name = graph.node.add(name="name", op="Const")
    name.attr["dtype"].type = pb.DT_STRING
    secret = tmp_path / "secret"
    secret.write_text("secret")
    value = np.array(str(secret).encode(), object)
    name.attr["value"].tensor.CopyFrom(tensor_to_proto(value))
    graph.node.add(name="content", op="ReadFile", input=["name"])
    body = {"graph_def": encoded(graph)}

    async def closed(server: RestServer) -> None:
        session = await server.create(body)
        answer = await server.post(f"{session}:run", {"fetches": ["content"]})
        text = "may read files in: no folder (sessions.allowed_paths)"
        check_error(answer, 403, "PERMISSION_DENIED", text)

    async def allowed(server: RestServer) -> None:
        session = await server.create(body)
        answer = await server.post(f"{session}:run", {"fetches": ["content"]})
        assert answer.json()["outputs"]["content"]["data"] == "secret"

    with_server(closed)
    with_server(allowed, sessions={"allowed_paths": (str(tmp_path),)})


def test_unexpected_errors_are_500_with_a_body(monkeypatch, caplog):
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        monkeypatch.setattr(server.services.sessions, "keep_alive", lambda *_: 1 / 0)
        answer = await server.post(f"{session}:keepAlive")
        check_error(answer, 500, "INTERNAL", "Internal error (ZeroDivisionError)")

    with_server(scenario)
    assert "division by zero" in caplog.text


def test_an_attribute_of_another_kind_is_refused():
    graph = half_plus_two_graph()
    graph.node[-1].attr["T"].list.type.append(pb.DT_FLOAT)

    async def scenario(server: RestServer) -> None:
        answer = await server.post("/v1/sessions", {"graph_def": encoded(graph)})
        text = "AttrValue had value with type 'list(type)' when 'type' expected"
        check_error(answer, 400, "INVALID_ARGUMENT", text)

    with_server(scenario)


def test_sessions_can_be_switched_off():
    async def scenario(server: RestServer) -> None:
        answer = await server.post("/v1/sessions", {})
        check_error(answer, 403, "PERMISSION_DENIED", "sessions.enabled: false")

    with_server(scenario, sessions={"enabled": False})
