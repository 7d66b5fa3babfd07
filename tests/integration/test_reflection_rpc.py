"""gRPC reflection of a whole server: a client that knows nothing else calls Predict."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Iterable
from typing import Any

import grpc.aio
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection_pb2

from server.rpc.services import rpc_services
from tests.integration.access import write_keys
from tests.integration.rpc_server import RpcServer, with_rpc

V1, V1ALPHA = "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"
SERVICES = (
    "grpc.health.v1.Health", V1, V1ALPHA, "tensorflow.MasterService",
    "tensorflow.serving.ModelService", "tensorflow.serving.PredictionService",
    "tensorflow.serving.SessionService", "inference.GRPCInferenceService",
)  # fmt: skip


class ReflectionClient:
    """A client that learns everything from reflection."""

    def __init__(self, channel: grpc.aio.Channel, version: str) -> None:
        self.channel = channel
        self._version = version
        self.pool = descriptor_pool.DescriptorPool()
        self._known: set[str] = set()

    async def ask(self, **fields: Any) -> reflection_pb2.ServerReflectionResponse:
        call = self.channel.stream_stream(f"/{self._version}/ServerReflectionInfo")(timeout=30)
        request = reflection_pb2.ServerReflectionRequest(**fields)
        await call.write(request.SerializeToString())
        answer = reflection_pb2.ServerReflectionResponse.FromString(await call.read())
        await call.done_writing()
        return answer

    async def services(self) -> list[str]:
        answer = await self.ask(list_services="")
        return [each.name for each in answer.list_services_response.service]

    async def learn(self, symbol: str) -> None:
        """Add the file of a symbol, and all that it imports, to the pool."""
        answer = await self.ask(file_containing_symbol=symbol)
        files = answer.file_descriptor_response.file_descriptor_proto
        assert files, answer
        waiting = {proto.name: proto for proto in map(FileDescriptorProto.FromString, files)}

        def add(names: Iterable[str]) -> None:
            for name in names:
                if name in waiting and name not in self._known:
                    self._known.add(name)
                    add(waiting[name].dependency)
                    self.pool.Add(waiting[name])

        add(list(waiting))

    async def call(self, service: str, method: str, fill: Any) -> Any:
        """Call a method with a request that `fill` fills in."""
        await self.learn(service)
        described = self.pool.FindServiceByName(service).methods_by_name[method]
        request = message_factory.GetMessageClass(described.input_type)()
        fill(request)
        answer = await self.channel.unary_unary(f"/{service}/{method}")(
            request.SerializeToString(), timeout=30
        )
        return message_factory.GetMessageClass(described.output_type).FromString(answer)


@pytest.mark.parametrize("version", [V1, V1ALPHA])
def test_a_client_that_knows_only_reflection_calls_predict(version: str) -> None:
    async def scenario(server: RpcServer) -> None:
        client = ReflectionClient(server.channel, version)
        assert sorted(await client.services()) == sorted(SERVICES)

        def fill(request: Any) -> None:
            assert request.DESCRIPTOR.full_name == "tensorflow.serving.PredictRequest"
            request.model_spec.name = "half_plus_two"
            tensor = request.inputs["x"]
            assert tensor.DESCRIPTOR.full_name == "tensorflow.TensorProto"
            tensor.dtype = 1
            tensor.tensor_shape.dim.add(size=2)
            tensor.float_val.extend([1, 5])

        answer = await client.call("tensorflow.serving.PredictionService", "Predict", fill)
        assert list(answer.outputs["y"].float_val) == [2.5, 4.5]

    with_rpc(scenario)


def test_reflection_describes_every_service_that_there_is_and_every_method() -> None:
    async def scenario(server: RpcServer) -> None:
        client = ReflectionClient(server.channel, V1)
        table = {each.name: each for each in rpc_services(server.rest.services)}
        assert sorted(table) == sorted(SERVICES)
        for name, service in table.items():
            await client.learn(name)
            described = client.pool.FindServiceByName(name).methods_by_name
            left_out = {"List"} if name == "grpc.health.v1.Health" else set()  # it needs no key
            assert set(described) - left_out == set(service.methods), name

    with_rpc(scenario)


def test_what_is_unknown_is_not_found_and_the_stream_goes_on() -> None:
    async def scenario(server: RpcServer) -> None:
        call = server.channel.stream_stream(f"/{V1}/ServerReflectionInfo")(timeout=30)
        codes = []
        for fields in (
            {"file_containing_symbol": "runstep.TensorProto"},
            {"file_by_filename": "no/such.proto"},
            {"all_extension_numbers_of_type": "tensorflow.serving.Nope"},
            {},
        ):
            request = reflection_pb2.ServerReflectionRequest(**fields)
            await call.write(request.SerializeToString())
            answer = reflection_pb2.ServerReflectionResponse.FromString(await call.read())
            codes.append(answer.error_response.error_code)
        not_found, invalid = (code.value[0] for code in (
            grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT
        ))  # fmt: skip
        assert codes == [not_found, not_found, not_found, invalid]
        await call.done_writing()

    with_rpc(scenario)


def test_a_message_that_is_none_ends_the_stream_with_invalid_argument() -> None:
    async def scenario(server: RpcServer) -> None:
        call = server.channel.stream_stream(f"/{V1}/ServerReflectionInfo")(timeout=30)
        await call.write(b"\xff")
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call.read()
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    with_rpc(scenario)


def test_reflection_needs_no_key_and_a_drain_does_not_wait_for_it(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        client = ReflectionClient(server.channel, V1ALPHA)
        call = server.channel.stream_stream(f"/{V1}/ServerReflectionInfo")(timeout=30)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        await call.write(request.SerializeToString())
        await call.read()  # the stream stays open
        assert len(await client.services()) == len(SERVICES)
        assert await asyncio.wait_for(server.rest.services.lifecycle.drain(10), 20)
        call.cancel()

    with_rpc(scenario, access={"keys_file": write_keys(tmp_path / "keys.yaml")})
