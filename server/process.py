"""The server process: one event loop under uvicorn, which drains on SIGTERM.

After the first SIGTERM or SIGINT the response to new work is 503, and running requests have
`rest.drain_seconds` to finish. Then the sessions are closed and the process exits with 0. A second
signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import errno
import functools
import importlib
import logging
import math
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, TypeVar

import uvicorn

from runtime.api import (
    ignore_float_errors,
    keep_freed_memory,
    keep_model_objects_apart,
    make_way,
    share_processors_among_runs,
)
from runtime.errors import FailedPreconditionError, OpError
from server.access.exposure import exposure
from server.app import Services, create_app, make_services
from server.background.background_link import BackgroundLink
from server.background.background_settings import low_priorities, with_background_port
from server.background.front_host import FrontHost
from server.connections.connection_limits import Connections, raise_descriptor_limit
from server.connections.http_protocol import HttpProtocol
from server.connections.tls_connection import TlsConnection
from server.host import ALONE, Host
from server.log import configure_logging
from server.models.freed_memory import collect_less_often, keep_from_collector
from server.processes.host_table import HostTable, WorkerState
from server.processes.reserved_port import check_ports
from server.processes.shared_listener import SharedListener
from server.processes.worker_host import WorkerHost
from server.settings import Settings
from server.start_log import Start, log_start
from server.tls import read_tls_files, reload_certificate, rpc_tls, server_options

_log = logging.getLogger(__name__)
T = TypeVar("T")

GRPC = "gRPC"
# The imports of grpc and of the HTTP framework wait for models that load quickly, and then for the
# first requests, at most this long.
FIRST_LOADS_SECONDS = 1.0
FIRST_REQUESTS_SECONDS = 0.5
AGAIN_SECONDS = 0.2  # between two attempts to import what the descriptors did not suffice for
QUIET_SECONDS = 0.05  # without a request, after which the first ones are taken to be over
READY_SECONDS = 0.1  # between two looks whether all models are loaded, for the log
CLOSING_SECONDS = 5  # the time to finish sending responses after all sessions are closed
# A background process that drains refuses nothing for so long: what others have handed over already
# is still answered here, and what comes later is handed back.
HANDED_OVER_SECONDS = 0.05


@dataclasses.dataclass(frozen=True, slots=True)
class SharedPorts:
    """What one of several processes of a server inherits: see server/supervision.

    `listener` is the HTTP socket on which each of them accepts, or None. `supervisor` is a pipe
    that ends when the supervisor does. `has_rpc` is whether the other processes, which pass calls
    on, have gRPC, which the background process has no port for.
    """

    host: WorkerHost
    listener: socket.socket | None
    supervisor: int
    has_rpc: bool = False


def serve(settings: Settings, start: Start | None, ports: SharedPorts | None = None) -> int:
    """Serve until a signal, and return the exit code; `start` is None if the log has it already.

    `ports` is given in one of several processes.
    """
    configure_logging(settings.log.level, settings.log.format)
    if ports is not None:
        return _serve(settings, start, ports)
    with with_background_port(settings) as numbered:
        return _serve(numbered, start, None)


def _serve(settings: Settings, start: Start | None, ports: SharedPorts | None) -> int:
    collect_less_often()
    keep_freed_memory()
    keep_model_objects_apart()
    ignore_float_errors()
    share_processors_among_runs()
    warning = exposure(settings)
    if warning is not None and start is not None:
        _log.warning("%s", warning)
    read_tls_files(settings.tls)  # raises if a file is wrong
    rpc_tls(settings).read()
    raise_descriptor_limit()
    if ports is None:
        check_ports(settings)
    host = _host(settings, ports)
    if isinstance(host, WorkerHost):
        host.background_priorities = low_priorities(settings)
    services = make_services(settings, host=host)
    if start is not None:
        log_start(start, settings, services.priorities, services.models)
    rest_port = settings.rest.port
    server = DrainingServer(
        uvicorn.Config(
            create_app(services),
            host=settings.rest.host,
            port=0 if rest_port == "free" else rest_port,
            http=HttpProtocol,
            ws="none",
            timeout_keep_alive=max(1, math.ceil(settings.rest.keep_alive_seconds)),
            lifespan="on",
            log_config=None,  # see server/log.py
            access_log=False,  # see server/middleware.py
            server_header=False,
            timeout_graceful_shutdown=CLOSING_SECONDS,
            **server_options(settings.tls),
        ),
        services,
        ports,
    )
    # The socket of several processes is none of uvicorn's: see server/processes/shared_listener.py.
    server.run(sockets=[] if rest_port == 0 or ports is not None else None)
    if isinstance(host, WorkerHost) and host.removes_sockets(is_orphan=server.is_orphan):
        host.remove_sockets()
    return 0 if server.started and not server.has_failed else 1


def _host(settings: Settings, ports: SharedPorts | None) -> Host:
    """Return what serves with this process; raise the error of a Ray cluster without a way in."""
    if ports is not None:
        return ports.host
    if settings.placement == "local":
        return FrontHost(HostTable.create(1)) if low_priorities(settings) else ALONE
    try:
        from server.ray_sessions.ray_host import RayHost
    except ImportError:
        raise FailedPreconditionError(
            "placement is ray, which requires the extra: pip install 'runstep[ray]'"
        ) from None
    host = RayHost(settings)
    host.connect()
    return host


@contextlib.contextmanager
def _faults_of_uvicorn() -> Iterator[list[str]]:
    """Yield what uvicorn says of errors of the system, which then is not logged."""
    faults: list[str] = []

    def keep(record: logging.LogRecord) -> bool:
        error = record.msg
        if isinstance(error, OSError):
            # asyncio's texts repeat the address, and end with that of the system.
            number = error.errno or 0  # negative where a name can't be resolved
            faults.append(os.strerror(number) if number > 0 else str(error.strerror or error))
        return not isinstance(error, OSError)

    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(keep)
    try:
        yield faults
    finally:
        logger.removeFilter(keep)


async def first_requests(services: Services) -> None:
    """Wait until the first models are loaded and the requests that came meanwhile have ended.

    An import at the same time would delay both.
    """
    await asyncio.to_thread(services.models.wait_until_settled, FIRST_LOADS_SECONDS)
    for _ in range(round(FIRST_REQUESTS_SECONDS / QUIET_SECONDS)):
        ended = services.lifecycle.ended
        await asyncio.sleep(QUIET_SECONDS)
        if not services.lifecycle.in_flight and services.lifecycle.ended == ended:
            return


async def with_descriptors(work: Callable[..., T], *arguments: object) -> T:
    """Do work that opens files on another thread; again, while the process has no descriptors.

    The ports are open by then, and clients may have taken them all.
    """
    while True:
        try:
            return await asyncio.to_thread(work, *arguments)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            _log.warning("The server has not started wholly, and tries again: %s", error)
        await asyncio.sleep(AGAIN_SECONDS)


class DrainingServer(uvicorn.Server):
    """uvicorn's server, which drains before it stops."""

    def __init__(
        self, config: uvicorn.Config, services: Services, ports: SharedPorts | None = None
    ) -> None:
        super().__init__(config)
        self._services = services
        self._ports = ports
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: asyncio.Task[None] | None = None
        self._grpc: Any = None  # a GrpcServer, whose module is imported once the HTTP port is open
        self._background_port: Any = None  # that of predictions of low priority, if this has it
        self._passed_on: Any = None  # its port for calls that other processes pass on
        self._late_start: asyncio.Task[None] | None = None  # of gRPC and of the HTTP framework
        self._certificate: asyncio.Task[None] | None = None  # which reads it when it changes
        self._ready_log: asyncio.Task[None] | None = None
        self._catch_up: asyncio.Task[None] | None = None  # with changes of the models
        self._background: BackgroundLink | None = None
        self._addresses: list[str] = []
        grpc_settings = services.settings.grpc
        self._has_grpc = grpc_settings.port != 0 or grpc_settings.socket_path is not None
        if self._has_grpc:
            services.lifecycle.expect_port(GRPC)
        self.has_failed = False
        self.is_orphan = False  # the process that supervised this one has ended

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the HTTP port and log its address."""
        self._loop = asyncio.get_running_loop()
        if self._ports is not None:
            self._loop.add_reader(self._ports.supervisor, self._supervisor_has_ended)
        threads = self._services.settings.rest.codec_threads
        self._loop.set_default_executor(ThreadPoolExecutor(threads, "codec", make_way))
        plain = copy.copy(self.config)  # for the socket of the other processes
        context, self.config.ssl = self.config.ssl, None
        if context is not None:
            # uvicorn calls it as it calls the class.
            self.config.http_protocol_class = functools.partial(TlsConnection, context)  # type: ignore[assignment] # see above
        try:
            with _faults_of_uvicorn() as faults:
                await super().startup(sockets)
        except SystemExit:  # uvicorn has ended what it had begun
            for fault in faults:
                where = f"{self.config.host}:{self.config.port}"
                _log.error("Cannot listen on %s for HTTP: %s", where, fault)
            self.has_failed = self.should_exit = True
            return
        if self._ports is not None and self._ports.listener is not None:
            self._share(self._ports.listener, self._ports.host)
        scheme = "https" if self.config.is_ssl else "http"
        for listener in self.servers:
            for each in listener.sockets:
                host, port = each.getsockname()[:2]
                address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
                self._addresses.append(address)
                if self._ports is None:
                    _log.info("HTTP listens on %s", address)
        if context is not None:
            tls = self._services.settings.tls
            self._certificate = self._loop.create_task(reload_certificate(tls, context))
        host = self._services.host
        if isinstance(host, WorkerHost):
            listen = functools.partial(self._listen_for_others, plain, host)
            self._background = BackgroundLink(
                self._services, host, self._protocol(self.config), listen
            )
            self._background.begin(self.config.app.connections)  # type: ignore[union-attr] # RequestMiddleware
            if self._ports is not None:
                await listen()
        if self.started:
            self._late_start = self._loop.create_task(self._start_the_rest())
            self._ready_log = self._loop.create_task(self._log_ready())

    async def _listen_for_others(self, config: uvicorn.Config, host: WorkerHost) -> None:
        """Open the Unix socket of this process for the other ones."""
        from server.internal_calls import Changes, InternalCalls, says_of

        assert self._loop is not None
        services = self._services
        changes = Changes(host, services.administration)
        own = InternalCalls(self.config.app, says_of(services), changes)  # type: ignore[arg-type] # as it was given
        config.ssl = None
        config.app = config.loaded_app = own
        path = str(host.socket_path)
        self.servers.append(await self._loop.create_unix_server(self._protocol(config), path))
        self._catch_up = self._loop.create_task(changes.catch_up())

    def _share(self, listener: socket.socket, host: WorkerHost) -> None:
        """Accept the connections to a socket in turn with the other processes."""
        connections: Connections = self.config.app.connections  # type: ignore[union-attr] # Middleware
        shared = SharedListener(listener, self._protocol(self.config), host, connections.__len__)
        connections.on_change = shared.note_count
        self.servers.append(shared)  # type: ignore[arg-type] # it has what uvicorn uses

    def _protocol(self, config: uvicorn.Config) -> Callable[[], asyncio.Protocol]:
        """Return what makes the protocol of a connection, as uvicorn does."""
        make: Any = config.http_protocol_class
        return functools.partial(
            make,
            config=config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    def _supervisor_has_ended(self) -> None:
        assert self._loop is not None and self._ports is not None
        self._loop.remove_reader(self._ports.supervisor)
        self.is_orphan = True
        _log.error("The process that supervises this one has ended")
        if self._ports.host.is_background:  # another one may begin before this one has drained
            self._ports.host.leave_row()
        self._begin_drain()

    async def _follow_readiness(self, ports: SharedPorts) -> None:
        """Tell the other processes whether this one serves, for as long as it does."""
        services = self._services
        assert self._catch_up is not None
        await self._catch_up
        is_starting = True
        while True:
            is_ready = not (services.lifecycle.not_ready() or services.models.not_ready())
            if is_ready and is_starting and self._background is not None:
                is_starting = False
                await self._background.be_ready()
            ports.host.note_state(WorkerState.READY if is_ready else WorkerState.STARTING)
            await asyncio.sleep(READY_SECONDS)

    async def _log_ready(self) -> None:
        """Log that the server serves, once each port is open and each model is loaded."""
        services = self._services
        assert self._late_start is not None
        await asyncio.wait((self._late_start,))
        if self._ports is not None:
            await self._follow_readiness(self._ports)
        while services.lifecycle.not_ready() or services.models.not_ready():
            await asyncio.sleep(READY_SECONDS)
        if not self.should_exit:
            names = services.models.model_names()
            what = f"models {', '.join(names)}" if names else "sessions; there are no models"
            if isinstance(services.host, FrontHost):
                services.host.note_state(WorkerState.READY)
            _log.info("Serving on %s: %s", " and ".join(self._addresses), what)

    async def _start_the_rest(self) -> None:
        """Import what the first predictions do not require, and open the gRPC port.

        If the port cannot be opened or a module cannot be imported, end the server.
        """
        services, application = self._services, self.config.app
        await first_requests(services)
        try:
            if self._has_grpc:
                module = await with_descriptors(importlib.import_module, "server.rpc.grpc_server")
                self._grpc = module.GrpcServer(services, await self._passed_calls())
                await self._grpc.start()
                self._addresses += self._grpc.addresses
                services.lifecycle.port_is_open(GRPC)
            elif self._ports is not None and self._ports.has_rpc:
                module = await with_descriptors(importlib.import_module, "server.rpc.grpc_server")
                path = self._ports.host.rpc_socket
                self._passed_on = module.internal_listener(
                    services, f"unix:{path}", is_admitted=True
                )
                await self._passed_on.server.start()
                await self._open_background_port(module)
            await with_descriptors(application.prepare)  # type: ignore[union-attr] # RequestMiddleware
            keep_from_collector()  # modules stay until the end, so no collection must visit them
        except OpError as error:
            _log.error("%s", error.message)
            self.has_failed = self.should_exit = True
        except Exception:
            _log.exception("The server does not start")
            self.has_failed = self.should_exit = True

    async def _open_background_port(self, rpc: Any) -> None:
        """Open the gRPC port of the background process, if it has one."""
        services, link = self._services, self._background
        if services.settings.grpc.background_port == 0 or link is None or link.place is None:
            return
        name = "server.background.background_port"  # imports grpc
        module = await with_descriptors(importlib.import_module, name)
        checks = module.BackgroundPort(link.priorities, services.models, link.place)
        priority = next(each for each in services.settings.priorities if each in link.priorities)
        self._background_port = rpc.background_listener(services, priority, checks)
        await self._background_port.server.start()

    async def _passed_calls(self) -> Any:
        """Return the gRPC calls that the background process answers; None if it answers none."""
        host, link = self._services.host, self._background
        if not isinstance(host, WorkerHost) or host.is_background or link is None or not link.place:
            return None
        name = "server.background.background_calls"  # imports grpc
        module = await with_descriptors(importlib.import_module, name)
        return module.BackgroundCalls(host, self._services.models, link.place)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal: the first signal drains the server, the next one ends the process."""
        if self._loop is None or self._drain is not None:
            self.should_exit = self.force_exit = True
            return
        # A signal handler runs between any two instructions, so the event loop must do the work.
        self._loop.call_soon_threadsafe(self._begin_drain)

    def _begin_drain(self) -> None:
        if self._drain is None:
            self._drain = asyncio.get_running_loop().create_task(self._drain_and_exit())

    async def _drain_and_exit(self) -> None:
        settings, lifecycle = self._services.settings, self._services.lifecycle
        if self._late_start is not None:
            self._late_start.cancel()  # a port that is not open yet stays closed
        for task in (self._certificate, self._ready_log, self._catch_up):
            if task is not None:
                task.cancel()
        host = self._services.host
        if isinstance(host, WorkerHost):
            host.note_state(WorkerState.DRAINING)
        if self._background is not None:
            self._background.begin_drain()
        if isinstance(host, WorkerHost) and host.is_background:
            await asyncio.sleep(HANDED_OVER_SECONDS)
        _log.info("Draining: %d requests are running", lifecycle.in_flight)
        if not await lifecycle.drain(settings.rest.drain_seconds):
            _log.warning(
                "%d requests still run after %g s; cancelling them",
                lifecycle.in_flight,
                settings.rest.drain_seconds,
            )
        await lifecycle.until_noticed()
        # The response to a step that is cancelled here is 499, so that connections can close.
        await self._services.sessions.close_all()
        if self._background is not None:
            await self._background.end(settings.rest.drain_seconds)
        if isinstance(self._services.host, WorkerHost):
            await self._services.host.close()
        if self._grpc is not None:
            await self._grpc.stop(CLOSING_SECONDS)
        for port in (self._passed_on, self._background_port):
            if port is not None:
                await port.server.stop(CLOSING_SECONDS)
        self.should_exit = True
