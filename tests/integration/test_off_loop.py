"""What is large is decoded and encoded on other threads, and limited, whatever front it came by."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest

import protos as pb
from runtime.api import DataType, tensor_to_proto
from server.codec.serving import requests
from server.codec.session import json_steps, proto_steps
from server.rest import content_encoding, session_bodies
from server.rest import models as models_front
from server.rest import sessions as sessions_front
from server.rpc.grpc_server import GrpcServer
from server.steps import step_runner
from server.steps.step_runner import OFF_LOOP_BYTES
from tests.integration.rest_server import RestServer, rest_server

COUNT = OFF_LOOP_BYTES  # of float32: four times the bytes that may be handled on the loop
SMALL = np.ones(3, np.float32)
LARGE = np.ones(COUNT, np.float32)
# Few pointers, and more bytes than may be handled on the event loop.
TEXTS = np.array([b"x" * (OFF_LOOP_BYTES // 4)] * 5, object)
HALF_PLUS_TWO = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}


def identity_graph() -> pb.GraphDef:
    """`y` is the float32 `x`, `t` the string `s`."""
    graph = pb.GraphDef()
    for source, name, data_type in (("x", "y", DataType.FLOAT), ("s", "t", DataType.STRING)):
        graph.node.add(name=source, op="Placeholder").attr["dtype"].type = data_type
        node = graph.node.add(name=name, op="Identity", input=[source])
        node.attr["T"].type = data_type
    return graph


class Threads:
    """Which functions of the codecs were called on the event loop's thread, and which elsewhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on_loop: set[str] = set()
        self.elsewhere: set[str] = set()
        self._loop = threading.get_ident()
        for module, name in (
            (json_steps, "_read_step"),
            (json_steps, "read_tensor"),
            (json_steps, "write_tensor"),
            (json_steps, "tensor_parts"),
            (proto_steps, "tensor_from_proto"),
            (proto_steps, "tensor_to_proto"),
            (models_front, "parse_document"),
            (models_front, "quick_document"),
            (models_front, "predict_inputs"),
            (models_front, "examples_tensor"),
            (models_front, "write_predict_response"),
            (models_front, "write_classify_response"),
            (models_front, "write_regress_response"),
            (step_runner, "bytes_of_strings"),
            (sessions_front, "read_create_request"),
            (sessions_front, "read_extend_body"),
            (content_encoding, "inflate"),
            (content_encoding, "inflate_deflated"),
            (session_bodies, "_read_model"),
            (sessions_front, "_graph_response"),
        ):
            monkeypatch.setattr(module, name, self._watched(name, getattr(module, name)))

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            is_loop = threading.get_ident() == self._loop
            (self.on_loop if is_loop else self.elsewhere).add(name)
            return function(*arguments, **options)

        return watched


class Client:
    """A session on the identity graph, reached by every front."""

    def __init__(self, server: RestServer, session: str, port: int) -> None:
        self.server = server
        self.path = f"/v1/sessions/{session}"
        self.session = session
        self._channel = grpc.aio.insecure_channel(
            f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)]
        )

    async def post(self, path: str, body: Any) -> Any:
        answer = await self.server.client.post(path, content=json.dumps(body))
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post_proto(self, verb: str, message: Any) -> bytes:
        answer = await self.server.client.post(
            f"{self.path}:{verb}",
            content=message.SerializeToString(),
            headers={"content-type": "application/x-protobuf"},
        )
        assert answer.status_code == 200, answer.text
        return answer.content

    async def call(self, method: str, message: Any) -> bytes:
        call = self._channel.unary_unary(f"/tensorflow.MasterService/{method}")
        answer: bytes = await call(message.SerializeToString())
        return answer

    async def callable(self, feed: str, fetch: str) -> int:
        options = {"feed": [feed], "fetch": [fetch]}
        made = await self.post(f"{self.path}:makeCallable", {"options": options})
        handle: int = made["handle"]
        return handle

    async def partial_run(self, feed: str, fetch: str) -> str:
        body = {"feeds": [feed], "fetches": [fetch]}
        made = await self.post(f"{self.path}:partialRunSetup", body)
        handle: str = made["partial_run_handle"]
        return handle

    async def close(self) -> None:
        await self._channel.close()


