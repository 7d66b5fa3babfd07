"""Deadline and queue limit of a priority hold for the steps of every front, and for no others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
import httpx
import numpy as np
import pytest

from tests.integration.rest_server import RUN_Y, check_error, encoded, endless_graph
from tests.integration.rpc_server import RpcServer, predict_request, with_rpc

PREDICT = "/v1/models/half_plus_two:predict"
INFER = "/v2/models/half_plus_two/infer"
INFER_BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}]}
RPC = "/tensorflow.serving.PredictionService/Predict"
PREDICT_REQUEST = predict_request("half_plus_two", x=np.array([1.0], np.float32))
LOW = {"X-Priority": "low"}
ENDLESS = {"feeds": {"start": 1.0}, "fetches": ["loop"]}


@contextlib.asynccontextmanager
async def occupied(server: RpcServer) -> AsyncIterator[None]:
    """The one thread of the pool runs a step of the priority `other` meanwhile."""
    session = await server.rest.create({"graph_def": encoded(endless_graph())})
    body = ENDLESS | {"priority": "other"}
    running = asyncio.ensure_future(server.rest.post(f"{session}:run", body))
    while (await server.rest.pools())["background"]["running"] == 0:
        await asyncio.sleep(0)
    try:
        yield
    finally:
        await server.rest.post(f"{session}:close")
        assert (await running).status_code == 499


async def answers(server: RpcServer, headers: dict[str, str]) -> dict[str, httpx.Response]:
    session = await server.rest.create()
    post = server.rest.post
    return {
        "predict": await post(PREDICT, {"instances": [1.0]}, headers=headers),
        "infer": await post(INFER, INFER_BODY, headers=headers),
        "run": await post(f"{session}:run", RUN_Y, headers=headers),
    }


def limited(**limits: int) -> dict[str, object]:
    priorities = {"normal": "online", "other": "background"}
    return {"priorities": priorities | {"low": {"pool": "background"} | limits}}


def test_steps_end_at_the_deadline_of_their_priority() -> None:
    async def scenario(server: RpcServer) -> None:
        async with occupied(server):
            for answer in (await answers(server, LOW)).values():
                assert answer.status_code == 504, answer.text
            code = grpc.StatusCode.DEADLINE_EXCEEDED
            metadata = (("x-priority", "low"),)
            await server.refused(RPC, PREDICT_REQUEST, code, "Timed out", metadata=metadata)
            for answer in (await answers(server, {})).values():
                assert answer.status_code == 200, answer.text

    with_rpc(scenario, **limited(timeout_ms=50))


def test_a_full_queue_of_a_priority_refuses_its_steps() -> None:
    text = "The queue of priority low is full: 1 steps are waiting for thread pool background"

    async def queued(server: RpcServer, number: int) -> None:
        while (await server.rest.pools())["background"]["queued"] < number:
            await asyncio.sleep(0)

    async def waiting(server: RpcServer, priority: str) -> asyncio.Task[httpx.Response]:
        headers = {"X-Priority": priority}
        call = server.rest.post(PREDICT, {"instances": [1.0]}, headers=headers)
        return asyncio.ensure_future(call)

    async def scenario(server: RpcServer) -> None:
        async with occupied(server):
            first = await waiting(server, "low")
            await queued(server, 1)
            found = await answers(server, LOW)
            for answer in found.values():
                assert answer.status_code == 429, answer.text
            check_error(found["run"], 429, "RESOURCE_EXHAUSTED", text)
            code = grpc.StatusCode.RESOURCE_EXHAUSTED
            metadata = (("x-priority", "low"),)
            await server.refused(RPC, PREDICT_REQUEST, code, text, metadata=metadata)
            second = await waiting(server, "other")  # the pool's own queue has room
            await queued(server, 2)
        for each in first, second:
            assert (await each).json() == {"predictions": [2.5]}

    with_rpc(scenario, **limited(queue_size=1))


async def parts(server: RpcServer) -> httpx.Response:
    session = await server.rest.create({"graph_def": encoded(endless_graph())})
    names = {"feeds": ["start"], "fetches": ["loop"]}
    handle = (await server.rest.post(f"{session}:partialRunSetup", names)).json()
    return await server.rest.post(f"{session}:partialRun", ENDLESS | handle)


async def run(server: RpcServer) -> httpx.Response:
    session = await server.rest.create({"graph_def": encoded(endless_graph())})
    return await server.rest.post(f"{session}:run", ENDLESS)


@pytest.mark.parametrize("call", [run, parts])
def test_the_default_priority_has_a_deadline_too(
    call: Callable[[RpcServer], Awaitable[httpx.Response]],
) -> None:
    async def scenario(server: RpcServer) -> None:
        assert (await call(server)).status_code == 504

    with_rpc(scenario, priorities={"normal": {"pool": "online", "timeout_ms": 50}})
