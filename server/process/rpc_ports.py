"""RpcPorts: the gRPC ports of one process, which it opens once its HTTP port is open.

The module of the ports is imported by then, because importing grpc takes longer than all other
imports.

Guarantees: used from one event loop.
"""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType
from typing import Any

from server.app import Services
from server.background.background_link import BackgroundLink
from server.process.late_imports import with_descriptors
from server.process.shared_ports import SharedPorts
from server.processes.worker_host import WorkerHost

_GRPC = "gRPC"  # what the lifecycle calls the port


class RpcPorts:
    """The ports of a process that serves alone (`ports` is None) or is one of several.

    A process has the port and the Unix socket of the settings, or, as the background process of a
    server with gRPC, `grpc.background_port`, or none. One of several answers the calls that others
    pass on.
    """

    def __init__(self, services: Services, ports: SharedPorts | None) -> None:
        self._services = services
        self._ports = ports
        self._server: Any = None  # a GrpcServer
        self._listeners: list[Any] = []  # RpcListeners: background_port
        self._passed: Any = None  # the DirectCalls that others pass on
        settings = services.settings.grpc
        self._has_server = settings.port != 0 or settings.socket_path is not None
        if self._has_server:
            services.lifecycle.expect_port(_GRPC)

    @property
    def addresses(self) -> list[str]:
        """The addresses that clients may use, as the log names them."""
        return [] if self._server is None else list(self._server.addresses)

    async def open(self, link: BackgroundLink | None, joined: asyncio.Event) -> None:
        """Open the ports; `link` is that of the process, which must have begun.

        What the processes share is opened once this one has `joined` the others. Raises
        UnavailableError if a port is taken.
        """
        if self._has_server:
            module = await _imported("server.rpc.grpc_server")
            await self._answer_others(module, of_master=True)
            await joined.wait()
            self._server = module.GrpcServer(self._services, await self._passed_calls(link))
            await self._server.start()
            self._services.lifecycle.port_is_open(_GRPC)
        elif self._ports is not None and self._ports.has_rpc:
            module = await _imported("server.rpc.grpc_server")
            await self._answer_others(module)
            await self._open_background_port(module, link)

    async def _answer_others(self, rpc: ModuleType, *, of_master: bool = False) -> None:
        """Answer the calls that other processes pass on, or those of TensorFlow's master alone."""
        host = self._services.host
        if isinstance(host, WorkerHost) and (host.processes > 1 or host.is_background):
            module = await _imported("server.background.passed_rpcs")
            calls = rpc.direct_calls(self._services, of_master=of_master)
            host.passed_rpcs = module.PassedRpcs(calls)
            self._passed = calls

    async def _open_background_port(self, rpc: ModuleType, link: BackgroundLink | None) -> None:
        """Open the gRPC port for predictions of low priority, if there is one."""
        services = self._services
        if services.settings.grpc.background_port == 0 or link is None or link.place is None:
            return
        module = await _imported("server.background.background_port")
        checks = module.BackgroundPort(link.priorities, services.models, link.place)
        priority = next(each for each in services.settings.priorities if each in link.priorities)
        await self._listen(rpc.background_listener(services, priority, checks))

    async def _listen(self, listener: Any) -> None:
        self._listeners.append(listener)
        await listener.server.start()

    async def _passed_calls(self, link: BackgroundLink | None) -> Any:
        """Return the gRPC calls that the background process answers; None if it answers none."""
        host = self._services.host
        if not isinstance(host, WorkerHost) or host.is_background or link is None or not link.place:
            return None
        module = await _imported("server.background.background_calls")
        return module.BackgroundCalls(host, self._services.models, link.place)

    async def close(self, grace_seconds: float) -> None:
        """Refuse new calls, and cancel those that still run after `grace_seconds`."""
        for each in self._listeners:
            each.end_idle_streams()
        if self._server is not None:
            await self._server.stop(grace_seconds)
        passed = [] if self._passed is None else [self._passed.stop(grace_seconds)]
        stopped = (each.server.stop(grace_seconds) for each in self._listeners)
        await asyncio.gather(*passed, *stopped)


async def _imported(name: str) -> ModuleType:
    """Import a module that imports grpc."""
    return await with_descriptors(importlib.import_module, name)