@contextlib.asynccontextmanager
async def client(**rest: Any) -> AsyncIterator[Client]:
    settings = {"models": [HALF_PLUS_TWO], "rest": {"host": "127.0.0.1", **rest}}
    async with rest_server(**settings, grpc={"port": "free"}) as server:
        services = server.services
        await asyncio.to_thread(services.models.wait_until_settled, 60)
        graph = base64.b64encode(identity_graph().SerializeToString()).decode()
        path = await server.create({"graph_def": graph})
        port = GrpcServer(services)
        await port.start()
        made = Client(server, path.rpartition("/")[2], port.port)
        try:
            yield made
        finally:
            await made.close()
            await port.stop(0)


def run_step(client: Client, array: np.ndarray, part: str = "") -> pb.RunStepRequest:
    feed, fetch = ("s", "t") if array.dtype == object else ("x", "y")
    step = pb.RunStepRequest(session_handle=client.session, fetch=[fetch], partial_run_handle=part)
    step.feed.add(name=feed, tensor=tensor_to_proto(array))
    return step


def as_json(array: np.ndarray) -> list[Any]:
    if array.dtype == object:
        return [item.decode() for item in array.tolist()]
    values: list[Any] = array.tolist()
    return values


def names(array: np.ndarray) -> tuple[str, str]:
    return ("s", "t") if array.dtype == object else ("x", "y")


async def json_run(client: Client, array: np.ndarray) -> None:
    feed, fetch = names(array)
    body = {"feeds": {feed: as_json(array)}, "fetches": [fetch]}
    answer = await client.post(f"{client.path}:run", body)
    assert answer["outputs"][fetch]["data"] == as_json(array)


async def json_part(client: Client, array: np.ndarray) -> None:
    feed, fetch = names(array)
    handle = await client.partial_run(feed, fetch)
    body = {"partial_run_handle": handle, "feeds": {feed: as_json(array)}, "fetches": [fetch]}
    answer = await client.post(f"{client.path}:partialRun", body)
    assert answer["outputs"][fetch]["data"] == as_json(array)


async def json_callable(client: Client, array: np.ndarray) -> None:
    handle = await client.callable(*names(array))
    body = {"handle": handle, "feeds": [as_json(array)]}
    answer = await client.post(f"{client.path}:runCallable", body)
    assert answer["outputs"][0]["data"] == as_json(array)


async def proto_run(client: Client, array: np.ndarray) -> None:
    check(pb.RunStepResponse, await client.post_proto("run", run_step(client, array)), array)


async def proto_part(client: Client, array: np.ndarray) -> None:
    handle = await client.partial_run(*names(array))
    content = await client.post_proto("partialRun", run_step(client, array, handle))
    check(pb.RunStepResponse, content, array)


async def proto_callable(client: Client, array: np.ndarray) -> None:
    message = pb.RunCallableRequest(
        handle=await client.callable(*names(array)), feed=[tensor_to_proto(array)]
    )
    check(pb.RunCallableResponse, await client.post_proto("runCallable", message), array)


async def grpc_run(client: Client, array: np.ndarray) -> None:
    check(pb.RunStepResponse, await client.call("RunStep", run_step(client, array)), array)


async def grpc_part(client: Client, array: np.ndarray) -> None:
    handle = await client.partial_run(*names(array))
    message = run_step(client, array, handle)
    check(pb.RunStepResponse, await client.call("RunStep", message), array)


async def grpc_callable(client: Client, array: np.ndarray) -> None:
    message = pb.RunCallableRequest(
        session_handle=client.session,
        handle=await client.callable(*names(array)),
        feed=[tensor_to_proto(array)],
    )
    check(pb.RunCallableResponse, await client.call("RunCallable", message), array)


def check(kind: Any, content: bytes, array: np.ndarray) -> None:
    answer = kind.FromString(content)
    tensor = answer.tensor[0].tensor if kind is pb.RunStepResponse else answer.fetch[0]
    assert tensor == tensor_to_proto(array)


