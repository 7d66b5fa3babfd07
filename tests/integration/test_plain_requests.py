"""Small requests over a connection are answered without the application, and as it answers them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import numpy as np
import pytest

import protos as pb
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.sessions.direct import short_step
from server.lifecycle import Phase
from server.middleware import RequestMiddleware
from tests.integration.rest_server import RUN_Y, RestServer, Ways, encoded, rest_server

MODELS = [{"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}]
PREDICT, ROWS = "/v1/models/half_plus_two:predict", {"instances": [1.0, 2.0, 5.0]}


class Calls:
    """How often the application was called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        call = RequestMiddleware.__call__

        async def counted(
            middleware: RequestMiddleware, scope: Any, receive: Any, send: Any
        ) -> None:
            self.count += 1
            await call(middleware, scope, receive, send)

        monkeypatch.setattr(RequestMiddleware, "__call__", counted)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    monkeypatch.setattr(Ways, "on_a_port", True)
    monkeypatch.setattr(short_step, "INLINE_SECONDS", 1e9)
    return Calls(monkeypatch)


@contextlib.asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[RestServer]:
    async with rest_server(models=MODELS, **settings) as server:
        await asyncio.to_thread(server.services.models.wait_until_settled, 30)
        yield server


def same_but_for_id(one: httpx.Response, other: httpx.Response) -> bool:
    """Whether two responses have the same status, headers and body, the ids and dates apart."""
    ignored = {"x-request-id", "date"}

    def parts(response: httpx.Response) -> Any:
        headers = [each for each in response.headers.items() if each[0] not in ignored]
        return response.status_code, sorted(headers), response.content

    return parts(one) == parts(other) and set(one.headers) == set(other.headers)


def test_predict_and_run_are_answered_at_once_and_counted(calls: Calls) -> None:
    async def scenario() -> None:
        async with serving() as server:
            session = await server.create()
            for path, body, api in (
                (PREDICT, ROWS, "predict"),
                (f"{session}:run", RUN_Y, "run_session"),
            ):
                first = await server.post(path, body)
                calls.count = 0
                others = [await server.post(path, body) for _ in range(3)]
                assert first.status_code == 200 and calls.count == 0
                assert all(same_but_for_id(first, other) for other in others)
                assert len({other.headers["x-request-id"] for other in others}) == 3
                metrics = (await server.client.get("/monitoring/prometheus/metrics")).text
                assert f'runstep_requests_total{{api="{api}",status="200"}} 4.0' in metrics
            assert 'runstep_steps_total{code="OK",priority="normal"} 8.0' in metrics
            assert 'request_count{model_name="half_plus_two",status="OK"} 4\n' in metrics
            described = (await server.client.get(session)).json()
            assert described["steps"] == 4

    asyncio.run(scenario())


def test_a_draining_server_and_a_closed_session_answer_as_ever(calls: Calls) -> None:
    async def scenario() -> None:
        async with serving() as server:
            session = await server.create()
            for _ in range(2):
                assert (await server.post(f"{session}:run", RUN_Y)).status_code == 200
                assert (await server.post(PREDICT, ROWS)).status_code == 200
            await server.post(f"{session}:close")
            assert (await server.post(f"{session}:run", RUN_Y)).status_code == 410
            server.services.lifecycle.phase = Phase.DRAINING
            assert (await server.post(PREDICT, ROWS)).status_code == 503

    asyncio.run(scenario())


def test_the_order_of_errors_is_the_usual_one(calls: Calls) -> None:
    """A request that fails before its step is declined, so the application reports the fault."""

    async def scenario() -> None:
        async with serving() as server:
            session = await server.create()
            for _ in range(2):
                await server.post(f"{session}:run", RUN_Y)
                await server.post(PREDICT, ROWS)
            for path, body, status in (
                (PREDICT, {"instances": ["x"]}, 400),
                (PREDICT, {"instances": [1], "signature_name": "none"}, 400),
                ("/v1/models/none:predict", ROWS, 404),
                (f"{PREDICT[:-8]}/labels/none:predict", ROWS, 400),
                (f"{session}:run", RUN_Y | {"fetches": ["none"]}, 400),
                (f"{session}:run", {"feeds": {"x:0": ["x"]}, "fetches": ["y:0"]}, 400),
                ("/v1/sessions/none:run", RUN_Y, 404),
            ):
                response = await server.post(path, body)
                assert response.status_code == status, response.text
                assert response.json()["request_id"] == response.headers["x-request-id"]

    asyncio.run(scenario())


