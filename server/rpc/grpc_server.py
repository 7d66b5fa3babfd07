"""Serve gRPC by a grpc.aio server on the HTTP server's event loop.

This module is imported after the HTTP port is open, because importing grpc takes longer than all
other imports.
"""

from __future__ import annotations

import asyncio
import logging

import grpc
import grpc.aio

from server.addresses import address_of
from server.rpc.call import Service
from server.rpc.direct_calls import DirectCalls
from server.rpc.gone_clients import quiet_gone_clients
from server.rpc.rpc_answers import Elsewhere, RpcAnswers
from server.rpc.rpc_listener import RpcListener, early_refusals
from server.rpc.services import MASTER, TENSORFLOW_SERVICES, RpcServices, rpc_services
from server.tls import NO_TLS, rpc_tls

_log = logging.getLogger(__name__)

# What the port of the background process answers, by the name of the service.
_OF_PREDICTIONS = {
    "tensorflow.serving.PredictionService": ("Predict", "Classify", "Regress", "GetModelMetadata"),
    "tensorflow.serving.ModelService": ("GetModelStatus",),
    "inference.GRPCInferenceService": (
        *("ServerLive", "ServerReady", "ServerMetadata"),
        *("ModelReady", "ModelMetadata", "ModelInfer"),
    ),
    "grpc.health.v1.Health": ("Check", "Watch"),
}


class GrpcServer:
    """The gRPC port and its services; with authentication, TensorFlow's clients may have another.

    Those clients can send no credentials, so that whoever reaches their port is one owner. What
    `elsewhere` does not answer is answered here.
    """

    def __init__(self, services: RpcServices, elsewhere: Elsewhere | None = None) -> None:
        # One count more than there are servers and channels: without it the last one to be
        # collected, on whatever thread that happens, ends gRPC's poller while a loop may use it.
        grpc.aio.init_grpc_aio()
        quiet_gone_clients()
        settings = services.settings
        grpc_settings, tls = settings.grpc, rpc_tls(settings)
        self._host = settings.rest.host
        table = rpc_services(services)
        self._listener = RpcListener(services, table, early_refusals(services), elsewhere=elsewhere)
        self.port: int | None = None
        if grpc_settings.port != 0:
            port = 0 if grpc_settings.port == "free" else grpc_settings.port
            self.port = self._listener.listen(address_of(self._host, port), tls)
        self.socket_path = grpc_settings.socket_path
        if self.socket_path is not None:
            self._listener.listen(f"unix:{self.socket_path}", tls)
        self._listeners = [self._listener]
        self.tensorflow_port: int | None = None
        if grpc_settings.tensorflow_port is not None:
            table = tuple(each for each in table if each.name in TENSORFLOW_SERVICES)
            second = RpcListener(services, table, is_for_tensorflow=True)
            address = address_of(grpc_settings.tensorflow_host, grpc_settings.tensorflow_port)
            self.tensorflow_port = second.listen(address, NO_TLS)
            self._listeners.append(second)
        self._is_shared = services.host.shares_ports

    async def start(self) -> None:
        """Start to accept calls."""
        for listener in self._listeners:
            await listener.server.start()
        if self._is_shared:  # the supervisor has logged the addresses
            return
        if self.port is not None:
            _log.info("gRPC listens on port %d", self.port)
        if self.socket_path is not None:
            _log.info("gRPC listens on the Unix socket %s", self.socket_path)
        if self.tensorflow_port is not None:
            _log.info("TensorFlow's clients may use port %d without a key", self.tensorflow_port)

    @property
    def addresses(self) -> list[str]:
        """The addresses of the services, as the log names them."""
        port = [] if self.port is None else [f"grpc://{address_of(self._host, self.port)}"]
        return port + ([] if self.socket_path is None else [f"unix:{self.socket_path}"])

    async def stop(self, grace_seconds: float) -> None:
        """Refuse new calls and end streams without a request in work.

        Running calls are cancelled after `grace_seconds`.
        """
        for each in self._listeners:
            each.end_idle_streams()
        await asyncio.gather(*(each.server.stop(grace_seconds) for each in self._listeners))


def direct_calls(
    services: RpcServices, *, of_master: bool = False, is_admitted: bool = True
) -> DirectCalls:
    """Return the calls of all methods without streams, or of TensorFlow's master alone.

    If `is_admitted`, whoever makes the calls has admitted and counted them.
    """
    table = [each for each in rpc_services(services) if each.name == MASTER or not of_master]
    return DirectCalls(RpcAnswers(services, table, is_internal=is_admitted).handlers)


def background_listener(services: RpcServices, priority: str, elsewhere: Elsewhere) -> RpcListener:
    """Return the port of the background process for predictions of low priority.

    `priority` is that of calls that name none.
    """
    quiet_gone_clients()
    table = []
    for each in rpc_services(services):
        names = _OF_PREDICTIONS.get(each.name, ())
        methods = {name: each.methods[name] for name in names}
        if methods:
            table.append(Service(each.name, methods))
    listener = RpcListener(
        services, table, early_refusals(services), elsewhere=elsewhere, priority=priority
    )
    settings = services.settings
    address = address_of(settings.rest.host, settings.grpc.background_port)
    listener.listen(address, rpc_tls(settings))
    return listener
