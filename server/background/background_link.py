"""BackgroundLink: what one process of a server does for the background process, or as it.

It hands connections over, receives those that are handed over to it, and supervises the background
process if it is the first one. The one process of a server begins to do the latter two when the
background process is to start.

Guarantees: used from one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from runtime.api import run_in_background
from server.app import Services
from server.background.background_process import BackgroundProcess
from server.background.background_settings import low_priority_turns
from server.background.connection_mover import ConnectionMover
from server.background.front_host import FrontHost
from server.background.moved_connections import ConnectionReceiver
from server.background.request_place import RequestPlace
from server.connections.connection_limits import Connections
from server.processes.worker_host import WorkerHost


class BackgroundLink:
    """The link of one process.

    `make` makes the protocol of a connection, and `listen` begins to answer what other processes
    ask, in a server of one process.
    """

    def __init__(
        self,
        services: Services,
        host: WorkerHost,
        make: Callable[[], asyncio.Protocol],
        listen: Callable[[], Awaitable[object]],
    ) -> None:
        self._services = services
        self._host = host
        self._make = make
        self._listen = listen
        self._receiver: ConnectionReceiver | None = None
        self._supervision: asyncio.Task[None] | None = None
        self._process: BackgroundProcess | None = None
        self._connections: Connections | None = None
        self._mover: ConnectionMover | None = None
        self.place: RequestPlace | None = None  # None if no request belongs to that process
        self.priorities: frozenset[str] = frozenset()  # of the requests that belong to it

    def begin(self, connections: Connections) -> None:
        """Begin to hand over `connections`."""
        host, settings = self._host, self._services.settings
        names = host.background_priorities
        if host.is_background:
            names = frozenset(
                name
                for name, entry in settings.priorities.items()
                if self._services.priorities.resolve(name).pool.low_priority
            )
        if not names:
            return
        self.priorities = names
        models = self._services.models
        models.on_published = lambda: host.note_models(models.digest())
        models.on_published()
        self.place = RequestPlace(names, models, host)
        mover = ConnectionMover(host, self.place)
        self._connections, self._mover, connections.mover = connections, mover, mover
        self._services.priorities.on_own_process = mover.want_background
        if not isinstance(host, FrontHost):
            self._receive()
        if host.place.slot == 0:
            self._process = BackgroundProcess(settings, host, self._prepare)
            self._supervision = asyncio.create_task(self._process.supervise())
            if settings.grpc.background_port != 0:
                host.want_background()

    async def be_ready(self) -> None:
        """Look at the models of the background process before it is ready, and let it yield.

        Until they are known, their requests would be sent back.
        """
        if self._host.is_background and self.place is not None:
            await self.place.look_at_all()
            run_in_background()

    def _receive(self) -> None:
        if self._receiver is None:
            self._receiver = ConnectionReceiver(self._host.moved_path, self._make)

    async def _prepare(self) -> None:
        """Do what one process does for others, before the first start."""
        host = self._host
        if self._receiver is None and isinstance(host, FrontHost):
            await host.make_folder()
            await self._listen()
            host.share_priorities()
            host.share_low_priority(low_priority_turns(self._services.settings, 1))
            self._receive()

    def begin_drain(self) -> None:
        """Let the background process drain, and start none any more.

        As that process, hand back the connections, whose requests others answer.
        """
        if self._supervision is not None:
            self._supervision.cancel()
        if self._process is not None:
            self._process.begin_drain()
        if self._host.is_background and self._mover is not None and self._connections is not None:
            self._mover.is_draining = True
            self._connections.hand_back()

    def kill(self) -> None:
        """End the background process at once, if this process supervises it."""
        if self._process is not None:
            self._process.kill()

    async def end(self, grace_seconds: float) -> None:
        """Wait for the background process, for `grace_seconds` at most."""
        if self._supervision is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervision
        if self._process is not None:
            await self._process.end(grace_seconds)
        if self._receiver is not None:
            self._receiver.close()