def checking_graph() -> pb.GraphDef:
    """`y` fails unless x is finite; `s` is the string constant "a"."""
    graph = pb.GraphDef()
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = DataType.FLOAT
    y = graph.node.add(name="y", op="CheckNumerics", input=["x"])
    y.attr["T"].type = DataType.FLOAT
    y.attr["message"].s = b"not finite"
    s = graph.node.add(name="s", op="Const")
    s.attr["dtype"].type = DataType.STRING
    s.attr["value"].tensor.CopyFrom(tensor_to_proto(np.array(b"a", object)))
    return graph


def test_a_step_that_fails_at_once_answers_with_its_error(calls: Calls) -> None:
    async def scenario() -> None:
        async with serving() as server:
            session = await server.create({"graph_def": encoded(checking_graph())})
            run = {"feeds": {"x": [1.0]}, "fetches": ["y"]}
            for _ in range(2):
                assert (await server.post(f"{session}:run", run)).status_code == 200
            bad = run | {"feeds": {"x": [1e300]}}
            calls.count = 0
            at_once = await server.post(f"{session}:run", bad)
            assert calls.count == 0
            usual = await server.post(f"{session}:run", bad | {"priority": "normal"})
            assert calls.count == 1
            assert at_once.status_code == usual.status_code == 400
            assert at_once.json()["error"] == usual.json()["error"]
            assert "not finite : Tensor had Inf" in at_once.json()["error"]
            assert at_once.json()["request_id"] == at_once.headers["x-request-id"]

    asyncio.run(scenario())


