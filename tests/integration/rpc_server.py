"""A whole server with its gRPC port, and a client that calls methods by their names on the wire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import grpc
import grpc.aio
import pytest
from google.protobuf.message import Message

import protos as pb
from runtime.api import tensor_from_proto, tensor_to_proto
from server.rpc.grpc_server import GrpcServer
from tests.integration.rest_server import RestServer, rest_server

M = TypeVar("M", bound=Message)
PREDICTION = "/tensorflow.serving.PredictionService/"
HALF_PLUS_TWO_MODEL = {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}
COUNTER_MODEL = {"name": "counter", "base_path": "examples/models/counter"}


class RpcServer:
    """The gRPC port of a server; `rest` is the rest of it."""

    def __init__(self, rest: RestServer, port: int) -> None:
        self.rest = rest
        self.port = port
        unlimited = [("grpc.max_receive_message_length", -1)]
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=unlimited)

    async def call(self, path: str, request: Message, answer: type[M], **kwargs: Any) -> M:
        """The response of a method with one request."""
        return answer.FromString(await self.bytes(path, request, **kwargs))

    async def bytes(self, path: str, request: Message, **kwargs: Any) -> bytes:
        """The serialized response of a method with one request."""
        method = self.channel.unary_unary(path)
        answer: bytes = await method(request.SerializeToString(), **{"timeout": 60} | kwargs)
        return answer

    async def refused(
        self, path: str, request: Message, code: grpc.StatusCode, text: str, **kwargs: Any
    ) -> grpc.aio.AioRpcError:
        """The error of a call, which has this code and whose message has this text."""
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await self.bytes(path, request, **kwargs)
        assert error.value.code() is code, error.value.details()
        assert text in error.value.details(), error.value.details()
        return error.value

    async def predict(self, model: str, **inputs: Any) -> dict[str, Any]:
        """The outputs of the default signature as lists."""
        request = predict_request(model, **inputs)
        response = await self.call(PREDICTION + "Predict", request, pb.serving.PredictResponse)
        return {alias: tensor_from_proto(t).tolist() for alias, t in response.outputs.items()}


def predict_request(model: str, signature: str = "", **inputs: Any) -> pb.serving.PredictRequest:
    request = pb.serving.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    for alias, array in inputs.items():
        tensor_to_proto(array, None, request.inputs[alias])
    return request


def example_input(*values: float) -> pb.serving.Input:
    """Examples with the feature `x`."""
    message = pb.serving.Input()
    for value in values:
        example = message.example_list.examples.add()
        example.features.feature["x"].float_list.value.append(value)
    return message


@contextlib.asynccontextmanager
async def rpc_server(**settings: Any) -> AsyncIterator[RpcServer]:
    """A started server with these settings, whose models have been loaded."""
    settings = {"models": [HALF_PLUS_TWO_MODEL], "rest": {"host": "127.0.0.1"}} | settings
    settings["grpc"] = {"port": 0} | settings.get("grpc", {})
    async with rest_server(**settings) as rest:
        assert await asyncio.to_thread(rest.services.models.wait_until_settled, 60)
        port = GrpcServer(rest.services)
        await port.start()
        server = RpcServer(rest, port.port)
        try:
            yield server
        finally:
            await server.channel.close()
            await port.stop(0)


def with_rpc(scenario: Callable[[RpcServer], Coroutine[Any, Any, None]], **settings: Any) -> None:
    """Run a scenario against a server of its own."""

    async def run() -> None:
        async with rpc_server(**settings) as server:
            await scenario(server)

    asyncio.run(run())
