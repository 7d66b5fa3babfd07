"""Streams whose clients send nothing do not delay the end of the server."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

import protos as pb
from server.rpc.grpc_server import GrpcServer
from tests.integration.rest_server import rest_server
from tests.integration.rpc_server import HALF_PLUS_TWO_MODEL

LONG = 600.0  # seconds of grace, for which no test waits
REFLECTION = reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()
INFER = pb.inference.ModelInferRequest(model_name="none").SerializeToString()
STREAMS = [
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", REFLECTION),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", REFLECTION),
    ("/inference.GRPCInferenceService/ModelStreamInfer", INFER),
]


@pytest.mark.parametrize(("path", "first"), STREAMS)
@pytest.mark.parametrize("has_sent", [True, False])
def test_a_stream_that_waits_for_its_client_ends_with_the_server(
    path: str, first: bytes, has_sent: bool
) -> None:
    async def scenario() -> None:
        async with rest_server(models=[HALF_PLUS_TWO_MODEL], grpc={"port": "free"}) as rest:
            server = GrpcServer(rest.services)
            await server.start()
            async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
                call = channel.stream_stream(path)(timeout=60)
                if has_sent:
                    await call.write(first)
                    assert await call.read()
                else:
                    await until_waiting(server)
                await asyncio.wait_for(server.stop(LONG), 30)
                assert await call.read() is grpc.aio.EOF
                assert await call.code() is grpc.StatusCode.OK

    asyncio.run(scenario())


async def until_waiting(server: GrpcServer) -> None:
    """Wait until a stream waits for a message."""
    while not server._listener._idle:
        await asyncio.sleep(0)


def test_a_stream_of_watch_ends_with_the_server() -> None:
    async def scenario() -> None:
        async with rest_server(models=[HALF_PLUS_TWO_MODEL], grpc={"port": "free"}) as rest:
            server = GrpcServer(rest.services)
            await server.start()
            async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
                call = channel.unary_stream("/grpc.health.v1.Health/Watch")(
                    health_pb2.HealthCheckRequest().SerializeToString(), timeout=60
                )
                assert await call.read()
                await rest.services.lifecycle.drain(0)
                await asyncio.wait_for(server.stop(LONG), 30)
                # The status comes after the messages, of which there may be one that says so.
                while await call.read() is not grpc.aio.EOF:
                    pass
                assert await call.code() is grpc.StatusCode.OK

    asyncio.run(scenario())
