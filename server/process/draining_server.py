"""DrainingServer: the event loop of a server process under uvicorn, which drains on SIGTERM.

After the first SIGTERM or SIGINT the response to new work is 503, and running requests have
`rest.drain_seconds` to finish. Then the sessions are closed and the process exits with 0. A second
signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import uvicorn

from runtime.api import make_way, schedulable_cores
from runtime.errors import OpError
from server.addresses import address_of
from server.app import Services
from server.background.background_link import BackgroundLink
from server.background.front_host import FrontHost
from server.connections.connection_limits import Connections
from server.connections.tls_connection import TlsConnection
from server.models.freed_memory import keep_from_collector
from server.process.late_imports import first_requests, with_descriptors
from server.process.rpc_ports import RpcPorts
from server.process.shared_ports import SharedPorts
from server.processes.host_table import WorkerState
from server.processes.shared_listener import SharedListener
from server.processes.worker_host import WorkerHost
from server.tls import reload_certificate

_log = logging.getLogger(__name__)

READY_SECONDS = 0.1  # between two looks whether all models are loaded, for the log
CLOSING_SECONDS = 5  # the time to finish sending responses after all sessions are closed
# A background process that drains refuses nothing for so long: what others have handed over already
# is still answered here, and what comes later is handed back.
HANDED_OVER_SECONDS = 0.05
_KEPT_SECONDS = 3600  # connections of other processes, which close them themselves
_MOST_CODEC_THREADS = 32


def default_codec_threads() -> int:
    """Return the number of threads that read and write large bodies, as asyncio has them."""
    return min(_MOST_CODEC_THREADS, schedulable_cores() + 4)


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
        self._rpc = RpcPorts(services, ports)
        self._joined = asyncio.Event()  # it has what several processes share, or serves alone
        self._joining: asyncio.Task[None] | None = None
        self._late_start: asyncio.Task[None] | None = None  # of gRPC and of the HTTP framework
        self._certificate: asyncio.Task[None] | None = None  # which reads it when it changes
        self._ready_log: asyncio.Task[None] | None = None
        self._catch_up: asyncio.Task[None] | None = None  # with changes of the models
        self._beats: asyncio.Task[None] | None = None  # which other processes see
        self._background: BackgroundLink | None = None
        self._addresses: list[str] = []
        self.has_failed = False
        self.is_orphan = False  # the process that supervised this one has ended

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept on the HTTP sockets, and log their addresses."""
        self._loop = asyncio.get_running_loop()
        if self._ports is not None:
            self._loop.add_reader(self._ports.supervisor, self._supervisor_has_ended)
        threads = self._services.settings.rest.codec_threads or default_codec_threads()
        self._loop.set_default_executor(ThreadPoolExecutor(threads, "codec", make_way))
        plain = copy.copy(self.config)  # for the socket of the other processes
        context, self.config.ssl = self.config.ssl, None
        if context is not None:
            # uvicorn calls it as it calls the class.
            self.config.http_protocol_class = functools.partial(TlsConnection, context)  # type: ignore[assignment] # see above
        try:
            await super().startup(sockets)
        except SystemExit:  # uvicorn has ended what it had begun, and said why
            self.has_failed = self.should_exit = True
            return
        scheme = "https" if self.config.is_ssl else "http"
        for listener in self.servers:
            for each in listener.sockets:
                host, port = each.getsockname()[:2]
                address = f"{scheme}://{address_of(host, port)}"
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
        if self._ports is None:
            self._joined.set()
        else:
            self._joining = self._loop.create_task(self._join(self._ports))
        if self.started:
            self._late_start = self._loop.create_task(self._start_the_rest())
            self._ready_log = self._loop.create_task(self._log_ready())

    async def _listen_for_others(self, config: uvicorn.Config, host: WorkerHost) -> None:
        """Open the Unix socket of this process for the other ones."""
        from server.internal_calls import InternalCalls, says_of
        from server.processes.told_changes import ToldChanges

        assert self._loop is not None
        self._beats = self._loop.create_task(host.show_beats())
        services = self._services
        changes = ToldChanges(host, services.administration)
        own = InternalCalls(self.config.app, says_of(services), changes, host)  # type: ignore[arg-type] # as it was given
        config.ssl = None
        config.timeout_keep_alive = _KEPT_SECONDS
        config.app = config.loaded_app = own
        path = str(host.socket_path)
        self.servers.append(await self._loop.create_unix_server(self._protocol(config), path))
        self._catch_up = self._loop.create_task(changes.catch_up())

    async def _join(self, ports: SharedPorts) -> None:
        """Accept connections with the others once this process serves, or none of them does.

        What takes the place of one that has ended would have no models at first.
        """
        host, models = ports.host, self._services.models
        assert self._catch_up is not None
        while (
            not host.is_background
            and host.another_serves
            and (models.not_ready() or not self._catch_up.done())
        ):
            await asyncio.sleep(READY_SECONDS)
        for listener in ports.listeners:
            self._share(listener, host)
        self._joined.set()

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
            addresses = " and ".join(self._addresses + self._rpc.addresses)
            _log.info("Serving on %s: %s", addresses, what)

    async def _start_the_rest(self) -> None:
        """Import what the first predictions do not require, and open the gRPC ports.

        If a port cannot be opened or a module cannot be imported, end the server.
        """
        await first_requests(self._services)
        try:
            await self._rpc.open(self._background, self._joined)
            await with_descriptors(self.config.app.prepare)  # type: ignore[union-attr] # RequestMiddleware
            keep_from_collector()  # modules stay until the end, so no collection must visit them
        except OpError as error:
            _log.error("%s", error.message)
            self.has_failed = self.should_exit = True
        except Exception:
            _log.exception("The server does not start")
            self.has_failed = self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal: the first signal drains the server, the next one ends the process."""
        if self._loop is None or self._drain is not None:
            self.should_exit = self.force_exit = True
            return
        # A signal handler runs between any two instructions, so the event loop must do the work.
        self._loop.call_soon_threadsafe(self._begin_drain)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop to listen, and close the connections."""
        await super().shutdown(sockets)
        if self.force_exit:
            # The lifespan of the application is cancelled now, which uvicorn logs as an error.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

    def _begin_drain(self) -> None:
        if self._drain is None:
            self._drain = asyncio.get_running_loop().create_task(self._drain_or_end())

    async def _drain_or_end(self) -> None:
        try:
            await self._drain_and_exit()
        except asyncio.CancelledError:  # after a second signal
            if self._background is not None:
                self._background.kill()
            raise

    async def _drain_and_exit(self) -> None:
        settings, lifecycle = self._services.settings, self._services.lifecycle
        if self._late_start is not None:
            self._late_start.cancel()  # a port that is not open yet stays closed
        for task in (self._certificate, self._ready_log, self._catch_up, self._joining):
            if task is not None:
                task.cancel()
        host = self._services.host
        if isinstance(host, WorkerHost):
            host.note_state(WorkerState.DRAINING)
        if self._background is not None:
            self._background.begin_drain()
        if isinstance(host, WorkerHost) and host.is_background:
            await asyncio.sleep(HANDED_OVER_SECONDS)
        else:  # a connection of the background process goes back to another one
            connections: Connections = self.config.app.connections  # type: ignore[union-attr] # Middleware
            connections.is_ending = True
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
        await self._rpc.close(CLOSING_SECONDS)
        self.should_exit = True
