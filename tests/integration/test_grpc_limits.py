"""Messages that gRPC clients should not send, and what they cost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator

import grpc
import numpy as np
import pytest

import protos as pb
from runtime.api import tensor_from_proto
from server.codec.session import proto_steps
from server.rest.session_docs import half_plus_two_graph
from server.rpc.grpc_server import GrpcServer
from tests.integration.rest_server import rest_server

METHODS = ("CreateSession", "RunStep", "MakeCallable", "RunCallable", "Reset")


@contextlib.asynccontextmanager
async def channel() -> AsyncIterator[grpc.aio.Channel]:
    settings = {"rest": {"host": "127.0.0.1"}, "grpc": {"port": "free"}}
    async with rest_server(**settings) as server:
        services = server.services
        port = GrpcServer(services)
        await port.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port.port}") as made:
            yield made
        await port.stop(0)


@pytest.mark.parametrize("method", METHODS)
def test_malformed_bytes_are_an_invalid_argument_without_a_traceback(
    method: str, caplog: pytest.LogCaptureFixture
):
    async def run() -> None:
        async with channel() as made:
            call = made.unary_unary(f"/tensorflow.MasterService/{method}")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"\xff\xff no message", timeout=60)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "The request cannot be parsed" in caught.value.details()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert caplog.records == []


def test_few_bytes_that_claim_a_large_tensor_are_decoded_on_another_thread(
    monkeypatch: pytest.MonkeyPatch,
):
    threads: list[int] = []
    decoded_feeds = proto_steps.decoded_feeds

    def noting(*arguments: object) -> dict[str, np.ndarray]:
        threads.append(threading.get_ident())
        return decoded_feeds(*arguments)

    monkeypatch.setattr(proto_steps, "decoded_feeds", noting)

    async def run() -> None:
        async with channel() as made:

            async def call(method: str, request: object, response: type) -> object:
                handler = made.unary_unary(f"/tensorflow.MasterService/{method}")
                return response.FromString(await handler(request.SerializeToString(), timeout=60))

            create = pb.CreateSessionRequest(graph_def=half_plus_two_graph())
            session = await call("CreateSession", create, pb.CreateSessionResponse)
            for size in (10, 1_000_000):
                step = pb.RunStepRequest(session_handle=session.session_handle, fetch=["y:0"])
                feed = step.feed.add(name="x:0").tensor
                feed.dtype = pb.DT_FLOAT
                feed.tensor_shape.dim.add(size=size)
                feed.float_val.append(1)
                answer = await call("RunStep", step, pb.RunStepResponse)
                values = tensor_from_proto(answer.tensor[0].tensor)
                assert values.shape == (size,) and (values == 2.5).all()
        loop = threading.get_ident()
        assert [thread == loop for thread in threads] == [True, False]

    asyncio.run(run())
