"""A server without ports, as an actor has it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import orjson
import pytest

import protos as pb
from runtime.errors import InvalidArgumentError, NotFoundError
from server.embedded_server import EmbeddedServer
from server.passed_calls import PassedRequest, PassedResponse
from server.settings import Settings
from tests.conformance.case import Graph

HALF_PLUS_TWO = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}
PREDICT = "/tensorflow.serving.PredictionService/Predict"


@contextlib.asynccontextmanager
async def embedded() -> AsyncIterator[EmbeddedServer]:
    """A server that serves half_plus_two."""
    started = EmbeddedServer(Settings(models=[HALF_PLUS_TWO]))  # type: ignore[list-item] # as JSON
    await started.start()
    async with asyncio.timeout(30):
        while started.not_ready():
            await asyncio.sleep(0.01)
    try:
        yield started
    finally:
        await started.stop()


def with_server(test: Callable[[EmbeddedServer], Awaitable[None]]) -> Callable[[], None]:
    """Return a test that runs in the event loop of a server."""

    @functools.wraps(test)
    def run() -> None:
        async def main() -> None:
            async with embedded() as server:
                await test(server)

        asyncio.run(main())

    del run.__wrapped__  # type: ignore[attr-defined] # pytest would see its argument
    return run


async def post(server: EmbeddedServer, path: str, value: Any, **headers: str) -> PassedResponse:
    """Call a path with a JSON body."""
    body = orjson.dumps(value)
    sent = [(b"content-length", b"%d" % len(body))]
    sent += [(name.encode(), text.encode()) for name, text in headers.items()]
    return await server.call(PassedRequest("POST", path.encode(), sent, body))


@with_server
async def test_a_call_has_the_response_of_a_port(server: EmbeddedServer) -> None:
    answer = await post(server, "/v1/models/half_plus_two:predict", {"instances": [1.0, 5.0]})
    assert (answer.status, orjson.loads(answer.body)) == (200, {"predictions": [2.5, 4.5]})
    assert dict(answer.headers)[b"content-type"] == b"application/json"
    path = b"/v1/models/half_plus_two?x=%20"
    told = await server.call(PassedRequest("GET", path, []))
    assert orjson.loads(told.body)["model_version_status"][0]["state"] == "AVAILABLE"
    missing = await post(server, "/v1/models/none:predict", {"instances": [1.0]})
    assert (missing.status, b"none" in bytes(missing.body)) == (404, True)


@with_server
async def test_large_bodies_are_arrays_of_bytes(server: EmbeddedServer) -> None:
    values = [float(i) for i in range(50_000)]
    answer = await post(server, "/v1/models/half_plus_two:predict", {"instances": values})
    assert not isinstance(answer.body, bytes)
    predictions = orjson.loads(answer.body.tobytes())["predictions"]
    assert predictions[:3] + predictions[-1:] == [2.0, 2.5, 3.0, 25001.5]


@with_server
async def test_rpc(server: EmbeddedServer) -> None:
    request = pb.serving.PredictRequest()
    request.model_spec.name = "half_plus_two"
    request.inputs["x"].CopyFrom(pb.TensorProto(dtype=pb.DT_FLOAT, float_val=[4.0]))
    request.inputs["x"].tensor_shape.dim.add(size=1)
    sent = request.SerializeToString()
    answer = pb.serving.PredictResponse.FromString(await server.rpc(PREDICT, sent, (), 30))
    assert list(answer.outputs["y"].float_val) == [4.0]
    request.model_spec.name = "none"
    with pytest.raises(NotFoundError, match="none"):
        await server.rpc(PREDICT, request.SerializeToString())
    with pytest.raises(InvalidArgumentError, match="cannot be parsed"):
        await server.rpc(PREDICT, b"\xff")


@with_server
async def test_a_cancelled_call_cancels_its_step(server: EmbeddedServer) -> None:
    """A step that waits for a queue ends when its caller goes away; the session stays usable."""
    graph = Graph()
    queue = graph.add("FIFOQueueV2", component_types=["float32"], name="queue")[0]
    graph.add("QueueDequeueV2", queue, component_types=["float32"], name="taken")
    graph.add("Identity", np.float32(1), name="one")
    sent = base64.b64encode(graph.graph_def.SerializeToString()).decode()
    created = await post(server, "/v1/sessions", {"graph_def": sent})
    path = f"/v1/sessions/{orjson.loads(created.body)['session']}:run"
    waiting = asyncio.create_task(post(server, path, {"fetches": ["taken:0"]}))
    async with asyncio.timeout(30):
        while not server.services.lifecycle.in_flight:
            await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(30):
        while server.services.lifecycle.in_flight:
            await asyncio.sleep(0.01)
    answer = await post(server, path, {"fetches": ["one:0"]})
    assert (answer.status, orjson.loads(answer.body)["outputs"]["one:0"]["data"]) == (200, 1.0)
    assert len(server.services.sessions.open_sessions()) == 1
