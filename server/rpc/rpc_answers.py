"""RpcAnswers: the gRPC calls of one port, or of other processes: admitted, counted and answered.

Guarantees: used from one event loop. Large messages are parsed and written on other threads.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import grpc
import orjson
from google.protobuf.message import DecodeError, Message

from runtime.errors import InvalidArgumentError, OpError
from server.access.caller import LOCAL, Caller
from server.access.limits import Usage
from server.codec.session.proto_steps import Undecoded
from server.memory_in_flight import COUNTED_BYTES, Holding, current
from server.rpc.call import (
    CERTIFICATE_NAMES,
    FOR_TENSORFLOW,
    PRIORITY_METADATA,
    RETRY_AFTER,
    CallContext,
    Method,
    Reply,
    Service,
    Stream,
)
from server.rpc.services import RpcServices
from server.rpc.status import status_of
from server.steps.step_runner import off_loop
from server.tls import rpc_certificate_names

_log = logging.getLogger(__name__)
_TIMES_MESSAGE = 3  # a message takes: itself, parsed, and its arrays
# Takes a serialized request and gRPC's context of the call; returns the serialized response.
Handler: TypeAlias = Callable[[bytes, Any], Awaitable[bytes]]


class Elsewhere(Protocol):
    """What another process answers."""

    async def answer(self, path: str, data: bytes, context: CallContext) -> bytes | None:
        """Return the serialized response to a call that was admitted; None if it belongs here."""


class RpcAnswers:
    """The handlers of the methods of `table`; of TensorFlow's clients if `is_for_tensorflow`.

    If `is_internal`, its calls are from other processes, which have admitted and counted them.
    `priority` is that of calls that name none.
    """

    def __init__(
        self,
        services: RpcServices,
        table: Sequence[Service],
        *,
        is_for_tensorflow: bool = False,
        is_internal: bool = False,
        elsewhere: Elsewhere | None = None,
        priority: str | None = None,
    ) -> None:
        self._priority = priority
        self._is_internal = is_internal
        self._metrics = services.metrics
        self._access = services.access
        self._memory = services.memory
        self._is_for_tensorflow = is_for_tensorflow
        self._elsewhere = elsewhere
        self.lifecycle = services.lifecycle
        self.has_certificates = False
        # Of the methods without streams, by their paths.
        self.handlers: dict[str, Handler] = {
            f"/{service.name}/{name}": self._handle(f"/{service.name}/{name}", method)
            for service in table
            for name, method in service.methods.items()
            if isinstance(method, Method)
        }

    def _handle(self, path: str, method: Method) -> Handler:
        """Return the gRPC handler of a method.

        The handler takes a serialized request and returns a serialized response. Large messages are
        read and written on another thread.
        """

        async def handle(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
            caller = LOCAL
            try:
                holding = self.begin_work()
                try:
                    call = self.begin(path, context)
                    caller = call.caller
                    self.lifecycle.check_accepting(frees_memory=method.frees_memory)
                    if self._elsewhere is not None:
                        passed = await self._elsewhere.answer(path, data, call)
                        if passed is not None:
                            return _paid(passed, self.payer(caller), len(data))
                    request = await received(method, data, holding)
                    reply = await method.answer(request, call)
                    return await written(reply, self.payer(caller), len(data))
                finally:
                    self.end_work(holding)
            except Exception as error:
                failure = error
            await self.abort(context, failure, caller)
            raise AssertionError("abort raises")

        return handle

    def begin_work(self) -> Holding:
        """Count a request, until `end_work`, and return what its messages hold in memory."""
        self.lifecycle.begin_request()
        holding = Holding()  # as `begin_request` of MemoryInFlight does
        holding.memory = self._memory
        current.set(holding)
        return holding

    def end_work(self, holding: Holding) -> None:
        """Count the end of a request."""
        if holding.size:
            holding.end()
        self.lifecycle.end_request()

    async def abort(
        self, context: grpc.aio.ServicerContext[Any, Any], error: Exception, caller: Caller
    ) -> None:
        """End a call with the status of an error."""
        trailers: list[tuple[str, str]] = []
        if isinstance(error, DecodeError):
            error = InvalidArgumentError(f"The request cannot be parsed: {error}")
        if isinstance(error, OpError):
            code, details = status_of(error, caller)
            self._access.count_refusal("grpc", error)
            if error.retry_after_seconds:
                seconds = max(1, math.ceil(error.retry_after_seconds))
                trailers.append((RETRY_AFTER, str(seconds)))
        else:
            _log.error("A gRPC call failed", exc_info=error)
            code, details = grpc.StatusCode.INTERNAL, "Internal error"
        self._metrics.rpc_failed(code.name)
        await context.abort(code, details, tuple(trailers))

    def payer(self, caller: Caller) -> Usage | None:
        """Return what counts the bytes of a call; None if nothing does here."""
        return None if self._is_internal else caller.usage

    def begin(self, path: str, context: grpc.aio.ServicerContext[Any, Any]) -> CallContext:
        """Return the context of a call that is admitted; raise the error of any other."""
        metadata = texts(context.invocation_metadata())
        if self._priority is not None:
            metadata = {PRIORITY_METADATA: self._priority, **metadata}
        has_names = self.has_certificates
        names = rpc_certificate_names(context.auth_context()) if has_names else ()
        is_for_tensorflow = self._is_for_tensorflow
        if self._is_internal:
            names = tuple(orjson.loads(metadata.get(CERTIFICATE_NAMES, "[]")))
            is_for_tensorflow = FOR_TENSORFLOW in metadata
        caller = self._access.admit_rpc(
            path,
            metadata,
            names,
            is_for_tensorflow=is_for_tensorflow,
            is_new=not self._is_internal,
        )
        return CallContext(
            context.time_remaining(), metadata, caller, names, is_for_tensorflow=is_for_tensorflow
        )


async def received(method: Method | Stream, data: bytes, holding: Holding) -> Any:
    """Return the parsed request; a large one is parsed on another thread."""
    if len(data) >= COUNTED_BYTES:
        holding.add(len(data) * _TIMES_MESSAGE, is_body=True)
    request = await off_loop(len(data), method.read, data)
    if isinstance(request, Undecoded):
        holding.add(request.size)
        request = await off_loop(request.size, request.decode)
    return request


async def written(reply: Message | Reply, payer: Usage | None, request_bytes: int) -> bytes:
    """Return the serialized response to a request of some bytes, which `payer` pays."""
    if not isinstance(reply, Reply):
        reply = Reply(reply.ByteSize(), reply.SerializeToString)
    if payer is not None:
        payer.add_bytes(request_bytes + reply.size)
    return await off_loop(reply.size, reply.write, *reply.arguments)


def _paid(passed: bytes, payer: Usage | None, request_bytes: int) -> bytes:
    """Return the response of another process to a request of some bytes."""
    if payer is not None:
        payer.add_bytes(request_bytes + len(passed))
    return passed


def texts(metadata: Iterable[tuple[str, str | bytes]] | None) -> dict[str, str]:
    """Return the metadata whose values are texts."""
    return {key: value for key, value in metadata or () if isinstance(value, str)}
