"""gRPC reflection, v1alpha and v1: what services there are, and what their messages look like.

Both versions have the same messages. The names are those on the wire (see `wire_names`). The
answers are the same for every caller and hold nothing of the models, so that no credentials are
required.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import aio as reflection

from server.rpc.call import CallContext, Stream
from server.rpc.wire_names import wire_pool

NAMES = ("grpc.reflection.v1alpha.ServerReflection", "grpc.reflection.v1.ServerReflection")


class ReflectionService:
    """The service of one server; `services` are the full names that it lists."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = tuple(services)
        self._answers: reflection.ReflectionServicer | None = None  # made for the first client

    def methods(self) -> dict[str, Stream]:
        """Return the methods of the service by name."""
        read = reflection_pb2.ServerReflectionRequest.FromString
        return {"ServerReflectionInfo": Stream(read, self.info, is_work=False)}

    async def info(
        self, requests: AsyncIterator[reflection_pb2.ServerReflectionRequest], call: CallContext
    ) -> AsyncGenerator[reflection_pb2.ServerReflectionResponse, None]:
        """Return a response to each request."""
        if self._answers is None:
            pool = wire_pool(others=[health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR])
            pool.Add(_file_of_v1())
            self._answers = reflection.ReflectionServicer(self._services, pool)
        async for response in self._answers.ServerReflectionInfo(requests, None):
            yield response


def _file_of_v1() -> FileDescriptorProto:
    """Return the file of version 1, which grpcio-reflection does not have."""
    proto = FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(proto)
    text = text_format.MessageToString(proto).replace("v1alpha", "v1")
    return text_format.Parse(text, FileDescriptorProto())
