"""SessionHost: the sessions of one node by their handles, and the programs that have opened them.

A program that opens sessions is a *client*. It must show that it lives (`keep_alive`, or any call
of its sessions); after CLIENT_SECONDS of silence its sessions are closed. A host without sessions
ends after its idle time.

Guarantees: all methods are called on the host's event loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import secrets
import time
from collections.abc import Callable, Sequence

import protos as pb
from runtime.foundation.errors import AbortedError, InvalidArgumentError
from runtime.registrations import direct_session_factory
from runtime.session_host.hosted_session import HostedSession
from runtime.session_host.models import Models
from runtime.sessions.direct.direct_session import DirectSession
from runtime.sessions.ray_cluster.actor_values import SessionLimits
from runtime.sessions.session_options import SessionOptions

CLIENT_SECONDS = 60.0  # a client whose program has died, or whose node is gone, ends after these
_THREADS = 32  # for what may take long: new graphs, loads, steps in the caller's thread
_log = logging.getLogger(__name__)


class SessionHost:
    """The sessions of this process for clients in other processes. `clock` is `time.monotonic`."""

    def __init__(self, idle_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.models = Models()
        self._threads = concurrent.futures.ThreadPoolExecutor(_THREADS, "session_host")
        self._sessions: dict[str, HostedSession] = {}
        self._opening = 0
        self._heard: dict[str, float] = {}  # client → when it was last heard of
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._used_at = clock()

    @property
    def num_sessions(self) -> int:
        """The number of open sessions."""
        return len(self._sessions)

    async def open(
        self, client: str, request: pb.CreateSessionRequest, limits: SessionLimits
    ) -> str:
        """Open a session with a graph and return its handle."""

        def make(options: SessionOptions) -> DirectSession:
            session = direct_session_factory().new_session(options)
            try:
                session.create(request.graph_def)
            except BaseException:
                session.destroy()
                raise
            return session

        return await self._open(client, _options(request.config, limits), make)

    async def open_saved_model(
        self,
        client: str,
        config: pb.ConfigProto,
        limits: SessionLimits,
        export_dir: str,
        tags: Sequence[str],
    ) -> str:
        """Open a session of a SavedModel, in the state right after loading; return its handle."""
        return await self._open(
            client,
            _options(config, limits),
            lambda options: self.models.open_session(options, export_dir, tags),
        )

    async def _open(
        self,
        client: str,
        options: SessionOptions,
        make: Callable[[SessionOptions], DirectSession],
    ) -> str:
        if not client:
            raise InvalidArgumentError("A session is opened by a client, but it has no name")
        self._opening += 1
        try:
            loop = asyncio.get_running_loop()
            session = await loop.run_in_executor(self._threads, make, options)
        finally:
            self._opening -= 1
        handle = secrets.token_urlsafe(16)
        self._sessions[handle] = HostedSession(session, client, self._threads)
        self.heard_of(client)
        return handle

    def get(self, handle: str) -> HostedSession:
        """Return an open session; raise AbortedError if it is closed or was never opened here."""
        hosted = self._sessions.get(handle)
        if hosted is None:
            raise AbortedError(
                f"Session {handle} is not found: it is closed, or its program was silent for "
                f"{CLIENT_SECONDS:g} s."
            )
        self._heard[hosted.client] = self._clock()
        return hosted

    async def close(self, handle: str) -> None:
        """Close a session; closing it again has no effect."""
        hosted = self._sessions.pop(handle, None)
        if hosted is not None:
            self._used_at = self._clock()
            await hosted.close()

    def heard_of(self, client: str) -> None:
        """Note that a client lives."""
        self._heard[client] = self._used_at = self._clock()

    async def close_client(self, client: str) -> None:
        """Close the sessions of a client that ends."""
        self._heard.pop(client, None)
        for handle in [key for key, held in self._sessions.items() if held.client == client]:
            await self.close(handle)

    async def close_silent_clients(self) -> None:
        """Close the sessions of clients that were silent for CLIENT_SECONDS."""
        now = self._clock()
        for client, heard in list(self._heard.items()):
            if now - heard > CLIENT_SECONDS:
                _log.info("client=%s was silent for %.0f s and is closed", client, now - heard)
                await self.close_client(client)

    @property
    def is_idle(self) -> bool:
        """Whether the host has had no session for its idle time."""
        if self._sessions or self._opening:
            return False
        return self._clock() - self._used_at > self._idle_seconds


def _options(config: pb.ConfigProto, limits: SessionLimits) -> SessionOptions:
    return SessionOptions(
        config=config,
        max_graph_nodes=limits.max_graph_nodes,
        max_session_bytes=limits.max_session_bytes,
        max_step_bytes=limits.max_step_bytes,
        clusters=limits.clusters,
        engine=limits.engine,
        precision=limits.precision,
    )