Front = Callable[[Client, np.ndarray], Awaitable[None]]
JSON = {"_read_step", "read_tensor", "write_tensor"}
PROTO = {"tensor_from_proto", "tensor_to_proto"}
FRONTS: list[tuple[Front, set[str]]] = [
    (json_run, JSON),
    (json_part, JSON),
    (json_callable, JSON),
    (proto_run, PROTO),
    (proto_part, PROTO),
    (proto_callable, PROTO),
    (grpc_run, PROTO),
    (grpc_part, PROTO),
    (grpc_callable, PROTO),
]


@pytest.mark.parametrize(("front", "functions"), FRONTS)
@pytest.mark.parametrize("array", [LARGE, TEXTS], ids=["numbers", "strings"])
def test_large_steps_are_read_and_written_off_the_loop(
    front: Front, functions: set[str], array: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        nonlocal functions
        async with client() as made:
            threads = Threads(monkeypatch)
            await front(made, array)
            if array is LARGE:  # numbers are written in parts
                functions = {{"write_tensor": "tensor_parts"}.get(name, name) for name in functions}
            assert threads.elsewhere >= functions
            assert not threads.on_loop & functions

    asyncio.run(scenario())


@pytest.mark.parametrize(("front", "functions"), FRONTS)
def test_small_steps_stay_on_the_loop(
    front: Front, functions: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with client() as made:
            threads = Threads(monkeypatch)
            await front(made, SMALL)
            assert threads.on_loop >= functions
            assert not threads.elsewhere

    asyncio.run(scenario())


def test_many_strings_are_counted_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their pointers alone say that there are many: counting the bytes takes as long as writing."""
    many = np.array([b"x"] * (OFF_LOOP_BYTES // 8), object)

    async def scenario() -> None:
        async with client() as made:
            threads = Threads(monkeypatch)
            await grpc_run(made, many)
            assert "bytes_of_strings" in threads.elsewhere
            await grpc_run(made, many[:10])
            assert "bytes_of_strings" in threads.on_loop

    asyncio.run(scenario())


MODEL_CALLS = [
    ("predict", {"parse_document", "predict_inputs", "write_predict_response"}),
    ("classify", {"parse_document", "examples_tensor", "write_classify_response"}),
    ("regress", {"parse_document", "examples_tensor", "write_regress_response"}),
]


def model_body(call: str, count: int) -> dict[str, Any]:
    if call == "predict":
        return {"instances": [1.0] * count}
    examples = [{"x": 1.0}] * count
    return {"signature_name": f"{call}_x_to_y", "examples": examples}


@pytest.mark.parametrize(("call", "functions"), MODEL_CALLS)
def test_large_model_calls_are_read_and_written_off_the_loop(
    call: str, functions: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (step_runner, models_front):
        monkeypatch.setattr(module, "OFF_LOOP_BYTES", 4000)  # examples take long to parse

    async def scenario() -> None:
        async with client() as made:
            threads = Threads(monkeypatch)
            path = f"/v1/models/half_plus_two:{call}"
            await made.post(path, model_body(call, 1500))
            assert threads.elsewhere >= functions
            assert not threads.on_loop
            # The priority keeps a predict body from the functions for the most usual ones.
            await made.post(path, model_body(call, 2) | {"priority": "normal"})
            assert threads.on_loop >= functions - {"parse_document"} | {"quick_document"}

    asyncio.run(scenario())


@pytest.mark.parametrize("call", ["classify", "regress", "predict"])
@pytest.mark.parametrize("strict", [False, True])
def test_a_large_body_for_a_model_that_does_not_serve_is_not_parsed(
    call: str, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that repeats its request while a model is being loaded must not delay the load."""
    body = json.dumps(model_body(call, 2)).encode() + b" " * OFF_LOOP_BYTES

    async def scenario() -> None:
        async with client(strict_tensorflow_serving=strict) as made:
            threads = Threads(monkeypatch)
            answer = await made.server.client.post(f"/v1/models/other:{call}", content=body)
            assert answer.status_code == 404
            assert answer.json()["error"] == "Servable not found for request: Latest(other)"
            assert ("parse_document" in threads.elsewhere) is strict

    asyncio.run(scenario())


def test_a_body_with_a_bare_nan_leaves_the_loop_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser of such bodies takes 90 ms for what orjson takes 3 ms for."""
    numbers = ", ".join(["0.5"] * (OFF_LOOP_BYTES // 8))
    threads_of: list[bool] = []

    async def scenario() -> None:
        async with client() as made:
            loop = threading.get_ident()
            parse = requests.parse_tolerant
            monkeypatch.setattr(
                requests,
                "parse_tolerant",
                lambda body: (threads_of.append(threading.get_ident() == loop), parse(body))[1],
            )
            path = "/v1/models/half_plus_two:predict"
            for body, status in (
                (f'{{"instances": [NaN, {numbers}]}}', 200),
                (f'{{"instances": [NaN, {numbers}', 400),
                ('{"instances": [NaN]}', 200),
            ):
                answer = await made.server.client.post(path, content=body)
                assert answer.status_code == status, answer.text

    asyncio.run(scenario())
    # The array of the first body is read in slices, so its parser reads what is left of it.
    assert threads_of == [False, True]


def test_the_largest_answer_binds_every_front() -> None:
    message = "The tensors of the answer have 12 bytes; rest.max_answer_bytes is 11"

    async def scenario() -> None:
        async with client(max_answer_bytes=11) as made:
            for front, _ in FRONTS:
                if front in (grpc_run, grpc_part, grpc_callable):
                    with pytest.raises(grpc.aio.AioRpcError) as refused:
                        await front(made, SMALL)
                    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                    assert refused.value.details() == message
                else:
                    with pytest.raises(AssertionError, match=message):
                        await front(made, SMALL)
            for call, _ in MODEL_CALLS:
                answer = await made.server.client.post(
                    f"/v1/models/half_plus_two:{call}", content=json.dumps(model_body(call, 3))
                )
                assert answer.status_code == 429, answer.text
                assert "rest.max_answer_bytes is 11" in answer.json()["error"]

    asyncio.run(scenario())


@pytest.mark.parametrize("call", ["classify", "regress", "predict"])
def test_what_is_written_element_by_element_leaves_the_loop_earlier(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fifth of the content that may be handled on the loop took 10 to 60 ms there."""
    count = OFF_LOOP_BYTES // 4 // 5

    async def scenario() -> None:
        async with client(strict_tensorflow_serving=True) as made:
            threads = Threads(monkeypatch)
            await made.post(f"/v1/models/half_plus_two:{call}", model_body(call, count))
            assert f"write_{call}_response" not in threads.on_loop
            assert "examples_tensor" not in threads.on_loop

    asyncio.run(scenario())


def test_a_gzipped_body_is_inflated_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes may inflate to a thousand times as many."""
    body = b'{"inputs":[1.0]' + b" " * OFF_LOOP_BYTES + b"}"

    async def scenario() -> None:
        async with client() as made:
            threads = Threads(monkeypatch)
            answer = await made.server.client.post(
                "/v1/models/half_plus_two:predict",
                content=gzip.compress(body),
                headers={"Content-Encoding": "gzip"},
            )
            assert answer.status_code == 200, answer.text
            assert "inflate" in threads.elsewhere - threads.on_loop

    asyncio.run(scenario())


def test_large_graphs_are_read_and_written_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = pb.GraphDef()
    node = graph.node.add(name="c", op="Const")
    node.attr["dtype"].type = DataType.FLOAT
    node.attr["value"].tensor.CopyFrom(tensor_to_proto(LARGE))
    body = {"graph_def": base64.b64encode(graph.SerializeToString()).decode()}
    options = {"feed": ["x"] * OFF_LOOP_BYTES}

    async def scenario() -> None:
        async with client() as made:
            server, threads = made.server, Threads(monkeypatch)
            path = await server.create(body)
            answer = await server.client.get(f"{path}/graph")
            content = base64.b64decode(answer.json()["graph_def"])
            assert pb.GraphDef.FromString(content).node == graph.node
            await made.post(f"{made.path}:extend", body)
            for verb, large in (
                ("makeCallable", {"options": options}),
                ("partialRunSetup", {"feeds": options["feed"]}),
            ):
                answer = await server.post(f"{made.path}:{verb}", large)
                assert answer.status_code == 400, answer.text
            assert threads.elsewhere == {
                "_read_model", "read_create_request", "read_extend_body", "_graph_response",
            }  # fmt: skip
            assert not threads.on_loop

    asyncio.run(scenario())
