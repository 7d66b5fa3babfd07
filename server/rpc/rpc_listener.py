"""RpcListener: one gRPC port, which admits and counts calls and hands them to their services.

Guarantees: used from one event loop. Large messages are parsed and written on other threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

import grpc
import grpc.aio

from runtime.errors import OpError, UnavailableError
from server.access.access import Access
from server.access.caller import LOCAL
from server.addresses import host_and_port
from server.connections.connection_limits import connections_that_fit
from server.file_watch import FileWatch
from server.processes.reserved_port import check_free
from server.rpc.call import Method, Service, Stream
from server.rpc.rpc_answers import Elsewhere, RpcAnswers, received, texts, written
from server.rpc.services import RpcServices
from server.rpc.status import status_of
from server.settings_sections.ports import GrpcSettings
from server.tls import TlsFiles, TlsSource

_log = logging.getLogger(__name__)
_HANDSHAKE_MS = 10_000
_PING_MS, _PONG_MS = 120_000, 20_000
_LONGEST_MS = (1 << 31) - 1  # gRPC's integers


def early_refusals(services: RpcServices) -> list[grpc.aio.ServerInterceptor]:
    """Return what refuses calls before their messages are received."""
    settings, access = services.settings, services.access
    may_have_names = settings.tls.client_ca_file or settings.grpc.ssl_config_file
    return [_EarlyRefusal(access)] if access.is_required and not may_have_names else []


class _EarlyRefusal(grpc.aio.ServerInterceptor):  # type: ignore[misc] # grpc has no types
    """Refuses calls of nobody known before their messages, which may be large, are received."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        """Return the handler of a call."""
        metadata = texts(details.invocation_metadata)
        try:
            self._access.check_rpc_token(metadata, details.method)
        except OpError as error:
            code, text = status_of(error)
            self._access.count_refusal("grpc", error)

            async def refuse(_: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
                await context.abort(code, text)

            # A handler of a stream is called before the first message.
            return grpc.stream_unary_rpc_method_handler(refuse)
        return await continuation(details)


class RpcListener:
    """One port, with the services of `table`; that of TensorFlow's clients if `is_for_tensorflow`.

    The port is shared with other processes if those of the host are, or if it has a `priority`,
    which is that of calls that name none.
    """

    def __init__(
        self,
        services: RpcServices,
        table: Sequence[Service],
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        *,
        is_for_tensorflow: bool = False,
        elsewhere: Elsewhere | None = None,
        priority: str | None = None,
    ) -> None:
        self._answers = RpcAnswers(
            services,
            table,
            is_for_tensorflow=is_for_tensorflow,
            elsewhere=elsewhere,
            priority=priority,
        )
        self._stopping = asyncio.Event()
        # Of the streams that wait for their next message, which may never come.
        self._idle: set[asyncio.Task[Any]] = set()
        self._is_shared = services.host.shares_ports or priority is not None
        options = _channel_options(services.settings.grpc, self._is_shared)
        self.server = grpc.aio.server(interceptors=interceptors, options=options)
        self.server.add_generic_rpc_handlers(
            tuple(
                grpc.method_handlers_generic_handler(
                    service.name,
                    {
                        name: self._handler(f"/{service.name}/{name}", method)
                        for name, method in service.methods.items()
                    },
                )
                for service in table
            )
        )

    def _handler(self, path: str, method: Method | Stream) -> grpc.RpcMethodHandler:
        if isinstance(method, Method):
            return grpc.unary_unary_rpc_method_handler(self._answers.handlers[path])
        # One request or one response has the same form on the wire as a stream of one.
        return grpc.stream_stream_rpc_method_handler(self._handle_stream(path, method))

    def listen(self, address: str, tls: TlsSource) -> int:
        """Open a port, and return its number; raise UnavailableError if it is taken."""
        files = tls.read()
        try:
            if files is None:
                return int(self.server.add_insecure_port(address))
            self._answers.has_certificates = files.client_ca is not None
            return int(self.server.add_secure_port(address, _credentials(tls, files)))
        except RuntimeError as error:
            host, port = host_and_port(address)
            if port.isdecimal():  # this raises with a reason, which gRPC's text lacks
                check_free("gRPC", host, int(port), is_shared=self._is_shared)
            raise UnavailableError(f"Cannot listen on {address} for gRPC: {error}") from error

    def _handle_stream(self, path: str, stream: Stream) -> Callable[[Any, Any], Any]:
        """Return the gRPC handler of a method with streams of serialized messages."""

        async def requests(messages: AsyncIterator[bytes]) -> AsyncGenerator[Any, None]:
            while (data := await self._next_message(messages)) is not None:
                if not stream.is_work:
                    yield stream.read(data)
                    continue
                holding = self._answers.begin_work()
                try:
                    self._answers.lifecycle.check_accepting()
                    yield await received(stream, data, holding)
                finally:
                    self._answers.end_work(holding)

        async def handle(
            messages: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]
        ) -> AsyncIterator[bytes]:
            caller = LOCAL
            try:
                call = self._answers.begin(path, context)
                caller = call.caller
                async with (
                    contextlib.aclosing(requests(messages)) as parsed,
                    contextlib.aclosing(stream.answer(parsed, call)) as replies,
                ):
                    async for reply in replies:
                        yield await written(reply, self._answers.payer(caller), 0)
                    return
            except Exception as error:
                failure = error
            await self._answers.abort(context, failure, caller)

        return handle

    async def _next_message(self, messages: AsyncIterator[bytes]) -> bytes | None:
        """Return the next message of a stream, or None if it ends or the server stops."""
        task = asyncio.current_task()
        if self._stopping.is_set() or task is None:
            return None
        self._idle.add(task)
        try:
            return await anext(messages, None)
        except asyncio.CancelledError:
            if not self._stopping.is_set() or task.uncancel():
                raise
            return None
        finally:
            self._idle.discard(task)

    def end_idle_streams(self) -> None:
        """End the streams that wait for a message, as if their clients had ended them."""
        self._stopping.set()
        for task in self._idle:
            task.cancel()


def _credentials(tls: TlsSource, files: TlsFiles) -> grpc.ServerCredentials:
    """Return the credentials of a port, which read changed files for new connections."""
    watch = FileWatch(tls.paths)

    def configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
        pairs = [(files.key, files.certificates)]
        return grpc.ssl_server_certificate_configuration(pairs, files.client_ca)

    def fetch() -> grpc.ServerCertificateConfiguration | None:  # called for each new connection
        if not watch.has_changed():
            return None
        try:
            fresh = tls.read()
        except OpError as error:
            _log.error("The certificate is unchanged, because a file is wrong: %s", error.message)
            return None
        return None if fresh is None else configuration(fresh)

    return grpc.dynamic_ssl_server_credentials(
        configuration(files), fetch, require_client_authentication=files.client_ca is not None
    )


def _channel_options(limits: GrpcSettings, is_shared: bool) -> list[tuple[str, int | str]]:
    """Return gRPC's own limits of messages and connections, each name once.

    gRPC uses the first option of a name, and those of the settings have precedence. If `is_shared`,
    several processes listen on one port.

    Source of the names: grpc/impl/channel_arg_names.h
    """
    options: dict[str, int | str] = {
        "grpc.max_receive_message_length": limits.max_message_bytes,
        "grpc.max_send_message_length": limits.max_message_bytes,
        "grpc.so_reuseport": int(is_shared),
        "grpc.max_allowed_incoming_connections": min(
            limits.max_connections, connections_that_fit()
        ),
        "grpc.max_concurrent_streams": limits.max_concurrent_streams,
        "grpc.max_connection_idle_ms": min(int(limits.idle_seconds * 1000), _LONGEST_MS),
        "grpc.server_handshake_timeout_ms": _HANDSHAKE_MS,
        "grpc.keepalive_time_ms": _PING_MS,  # finds connections whose other end is gone
        "grpc.keepalive_timeout_ms": _PONG_MS,
    }
    return list((options | dict(limits.channel_arguments)).items())
