"""RayHost: a front end whose sessions are on the nodes of a Ray cluster.

It has no session itself, so that nothing is lost when it ends, and any other front end of the same
application finds them.

Guarantees: `connect` is called before the event loop starts; everything else is used from the
event loop only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import Any

import ray

from runtime.errors import NotFoundError, OpError, UnavailableError
from runtime.ray_api import (
    NAMESPACE,
    SCHEME,
    RayTarget,
    as_ray_error,
    cluster_connection,
    content_of,
    parse_ray_target,
)
from server.access.caller import LOCAL, Caller
from server.host import Host
from server.passed_calls import PassedRequest, PassedResponse
from server.ray_sessions.directory_actor import CONCURRENT_CALLS, DirectoryActor
from server.ray_sessions.host_ids import directory_name, host_name, host_of
from server.sessions.session_errors import SessionGoneError
from server.settings import Settings

_log = logging.getLogger(__name__)

ASK_SECONDS = 5.0
_ENDING_SECONDS = 10.0  # a host that does not answer is known to have ended by then
_DIRECTORY_SECONDS = 30.0
_PING_SECONDS = 2.0


class RayHost(Host):
    """The front end's way to the session hosts of an application."""

    is_on_ray = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._application = settings.ray.application
        self._actors: dict[str, Any] = {}  # by host id
        self._directory: Any = None
        self._fault = ""  # why the directory does not answer

    def connect(self) -> None:
        """Join the cluster and find or start the directory.

        Raises the errors of a `ray://` target, and UnavailableError if the directory does not
        answer.
        """
        options = self._settings.ray
        target = parse_ray_target(f"{SCHEME}{options.address}?{options.nodes}")
        cluster_connection.join(RayTarget(target.address, target.placement))
        given = host_settings(self._settings)
        try:
            self._directory = (
                ray.remote(DirectoryActor)
                .options(
                    name=directory_name(self._application),
                    namespace=NAMESPACE,
                    lifetime="detached",
                    get_if_exists=True,
                    num_cpus=0,
                    max_restarts=-1,
                    max_task_retries=-1,
                    max_concurrency=CONCURRENT_CALLS,
                )
                .remote(self._application, given, options.nodes, options.idle_seconds)
            )
            configured = self._directory.configure.remote(given, options.nodes)
            content_of(ray.get(configured, timeout=_DIRECTORY_SECONDS))
        except Exception as error:
            raise as_ray_error(error, "the directory of sessions") from None
        threading.Thread(target=self._ping_forever, name="ray-directory", daemon=True).start()

    async def reconfigure(self, settings: Settings) -> None:
        """Take other settings, for session hosts that start later."""
        self._settings = settings
        if self._directory is not None:
            given = host_settings(settings)
            content_of(await self._directed("configure", given, settings.ray.nodes))

    def _ping_forever(self) -> None:
        pause = threading.Event()
        while True:
            try:
                ray.get(self._directory.ping.remote(), timeout=_ENDING_SECONDS)
                self._fault = ""
            except Exception as error:
                message = as_ray_error(error, "the directory of sessions").message
                self._fault = f"sessions on Ray: {message}"
            pause.wait(_PING_SECONDS)

    def not_ready(self) -> list[str]:
        """Return why sessions can't be opened."""
        return [self._fault] if self._fault else []

    def is_elsewhere(self, session_id: str) -> bool:
        """Return whether a session id is of a node of the cluster."""
        return host_of(session_id) is not None

    # --- calls ---------------------------------------------------------------------------------

    async def open_session(self, request: PassedRequest) -> PassedResponse:
        """Pass the call that opens a session to the node that the directory chooses."""
        host_id, ticket = content_of(await self._directed("place"))
        actor = await self._actor(host_id)
        answer: PassedResponse = await self._answer(host_id, actor.call.remote(request, ticket))
        return answer

    async def call(self, session_id: str, request: PassedRequest) -> PassedResponse:
        """Pass a call on a session to its node.

        Raises SessionGoneError if its host has ended, and NotFoundError if there never was one.
        """
        host_id = host_of(session_id)
        assert host_id is not None
        actor = await self._actor(host_id, session_id)
        answer: PassedResponse = await self._answer(host_id, actor.call.remote(request))
        return answer

    async def rpc(
        self,
        handle: str,
        path: str,
        data: bytes,
        metadata: Sequence[tuple[str, str]],
        seconds: float | None,
    ) -> bytes:
        """Pass a gRPC call on a session to its node; without a handle, to TensorFlow's master."""
        host_id = host_of(handle) if handle else content_of(await self._directed("master"))
        if host_id is None:
            raise NotFoundError(f"Session {handle} is not found.")
        actor = await self._actor(host_id, handle)
        called = actor.rpc.remote(path, data, metadata, seconds)
        answer: bytes = await self._answer(host_id, called)
        return answer

    async def ask(self, what: str, caller: Caller = LOCAL) -> list[Any]:
        """Return what each session host says to a caller; those that do not answer are left out.

        Metrics are those of this process alone: every front end would count the hosts' again.
        """
        if what == "metrics":
            return []
        hosts = content_of(await self._directed("hosts"))
        answers = await asyncio.gather(*(self._ask(host_id, what, caller) for host_id, _ in hosts))
        return [answer for answer in answers if answer is not None]

    async def _ask(self, host_id: str, what: str, caller: Caller) -> Any:
        owner = caller.owner if caller.is_authenticated else None
        try:
            actor = await self._actor(host_id)
            asked = actor.ask.remote(what, owner, [str(role) for role in caller.roles])
            return await asyncio.wait_for(self._answer(host_id, asked), ASK_SECONDS)
        except (OpError, TimeoutError) as error:
            _log.info("host=%s does not say its %s: %r", host_id, what, error)
            return None

    async def _directed(self, method: str, *arguments: Any) -> Any:
        try:
            return await getattr(self._directory, method).remote(*arguments)
        except Exception as error:
            raise as_ray_error(error, "the directory of sessions") from None

    async def _actor(self, host_id: str, session_id: str = "") -> Any:
        actor = self._actors.get(host_id)
        if actor is not None:
            return actor
        name = host_name(self._application, host_id)
        try:
            actor = await asyncio.to_thread(ray.get_actor, name, NAMESPACE)
        except ValueError:  # there is none with this name, or no longer
            ending = content_of(await self._directed("ending_of", host_id, 0.0))
            if ending is None:
                raise NotFoundError(f"Session {session_id} is not found.") from None
            raise _gone(ending) from None
        except Exception as error:
            raise as_ray_error(error, "the session's node") from None
        self._actors[host_id] = actor
        return actor

    async def _answer(self, host_id: str, reference: Any) -> Any:
        """Return the content of an answer; cancel the call if the caller is cancelled."""
        try:
            return content_of(await reference)
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):  # it has ended
                ray.cancel(reference)
            raise
        except (ray.exceptions.ActorDiedError, ray.exceptions.ActorUnavailableError) as error:
            raise await self._lost(host_id, error) from None
        except OpError:
            raise
        except Exception as error:
            raise as_ray_error(error, "the session's node") from None

    async def _lost(self, host_id: str, error: Exception) -> OpError:
        self._actors.pop(host_id, None)
        try:
            answer = await self._directed("ending_of", host_id, _ENDING_SECONDS)
            ending = content_of(answer)
        except OpError:
            ending = None
        if ending is not None:
            return _gone(ending)
        if isinstance(error, ray.exceptions.ActorDiedError):
            return _gone(as_ray_error(error, "its host").message)
        return UnavailableError("The session's node does not answer")


def _gone(ending: str) -> SessionGoneError:
    return SessionGoneError(f"Session has been lost with its session host: {ending}")


def host_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings of session hosts, as JSON: without ports, and sessions are local."""
    given = settings.model_dump(mode="json", exclude_unset=True)
    given["placement"] = "local"
    given["console"] = {"enabled": False}
    given["grpc"] = given.get("grpc", {}) | {"port": 0, "socket_path": None}
    given["grpc"].pop("tensorflow_port", None)
    given.setdefault("sessions", {})["max_open"] = settings.sessions.max_open
    return given
