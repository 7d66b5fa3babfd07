"""Serve gRPC by a grpc.aio server on the HTTP server's event loop.

This module is imported after the HTTP port is open, because importing grpc takes longer than all
other imports.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from runtime.errors import InvalidArgumentError, OpError, UnavailableError
from server.codec.session.proto_steps import Undecoded
from server.connection_limits import connections_that_fit
from server.lifecycle import Lifecycle
from server.memory_in_flight import COUNTED_BYTES, Holding, MemoryInFlight, current
from server.rpc.call import CallContext, Method, Reply
from server.rpc.master_service import MasterService
from server.rpc.status import status_of
from server.sessions.service import SessionService
from server.settings import GrpcSettings, Settings
from server.steps.step_runner import off_loop

_log = logging.getLogger(__name__)
_HANDSHAKE_MS = 10_000
_PING_MS, _PONG_MS = 120_000, 20_000
_TIMES_MESSAGE = 3  # a message takes: itself, parsed, and its arrays
_LONGEST_MS = (1 << 31) - 1  # gRPC's integers


class GrpcServer:
    """The gRPC port and its services."""

    def __init__(
        self,
        sessions: SessionService,
        settings: Settings,
        lifecycle: Lifecycle,
        memory: MemoryInFlight | None = None,
    ) -> None:
        limit = settings.grpc.max_message_bytes
        self._lifecycle = lifecycle
        self._memory = MemoryInFlight() if memory is None else memory
        # One count more than there are servers and channels: without it the last one to be
        # collected, on whatever thread that happens, ends gRPC's poller while a loop may use it.
        grpc.aio.init_grpc_aio()
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", limit),
                ("grpc.max_send_message_length", limit),
                ("grpc.so_reuseport", 0),
                *_connection_options(settings.grpc),
            ]
        )
        self._add("tensorflow.MasterService", MasterService(sessions, settings).methods())
        address = f"{settings.rest.host}:{settings.grpc.port}"
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise UnavailableError(f"Cannot listen on {address} for gRPC: {error}") from error

    async def start(self) -> None:
        """Start to accept calls."""
        await self._server.start()
        _log.info("gRPC listens on port %d", self.port)

    async def stop(self, grace_seconds: float) -> None:
        """Refuse new calls; cancel the running calls after `grace_seconds`."""
        await self._server.stop(grace_seconds)

    def _add(self, service: str, methods: Mapping[str, Method]) -> None:
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(self._handle(method))
            for name, method in methods.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, handlers),)
        )

    def _handle(self, method: Method) -> Callable[[bytes, Any], Any]:
        """Return the gRPC handler of a method.

        The handler takes a serialized request and returns a serialized response. Large messages are
        read and written on another thread.
        """

        async def handle(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
            call = CallContext(context.time_remaining(), _metadata(context))
            self._lifecycle.begin_request()
            holding = Holding()  # as `begin_request` does
            holding.memory = self._memory
            current.set(holding)
            try:
                self._lifecycle.check_accepting()
                if len(data) >= COUNTED_BYTES:
                    holding.add(len(data) * _TIMES_MESSAGE, is_body=True)
                request = await off_loop(len(data), _read, method, data)
                if isinstance(request, Undecoded):
                    holding.add(request.size)
                    request = await off_loop(request.size, request.decode)
                reply = await method.answer(request, call)
                if not isinstance(reply, Reply):
                    reply = Reply(reply.ByteSize(), reply.SerializeToString)
                return await off_loop(reply.size, reply.write, *reply.arguments)
            except OpError as error:
                code, details = status_of(error)
            except Exception:
                _log.exception("A gRPC call failed")
                code, details = grpc.StatusCode.INTERNAL, "Internal error"
            finally:
                if holding.size:
                    holding.end()
                self._lifecycle.end_request()
            await context.abort(code, details)
            raise AssertionError("abort raises")

        return handle


def _connection_options(limits: GrpcSettings) -> list[tuple[str, int]]:
    """Return gRPC's own limits of connections.

    Source of the names: grpc/impl/channel_arg_names.h
    """
    return [
        (
            "grpc.max_allowed_incoming_connections",
            min(limits.max_connections, connections_that_fit()),
        ),
        ("grpc.max_concurrent_streams", limits.max_concurrent_streams),
        ("grpc.max_connection_idle_ms", min(int(limits.idle_seconds * 1000), _LONGEST_MS)),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ("grpc.keepalive_time_ms", _PING_MS),  # finds connections whose other end is gone
        ("grpc.keepalive_timeout_ms", _PONG_MS),
    ]


def _read(method: Method, data: bytes) -> Any:
    """Return the parsed request; raise InvalidArgumentError if `data` is no such message."""
    try:
        return method.read(data)
    except DecodeError as error:
        raise InvalidArgumentError(f"The request cannot be parsed: {error}") from None


def _metadata(context: grpc.aio.ServicerContext[Any, Any]) -> dict[str, str]:
    return {
        key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)
    }
