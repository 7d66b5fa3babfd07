"""SessionHostActor: the sessions of one node of a Ray cluster, as a server without ports.

Front ends pass it whole calls, which they have admitted. Each call returns an Answer
(`runtime.ray_api`). A call that Ray cancels is cancelled as if its client had gone away.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any

import ray

from runtime.errors import DeadlineExceededError
from runtime.ray_api import NAMESPACE, Answer, as_ray_error, content_of, refusal
from server.access.caller import caller_of
from server.embedded_server import EmbeddedServer
from server.host import Apply, Host
from server.internal_calls import says_of
from server.passed_calls import PassedRequest
from server.ray_sessions.calls_of_fronts import CallsOfFronts
from server.ray_sessions.change_follower import ChangeFollower
from server.ray_sessions.host_ids import directory_name, follower_of, suffix_of
from server.settings import Settings

_LOOK_SECONDS = 0.02
_READY_SECONDS = 110.0  # a model that loads longer is refused to the sessions that want it


class _NodeHost(Host):
    """What the sessions of a node know of the others: the directory counts them."""

    def __init__(self, application: str, host_id: str, address: str, position: int) -> None:
        self.origin = {"node": address, "host": host_id}
        self._follower = ChangeFollower(
            self._ask, follower_of(host_id, address), position, has_own_models=False
        )
        self._id = host_id
        self._directory = ray.get_actor(directory_name(application), NAMESPACE)
        self._sessions = 0
        self._told = 0
        self._tickets: list[int] = []
        self._telling: asyncio.Task[None] | None = None

    def suffix_of_id(self, timeout_ms: int) -> str:
        """Return what the id of a session here ends with: a front end knows it if this hangs."""
        return suffix_of(self._id, timeout_ms)

    async def _ask(self, method: str, *arguments: Any) -> Any:
        try:
            return content_of(await getattr(self._directory, method).remote(*arguments))
        except Exception as error:
            raise as_ray_error(error, "the directory of sessions") from None

    async def follow_changes(self, apply: Apply) -> None:
        """Make the changes of the models that hold for the application, for ever."""
        await self._follower.follow(apply)

    async def caught_up(self) -> None:
        """Wait until the changes have been made that held before."""
        await self._follower.reaches(0)

    async def fronts(self) -> list[str] | None:
        """Return the names of the front ends that there are, or None if that is not known yet."""
        found: list[str] | None = await self._ask("fronts")
        return found

    @property
    def sessions(self) -> int:
        """The number of sessions, with those that are being opened."""
        return self._sessions

    def note_sessions(self, count: int) -> None:
        """Tell the directory how many sessions there are."""
        self._sessions = count
        self._tell_soon()

    def note_ticket(self, ticket: int) -> None:
        """Tell the directory that the session of a ticket is counted, or has not come to be."""
        self._tickets.append(ticket)
        self._tell_soon()

    def _tell_soon(self) -> None:
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        """Tell what has changed; what changes meanwhile is told at once afterwards."""
        while self._told != self._sessions or self._tickets:
            sessions, tickets = self._sessions, self._tickets
            self._tickets = []
            await self._directory.note.remote(self._id, sessions, tickets)
            self._told = sessions


class SessionHostActor:
    """The program of the actor; `settings` are those of a server, as JSON.

    They have the changes of the served models before number `position`.
    """

    def __init__(
        self,
        application: str,
        host_id: str,
        node_id: str,
        address: str,
        settings: dict[str, Any],
        position: int,
    ) -> None:
        self._host = _NodeHost(application, host_id, address, position)
        self._about = {"id": host_id, "node_id": node_id, "address": address}
        self._settings = settings
        self._server: EmbeddedServer | None = None
        self._is_master = False
        self._calls = CallsOfFronts(self._host.fronts)
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> Answer:
        """Start the server, and wait until it has loaded its models."""
        try:
            server = EmbeddedServer(Settings(**self._settings), self._host, is_admitted=True)
            await server.start()
            until = time.monotonic() + _READY_SECONDS
            while server.not_ready() and time.monotonic() < until:
                await asyncio.sleep(_LOOK_SECONDS)
            await self._host.caught_up()
            self._server = server
            self._watching = asyncio.ensure_future(self._calls.watch())
        except Exception as error:
            return refusal(error)
        return (0, None)

    @property
    def _running(self) -> EmbeddedServer:
        assert self._server is not None  # nobody knows an actor that has not started
        return self._server

    async def call(self, front: str, request: PassedRequest, ticket: int = 0) -> Answer:
        """Respond to an HTTP request; `ticket` is that of the session that it opens."""
        try:
            return (0, await self._calls.run(front, self._running.call(request)))
        except Exception as error:
            return refusal(error)
        finally:
            if ticket:
                self._host.note_ticket(ticket)

    async def rpc(
        self,
        front: str,
        path: str,
        data: bytes,
        metadata: Sequence[tuple[str, str]],
        seconds: float | None,
    ) -> Answer:
        """Respond to a gRPC call."""
        try:
            if seconds is not None and seconds <= 0:
                raise DeadlineExceededError("Deadline exceeded on the way to the session's node")
            call = self._running.rpc(path, data, metadata, seconds)
            return (0, await self._calls.run(front, call))
        except Exception as error:
            return refusal(error)

    async def ask(self, what: str, owner: str | None, roles: Sequence[str]) -> Answer:
        """Return what this host says to a caller, such as its sessions."""
        try:
            return (0, says_of(self._running.services)[what](caller_of(owner, roles)))
        except Exception as error:
            return refusal(error)

    async def be_master(self) -> None:
        """Know that this host has TensorFlow's master, for a directory that starts again."""
        self._is_master = True

    async def describe(self) -> Answer:
        """Return what a directory knows of this host."""
        about = {
            "sessions": self._host.sessions,
            "is_master": self._is_master,
            "is_ready": self._server is not None,
            "process_id": os.getpid(),
        }
        return (0, self._about | about)

    async def until_end(self) -> None:
        """Wait for ever: Ray tells the caller how this actor ends."""
        await asyncio.get_running_loop().create_future()