def test_a_large_answer_of_a_short_step_is_written_by_the_application(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serving() as server:
            session = await server.create()
            for path, body in ((PREDICT, ROWS), (f"{session}:run", RUN_Y)):
                usual = await server.post(path, body)
                calls.count = 0
                with monkeypatch.context() as changed:
                    changed.setattr("server.steps.step_runner.OFF_LOOP_BYTES", 8)
                    late = await server.post(path, body)
                assert calls.count == 1
                assert same_but_for_id(late, usual)

    asyncio.run(scenario())


INFER = "/v2/models/half_plus_two/infer"
X = {"name": "x", "shape": [3], "datatype": "FP32", "data": [1.0, 2.0, 5.0]}
# Another header than the usual ones makes a request not plain.
UNUSUAL = {"x-unusual": "1"}


def infer_body(*binary: bytes, **header: Any) -> dict[str, Any]:
    """The content and the headers of an inference request, with binary data if there is any."""
    head = json.dumps({"inputs": [X]} | header).encode()
    length = {"inference-header-content-length": str(len(head))} if binary else {}
    return {"content": head + b"".join(binary), "headers": length}


def raw(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


def raw_input(size: int) -> list[Any]:
    described = {"name": "x", "shape": [size], "datatype": "FP32"}
    return [described | {"parameters": {"binary_data_size": 4 * size}}]


BINARY, MANY = raw_input(3), raw_input(400)
INFERENCES = {
    "json": infer_body(),
    "an id and outputs": infer_body(id="a", outputs=[{"name": "y"}]),
    "a signature": infer_body(parameters={"signature_name": "serving_default"}),
    "binary inputs": infer_body(raw(1, 2, 5), inputs=BINARY),
    "binary both ways": infer_body(
        raw(1, 2, 5), inputs=BINARY, parameters={"binary_data_output": True}
    ),
    "a compressed response": infer_body(raw(*range(400)), inputs=MANY),
    "not finite": infer_body(raw(1, 2, float("nan")), inputs=BINARY),
    "classes": infer_body(outputs=[{"name": "y", "parameters": {"classification": 2}}]),
    "no rows": infer_body(inputs=[X | {"shape": [0], "data": []}]),
}
FAULTS = {
    "no inputs": infer_body(inputs=[]),
    "a datatype": infer_body(inputs=[X | {"datatype": "FP64"}]),
    "a shape": infer_body(inputs=[X | {"shape": [2]}]),
    "data of another shape": infer_body(inputs=[X | {"data": [[1.0], [2.0], [5.0]]}]),
    "an element": infer_body(inputs=[X | {"data": [1.0, "2", True]}]),
    "an output": infer_body(outputs=[{"name": "none"}]),
    "a signature": infer_body(parameters={"signature_name": "none"}),
    "a sequence": infer_body(parameters={"sequence_id": 7}),
    "missing bytes": infer_body(raw(1), inputs=BINARY),
    "no JSON": {"content": b"{", "headers": {}},
    "a header length": {"content": b"{}", "headers": {"inference-header-content-length": "9"}},
}


async def both(server: RestServer, request: dict[str, Any], path: str = INFER) -> Any:
    """The responses to a plain request, and to the same one with an unusual header."""
    headers = {"accept-encoding": "gzip"} | request["headers"]
    return [
        await server.client.post(path, content=request["content"], headers=headers | more)
        for more in ({}, UNUSUAL)
    ]


def test_inferences_are_answered_at_once_and_as_the_application_answers(calls: Calls) -> None:
    async def scenario() -> None:
        async with serving() as server:
            await both(server, INFERENCES["json"])
            for name, request in INFERENCES.items():
                calls.count = 0
                at_once, usual = await both(server, request)
                assert usual.status_code == 200, usual.text
                is_late = name == "a compressed response"
                assert calls.count == 1 + is_late, name
                assert same_but_for_id(at_once, usual), (name, at_once.content, usual.content)
                assert is_late == ("content-encoding" in at_once.headers)

    asyncio.run(scenario())


def test_inferences_at_once_are_counted_as_the_application_counts(calls: Calls) -> None:
    async def scenario() -> None:
        async with serving() as server:
            await both(server, INFERENCES["json"])
            before = await both_counts(server)
            for _ in range(3):
                await server.client.post(INFER, **INFERENCES["json"])
            at_once = await both_counts(server)
            for _ in range(3):
                body = INFERENCES["json"]["content"]
                await server.client.post(INFER, content=body, headers=UNUSUAL)
            usual = await both_counts(server)
            assert all(after - first == 3 for first, after in zip(before, at_once, strict=True)), (
                before,
                at_once,
            )
            assert all(after - first == 3 for first, after in zip(at_once, usual, strict=True))

    asyncio.run(scenario())


async def both_counts(server: RestServer) -> list[float]:
    """The figures of inference requests: those of the metrics, and the protocol's own."""
    page = (await server.client.get("/monitoring/prometheus/metrics")).text.splitlines()
    model = 'model_name="half_plus_two"'
    latency = f'request_latency_count{{{model},API="Predict",entrypoint="REST"}}'
    wanted = (
        'runstep_requests_total{api="infer",status="200"} ',
        'runstep_steps_total{code="OK",priority="normal"} ',
        f':tensorflow:serving:request_count{{{model},status="OK"}} ',
        f":tensorflow:serving:{latency} ",
    )
    figures = [float(line.split()[-1]) for line in page if line.startswith(wanted)]
    assert len(figures) == len(wanted), figures
    stats = (await server.client.get("/v2/models/half_plus_two/stats")).json()["model_stats"][0]
    counts = [each["count"] for each in stats["inference_stats"].values() if each["count"]]
    return [*figures, stats["inference_count"] / 3, stats["execution_count"], *counts]


def test_an_inference_that_is_wrong_is_answered_as_ever(calls: Calls) -> None:
    async def scenario() -> None:
        async with serving() as server:
            await both(server, INFERENCES["json"])
            for name, request in FAULTS.items():
                at_once, usual = await both(server, request)
                assert usual.status_code in (400, 501), usual.text
                assert list(usual.json()) == ["error"]
                assert same_but_for_id(at_once, usual), (name, at_once.text, usual.text)
            for path, status in (
                (INFER.replace("half_plus_two", "none"), 404),
                (f"{INFER[:-6]}/versions/9/infer", 404),
                (f"{INFER[:-6]}/versions/x/infer", 400),
                ("/v2/infer", 404),
            ):
                at_once, usual = await both(server, INFERENCES["json"], path)
                assert usual.status_code == status, usual.text
                assert same_but_for_id(at_once, usual)
            stats = (await server.client.get("/v2/models/half_plus_two/stats")).json()
            fails = stats["model_stats"][0]["inference_stats"]["fail"]["count"]
            assert fails > 0 and fails % 2 == 0

    asyncio.run(scenario())


def test_a_large_response_to_a_short_inference_is_written_by_the_application(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with serving() as server:
            _, usual = await both(server, INFERENCES["binary both ways"])
            calls.count = 0
            monkeypatch.setattr("server.steps.step_runner.OFF_LOOP_BYTES", 8)
            late = await server.client.post(INFER, **INFERENCES["binary both ways"])
            assert calls.count == 1
            assert same_but_for_id(late, usual)

    asyncio.run(scenario())


def test_an_inference_with_a_schedule_of_its_own_is_not_plain(calls: Calls) -> None:
    async def scenario() -> None:
        async with serving() as server:
            await both(server, INFERENCES["json"])
            for parameters in ({"priority": "low"}, {"timeout": 20_000_000}, {"priority": 1}):
                calls.count = 0
                response = await server.client.post(INFER, **infer_body(parameters=parameters))
                assert response.status_code == 200, response.text
                assert calls.count == 1
            page = (await server.client.get("/monitoring/prometheus/metrics")).text
            assert 'runstep_steps_total{code="OK",priority="low"} 1.0' in page

    asyncio.run(scenario())
