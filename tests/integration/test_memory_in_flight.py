"""Bodies and answers in flight, and what few bytes claim, on every front."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any

import grpc.aio
import httpx
import numpy as np
import pytest

import protos as pb
from runtime.api import tensor_from_proto
from server.codec.session import proto_steps
from server.rpc.grpc_server import GrpcServer
from tests.integration.rest_server import HALF_PLUS_TWO, RestServer, check_error, with_server

PROTOBUF = {"Content-Type": "application/x-protobuf"}
LARGE = b" " * 400_000


def claiming(*sizes: int) -> pb.RunStepRequest:
    """A step whose feeds have one value each and these sizes."""
    step = pb.RunStepRequest(fetch=["y:0"])
    for index, size in enumerate(sizes):
        tensor = step.feed.add(name=f"x:{index}").tensor
        tensor.dtype = pb.DT_FLOAT
        tensor.tensor_shape.dim.add(size=size)
        tensor.float_val.append(1.0)
    return step


def test_large_bodies_in_flight_are_refused_above_the_limit():
    async def scenario(server: RestServer) -> None:
        session = await server.create(HALF_PLUS_TWO)
        half_sent, go_on = asyncio.Event(), asyncio.Event()

        async def body() -> Any:
            yield LARGE
            half_sent.set()
            await go_on.wait()
            yield b'{"feeds": {"x:0": [1.0]}, "fetches": ["y:0"]}'

        first = asyncio.create_task(server.client.post(f"{session}:run", content=body()))
        await half_sent.wait()
        while not server.services.memory.held:
            await asyncio.sleep(0)
        second = await server.client.post(f"{session}:run", content=LARGE)
        check_error(second, 429, "RESOURCE_EXHAUSTED", "rest.max_bytes_in_flight is 1500000")
        assert second.headers["retry-after"] == "1"
        go_on.set()
        assert (await first).json()["outputs"]["y:0"]["data"] == [2.5]
        assert server.services.memory.held == 0
        third = await server.client.post(
            f"{session}:run", content=LARGE + b'{"feeds": {"x:0": [2.0]}, "fetches": ["y:0"]}'
        )
        assert third.status_code == 200, third.text

    with_server(scenario, rest={"max_bytes_in_flight": 1_500_000})


@pytest.mark.parametrize("front", ["http", "grpc"])
def test_an_answer_counts_until_it_is_sent(front: str):
    async def scenario(server: RestServer) -> None:
        path = await server.create(HALF_PLUS_TWO)
        step = claiming(200_000)
        memory = server.services.memory
        other = memory.begin_request()
        other.add(memory.limit - 100_000)
        error = await run(server, front, path, step)
        assert "rest.max_bytes_in_flight is 4000000" in error
        other.end()
        assert await run(server, front, path, step) == ""
        assert memory.held == 0

    with_server(scenario, rest={"max_bytes_in_flight": 4_000_000, "host": "127.0.0.1"})


async def run(server: RestServer, front: str, path: str, step: pb.RunStepRequest) -> str:
    """Run a step that doubles nothing; returns the text of its error, or an empty text."""
    if front == "http":
        answer: httpx.Response = await server.client.post(
            f"{path}:run", content=step.SerializeToString(), headers=PROTOBUF
        )
        if answer.status_code != 200:
            assert answer.status_code == 429
            return str(answer.json()["error"])
        message = answer.content
    else:
        services = server.services
        settings = services.settings.model_copy(
            update={"grpc": services.settings.grpc.model_copy(update={"port": "free"})}
        )
        port = GrpcServer(dataclasses.replace(services, settings=settings))
        await port.start()
        step.session_handle = path.rpartition("/")[2]
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port.port}") as channel:
                call = channel.unary_unary("/tensorflow.MasterService/RunStep")
                message = await call(step.SerializeToString(), timeout=60)
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            return error.details() or ""
        finally:
            await port.stop(0)
    (named,) = pb.RunStepResponse.FromString(message).tensor
    assert (tensor_from_proto(named.tensor) == 2.5).all()
    return ""


def test_a_protobuf_body_that_claims_much_is_read_on_another_thread(
    monkeypatch: pytest.MonkeyPatch,
):
    threads: list[bool] = []
    decoded_feeds = proto_steps.decoded_feeds
    loop = threading.get_ident()

    def noting(*arguments: Any) -> dict[str, np.ndarray]:
        threads.append(threading.get_ident() == loop)
        return decoded_feeds(*arguments)

    monkeypatch.setattr(proto_steps, "decoded_feeds", noting)

    async def scenario(server: RestServer) -> None:
        path = await server.create(HALF_PLUS_TWO)
        for size in (10, 1_000_000):
            assert await run(server, "http", path, claiming(size)) == ""

    with_server(scenario)
    assert threads == [True, False]


def test_feeds_that_claim_much_together_are_refused_before_they_are_made():
    async def scenario(server: RestServer) -> None:
        path = await server.create(HALF_PLUS_TWO)
        answer = await server.client.post(
            f"{path}:run",
            content=claiming(200_000, 200_000).SerializeToString(),
            headers=PROTOBUF,
        )
        text = "2 feeds that repeat their values need 1600000 bytes together"
        check_error(answer, 429, "RESOURCE_EXHAUSTED", text)

    with_server(scenario, sessions={"max_tensor_bytes": 1_000_000})
