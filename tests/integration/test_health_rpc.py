"""grpc.health.v1 of a whole server: the server, its services and its models."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import AsyncIterator

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from server.models.model_config import ModelConfig
from server.rpc import health_service
from server.rpc.call import CallContext
from server.rpc.health_service import HealthService
from tests.integration.access import write_keys
from tests.integration.rpc_server import RpcServer, with_rpc

MODEL = "half_plus_two"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICE_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


async def check(server: RpcServer, service: str) -> int:
    stub = health_pb2_grpc.HealthStub(server.channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=30)
    return int(answer.status)


def watched(server: RpcServer, service: str) -> AsyncIterator[health_pb2.HealthCheckResponse]:
    stub = health_pb2_grpc.HealthStub(server.channel)
    call = stub.Watch(health_pb2.HealthCheckRequest(service=service), timeout=60)
    return call.__aiter__()


async def following(stream: AsyncIterator[health_pb2.HealthCheckResponse]) -> int:
    return int((await anext(stream)).status)


def test_check_knows_the_server_its_services_and_its_models() -> None:
    async def scenario(server: RpcServer) -> None:
        names = (
            "", "tensorflow.serving.PredictionService", "tensorflow.MasterService",
            "PredictionService", "ModelService", MODEL,
        )  # fmt: skip
        assert [await check(server, name) for name in names] == [SERVING] * len(names)
        await server.refused(
            "/grpc.health.v1.Health/Check",
            health_pb2.HealthCheckRequest(service="foo"),
            grpc.StatusCode.NOT_FOUND,
            "No service or model is called 'foo'",
        )

    with_rpc(scenario)


def test_a_model_without_a_version_is_not_serving_and_neither_is_the_server(
    tmp_path: pathlib.Path,
) -> None:
    async def scenario(server: RpcServer) -> None:
        assert await check(server, "empty") == NOT_SERVING
        assert await check(server, "") == NOT_SERVING

    with_rpc(scenario, models=[{"name": "empty", "base_path": str(tmp_path)}])


def test_watch_tells_each_change_of_a_model() -> None:
    async def scenario(server: RpcServer) -> None:
        models = server.rest.services.models
        config = models.configs()
        stream = watched(server, MODEL)
        unknown = watched(server, "later")
        assert await following(stream) == SERVING
        assert await following(unknown) == SERVICE_UNKNOWN
        later = ModelConfig("later", config[0].base_path)
        await asyncio.to_thread(models.reconfigure, [later])
        assert await following(stream) == SERVICE_UNKNOWN
        state = await following(unknown)
        assert state in (SERVING, NOT_SERVING)
        if state == NOT_SERVING:
            assert await following(unknown) == SERVING

    with_rpc(scenario)


def test_a_server_that_drains_says_so_and_ends_the_streams() -> None:
    async def scenario(server: RpcServer) -> None:
        streams = [watched(server, service) for service in ("", MODEL)]
        assert [await following(stream) for stream in streams] == [SERVING, SERVING]
        assert await server.rest.services.lifecycle.drain(10)  # who watches is not waited for
        assert [await following(stream) for stream in streams] == [NOT_SERVING, NOT_SERVING]
        for stream in streams:
            assert [each async for each in stream] == []
        assert await check(server, "") == NOT_SERVING
        assert await check(server, MODEL) == NOT_SERVING

    with_rpc(scenario)


def test_a_drain_that_begins_while_a_status_is_sent_is_told() -> None:
    async def requests() -> AsyncIterator[health_pb2.HealthCheckRequest]:
        yield health_pb2.HealthCheckRequest()

    async def scenario(server: RpcServer) -> None:
        lifecycle = server.rest.services.lifecycle
        service = HealthService(server.rest.services.models, lifecycle, (), list)
        # The first status is on its way as long as the generator is not resumed.
        statuses = service.watch(requests(), CallContext(None, {}))
        assert await following(statuses) == SERVING
        assert await lifecycle.drain(10)
        assert [each.status async for each in statuses] == [NOT_SERVING]

    with_rpc(scenario)


def test_the_number_of_those_who_watch_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_service, "MAX_WATCHERS", 2)

    async def scenario(server: RpcServer) -> None:
        stub = health_pb2_grpc.HealthStub(server.channel)
        calls = [stub.Watch(health_pb2.HealthCheckRequest(), timeout=60) for _ in range(2)]
        assert [(await call.read()).status for call in calls] == [SERVING, SERVING]
        with pytest.raises(grpc.aio.AioRpcError, match="2 clients watch the health already"):
            await following(watched(server, ""))
        calls[0].cancel()
        while True:  # until the server knows that the client is gone
            try:
                assert await following(watched(server, "")) == SERVING
                break
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    with_rpc(scenario)


def test_health_needs_no_key(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        assert await check(server, "") == SERVING
        assert await following(watched(server, MODEL)) == SERVING

    with_rpc(scenario, access={"keys_file": write_keys(tmp_path / "keys.yaml")})
