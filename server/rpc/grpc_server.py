"""The gRPC front: a grpc.aio server on the HTTP server's event loop.

It is imported and started after the HTTP socket answers, because importing grpc takes longer than
everything else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import grpc.aio

from runtime.errors import CancelledError, OpError, UnavailableError
from server.lifecycle import Lifecycle
from server.rpc.master_service import LARGE_BYTES, CallContext, MasterService
from server.rpc.status import status_of
from server.sessions.service import SessionService
from server.settings import Settings

_log = logging.getLogger(__name__)
Handler = Callable[[Any, CallContext], Any]


class GrpcServer:
    """The port and its services."""

    def __init__(self, sessions: SessionService, settings: Settings, lifecycle: Lifecycle) -> None:
        limit = settings.grpc.max_message_bytes
        self._lifecycle = lifecycle
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", limit),
                ("grpc.max_send_message_length", limit),
                ("grpc.so_reuseport", 0),
            ]
        )
        self._add("tensorflow.MasterService", MasterService(sessions, settings).methods())
        address = f"{settings.rest.host}:{settings.grpc.port}"
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise UnavailableError(f"Cannot listen on {address} for gRPC: {error}") from error

    async def start(self) -> None:
        """Begin to answer."""
        await self._server.start()
        _log.info("gRPC listens on port %d", self.port)

    async def stop(self, grace_seconds: float) -> None:
        """Refuse new calls; those in flight have `grace_seconds`."""
        await self._server.stop(grace_seconds)

    def _add(self, service: str, methods: Mapping[str, tuple[Any, Handler]]) -> None:
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(self._handle(request_type, handler))
            for name, (request_type, handler) in methods.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, handlers),)
        )

    def _handle(self, request_type: Any, handler: Handler) -> Callable[[bytes, Any], Any]:
        """Bytes in, bytes out: large messages are parsed and written off the event loop."""

        async def handle(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
            call = CallContext(context.time_remaining(), _metadata(context))
            self._lifecycle.begin_request()
            try:
                self._lifecycle.check_accepting()
                request = await _off_loop(len(data), request_type.FromString, data)
                response = await handler(request, call)
                size = response.ByteSize()
                answer: bytes = await _off_loop(size, type(response).SerializeToString, response)
                return answer
            except asyncio.CancelledError:
                call.cancellation.cancel(CancelledError("The client cancelled the call."))
                raise
            except OpError as error:
                code, details = status_of(error)
            except Exception:
                _log.exception("A gRPC call failed")
                code, details = grpc.StatusCode.INTERNAL, "Internal error"
            finally:
                self._lifecycle.end_request()
            await context.abort(code, details)
            raise AssertionError("abort raises")

        return handle


def _metadata(context: grpc.aio.ServicerContext[Any, Any]) -> dict[str, str]:
    return {
        key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)
    }


async def _off_loop(size: int, work: Callable[[Any], Any], argument: Any) -> Any:
    return work(argument) if size <= LARGE_BYTES else await asyncio.to_thread(work, argument)
