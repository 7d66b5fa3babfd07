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
import secrets
import threading
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import ray

from runtime.errors import NotFoundError, OpError, UnavailableError
from runtime.ray_api import (
    NAMESPACE,
    RayTarget,
    as_ray_error,
    cluster_connection,
    content_of,
    says_closed,
)
from server.access.caller import LOCAL, Caller, told_caller
from server.addresses import address_of
from server.host import Apply, Change, Host
from server.models.administration import UNDO
from server.passed_calls import PassedRequest, PassedResponse
from server.ray_sessions.change_follower import ChangeFollower
from server.ray_sessions.cluster_nodes import on_head, own_node
from server.ray_sessions.cluster_settings import cluster_of, nodes_option
from server.ray_sessions.directory_actor import DirectoryActor
from server.ray_sessions.host_ids import directory_name, host_name, host_of, new_front_name
from server.ray_sessions.own_node import OwnNode
from server.ray_sessions.session_hosts import CONCURRENT_CALLS
from server.ray_sessions.silence import ActorCalls, SilentError
from server.sessions.session_errors import SessionGoneError
from server.settings import Settings
from server.settings_paths import with_absolute_paths
from server.steps.time_limit import ending_at

_log = logging.getLogger(__name__)

ASK_SECONDS = 3.0  # for what a host says of itself, after which it is left out
HOSTS_SECONDS = 2.0  # for the list of the hosts, after which the last one is used
OPEN_ATTEMPTS = 3  # to open a session, if hosts end meanwhile
GRACE_SECONDS = 0.25  # after a deadline, for the answer of the host that says so
_ENDING_SECONDS = 10.0  # a host that does not answer is known to have ended by then
_DIRECTORY_SECONDS = 30.0
_PING_SECONDS = 2.0


class _SessionHost(NamedTuple):
    id: str
    actor: Any
    calls: ActorCalls


class RayHost(Host):
    """The front end's way to the session hosts of an application."""

    is_on_ray = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._application = settings.ray.application
        self._session_hosts: dict[str, _SessionHost] = {}  # by id
        self._directory_calls = ActorCalls(
            lambda: self._directory.ping.remote(self._name), ray.exceptions.RayActorError
        )
        self._directory: Any = None
        self._fault = ""  # why the directory does not answer
        self._own_node: OwnNode | None = None
        self._node_fault = ""  # why its own node can't be used
        self._name = new_front_name()
        self._follower = ChangeFollower(self._told, self._name, 0, has_own_models=True)
        self._ticket = ""  # of this process's turn to change the models
        self._hosts: list[tuple[str, str]] = []  # id and node address, as the directory told last

    def connect(self) -> None:
        """Join the cluster and find or start the directory.

        Raises the errors of a `ray://` target, and UnavailableError if the directory does not
        answer.
        """
        options = self._settings.ray
        address = cluster_of(options.address).address
        cluster_connection.join(RayTarget(address, nodes_option(options.nodes)))
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
                    resources=on_head(),
                )
                .remote(self._application, given, options.nodes, options.idle_seconds)
            )
            configured = self._directory.configure.remote(given, options.nodes, False)
            content_of(ray.get(configured, timeout=_DIRECTORY_SECONDS))
            own = own_node()
        except Exception as error:
            raise as_ray_error(error, "the directory of sessions") from None
        if own is not None:
            self._own_node = OwnNode(address_of(own.address, own.port), says_closed)
        threading.Thread(target=self._ping_forever, name="ray-directory", daemon=True).start()

    async def reconfigure(self, settings: Settings) -> None:
        """Take other settings, for session hosts that start later; their models are for all."""
        self._settings = settings
        if self._directory is not None:
            await self._told("configure", host_settings(settings), settings.ray.nodes, True)

    def _ping_forever(self) -> None:
        pause = threading.Event()
        while True:
            self._node_fault = "" if self._own_node is None else self._own_node.fault()
            try:
                ray.get(self._directory.ping.remote(self._name), timeout=_ENDING_SECONDS)
                self._fault = ""
            except Exception as error:
                message = as_ray_error(error, "the directory of sessions").message
                self._fault = f"sessions on Ray: {message}"
            pause.wait(_PING_SECONDS)

    @property
    def _faults(self) -> list[str]:
        return [each for each in (self._node_fault, self._fault) if each]

    def not_ready(self) -> list[str]:
        """Return why sessions can't be had, or models are not those of other front ends."""
        if self._faults:
            return self._faults
        return [] if self._follower.is_current else ["earlier changes of the models"]

    def is_elsewhere(self, session_id: str) -> bool:
        """Return whether a session id is of a node of the cluster."""
        return host_of(session_id) is not None

    # --- calls ---------------------------------------------------------------------------------

    async def open_session(
        self, request: PassedRequest, deadline: float | None = None
    ) -> PassedResponse:
        """Pass the call that opens a session to the node that the directory chooses.

        If the host ends or hangs meanwhile, the session is lost before anyone knows it: another is
        chosen. Raises DeadlineExceededError soon after the `deadline`, an instant of
        `time.monotonic()`.
        """
        async with _limit(deadline):
            for attempts_left in reversed(range(OPEN_ATTEMPTS)):
                host_id, ticket = await self._told("place", is_cancellable=True)
                try:
                    host = await self._session_host(host_id)
                    called = host.actor.call.remote(self._name, request, ticket)
                    answer: PassedResponse = await self._answer(host, called)
                    return answer
                except (SessionGoneError, SilentError) as error:
                    if not attempts_left:
                        text = f"No session could be opened: {error.message}"
                        raise UnavailableError(text) from None
        raise AssertionError

    async def call(
        self, session_id: str, request: PassedRequest, deadline: float | None = None
    ) -> PassedResponse:
        """Pass a call on a session to its node.

        Raises SessionGoneError if its host has ended, NotFoundError if there never was one,
        UnavailableError if it does not answer, and DeadlineExceededError soon after the `deadline`,
        an instant of `time.monotonic()`, if the host has not said it by then.
        """
        host_id = host_of(session_id)
        assert host_id is not None
        async with _limit(deadline):
            host = await self._session_host(host_id, session_id)
            called = host.actor.call.remote(self._name, request)
            answer: PassedResponse = await self._answer(host, called)
            return answer

    async def rpc(
        self,
        handle: str,
        path: str,
        data: bytes,
        metadata: Sequence[tuple[str, str]],
        seconds: float | None,
    ) -> bytes:
        """Pass a gRPC call on a session to its node; without a handle, to TensorFlow's master.

        Raises what `call` raises, after the `seconds` that are left.
        """
        async with _limit(None if seconds is None else time.monotonic() + seconds):
            host_id = host_of(handle) if handle else await self._told("master")
            if host_id is None:
                raise NotFoundError(f"Session {handle} is not found.")
            host = await self._session_host(host_id, handle)
            called = host.actor.rpc.remote(self._name, path, data, metadata, seconds)
            answer: bytes = await self._answer(host, called)
            return answer

    async def ask(self, what: str, caller: Caller = LOCAL) -> list[Any]:
        """Return what each session host says to a caller; those that do not answer are left out.

        Metrics are in `metrics_of_nodes`. Takes at most HOSTS_SECONDS + ASK_SECONDS.
        """
        if what == "metrics":
            return []
        answers = await self._ask_all(what, caller)
        return [answer for _, answer in answers if answer is not None]

    async def metrics_of_nodes(self) -> list[dict[str, tuple[str, str]]] | None:
        """Return the metrics of each session host, and which of them do not say theirs."""
        answers = await self._ask_all("metrics_text", LOCAL)
        told = [({"node": address, "host": host_id}, each) for (host_id, address), each in answers]
        return [
            *(each for _, each in told if each is not None),
            up_metric("runstep_session_host_up", "a session host", told),
        ]

    async def _ask_all(self, what: str, caller: Caller) -> list[tuple[tuple[str, str], Any]]:
        """Return the id and the node of each session host, with what it says, or with None."""
        hosts = await self._known_hosts()
        answers = await asyncio.gather(*(self._ask(host_id, what, caller) for host_id, _ in hosts))
        return list(zip(hosts, answers, strict=True))

    async def _known_hosts(self) -> list[tuple[str, str]]:
        """Return the id and the node of each session host, as far as the directory says it."""
        try:
            async with asyncio.timeout(HOSTS_SECONDS):
                self._hosts = await self._told("hosts")
        except (OpError, TimeoutError) as error:
            _log.info("The directory does not say which session hosts there are: %r", error)
        return list(self._hosts)

    async def _ask(self, host_id: str, what: str, caller: Caller) -> Any:
        try:
            async with asyncio.timeout(ASK_SECONDS):
                host = await self._session_host(host_id)
                return await self._answer(host, host.actor.ask.remote(what, *told_caller(caller)))
        except (OpError, TimeoutError) as error:
            _log.info("host=%s does not say its %s: %r", host_id, what, error)
            return None

    # --- changes of the served models ----------------------------------------------------------

    async def follow_changes(self, apply: Apply) -> None:
        """Make the changes of the models that other front ends make, for ever."""
        try:
            await self._follower.follow(apply)
        finally:
            self._directory.leave.remote(self._name)

    def change_turn(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Exclude changes by other front ends; this one has made all earlier ones."""
        return self._turn()

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        ticket = secrets.token_hex(8)
        try:
            number = await self._told("take_turn", self._name, ticket)
            await self._follower.reaches(number)
            self._ticket = ticket
            yield
        finally:
            with contextlib.suppress(OpError):
                await self._told("give_turn", ticket)

    async def tell(self, change: Change, timeout_seconds: float | None = None) -> None:
        """Make all hosts and front ends change their models; raise the error of one that can't.

        The directory keeps the change, and undoes one that fails. If this call is cancelled when
        the change holds already, it goes on.
        """
        if change == UNDO:
            return
        change_id = secrets.token_hex(8)
        self._follower.own = change_id
        told = self._told("change", self._ticket, change_id, change, timeout_seconds)
        changing = asyncio.ensure_future(told)
        try:
            try:
                await asyncio.shield(changing)
            except asyncio.CancelledError:
                await self._told("abandon", change_id)
                await changing
        except BaseException:
            self._follower.own = ""
            raise

    # --- actors --------------------------------------------------------------------------------

    async def _told(self, method: str, *arguments: Any, is_cancellable: bool = False) -> Any:
        """Return what a method of the directory returns; raise its OpError.

        Raises UnavailableError if the directory does not answer. If nobody waits any more, the call
        goes on unless it `is_cancellable`.
        """
        try:
            called = getattr(self._directory, method).remote(*arguments)
            try:
                return content_of(await self._directory_calls.answer_of(called))
            except (SilentError, asyncio.CancelledError):
                if is_cancellable:
                    _cancel(called)
                raise
        except SilentError as error:
            raise UnavailableError(
                f"The directory of sessions does not answer: {error.message}"
            ) from None
        except Exception as error:
            raise as_ray_error(error, "the directory of sessions") from None

    async def _session_host(self, host_id: str, session_id: str = "") -> _SessionHost:
        known = self._session_hosts.get(host_id)
        if known is not None:
            return known
        name = host_name(self._application, host_id)
        try:
            actor: Any = await asyncio.to_thread(ray.get_actor, name, NAMESPACE)
        except ValueError:  # there is none with this name, or no longer
            ending = await self._told("ending_of", host_id, 0.0)
            if ending is None:
                raise NotFoundError(f"Session {session_id} is not found.") from None
            raise _gone(ending) from None
        except Exception as error:
            raise as_ray_error(error, "the session's node") from None
        calls = ActorCalls(actor.describe.remote, ray.exceptions.RayActorError)
        found = _SessionHost(host_id, actor, calls)
        return self._session_hosts.setdefault(host_id, found)

    async def _answer(self, host: _SessionHost, reference: Any) -> Any:
        """Return the content of an answer; cancel the call if the caller is cancelled.

        Raises SilentError if the host does not answer.
        """
        try:
            return content_of(await host.calls.answer_of(reference))
        except asyncio.CancelledError:
            _cancel(reference)
            raise
        except SilentError as error:
            _cancel(reference)
            nodes = dict(await self._known_hosts())
            where = f"{host.id} on node {nodes.get(host.id, 'unknown')}"
            raise SilentError(f"Session host {where} does not answer: {error.message}") from None
        except (ray.exceptions.ActorDiedError, ray.exceptions.ActorUnavailableError) as error:
            raise await self._lost(host.id, error) from None
        except OpError:
            raise
        except Exception as error:
            raise as_ray_error(error, "the session's node") from None

    async def _lost(self, host_id: str, error: Exception) -> OpError:
        self._session_hosts.pop(host_id, None)
        try:
            ending = await self._told("ending_of", host_id, _ENDING_SECONDS)
        except OpError:
            ending = None
        if ending is not None:
            return _gone(ending)
        if isinstance(error, ray.exceptions.ActorDiedError):
            return _gone(as_ray_error(error, "its host").message)
        return UnavailableError("The session's node does not answer")


def _limit(deadline: float | None) -> contextlib.AbstractAsyncContextManager[None]:
    return ending_at(None if deadline is None else deadline + GRACE_SECONDS)


def _cancel(reference: Any) -> None:
    with contextlib.suppress(Exception):  # it has ended
        ray.cancel(reference)


def up_metric(
    name: str, what: str, told: Iterable[tuple[Mapping[str, str], Any]]
) -> dict[str, tuple[str, str]]:
    """Return the metric that says which processes, by their labels, have said theirs."""
    described = f"# HELP {name} Whether {what} says its metrics\n# TYPE {name} gauge\n"
    samples = ""
    for origin, said in told:
        labels = ",".join(f'{key}="{value}"' for key, value in origin.items())
        samples += f"{name}{{{labels}}} {float(said is not None)}\n"
    return {name: (described, samples)}


def _gone(ending: str) -> SessionGoneError:
    return SessionGoneError(f"Session has been lost with its session host: {ending}")


def host_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings of session hosts, as JSON: without ports, and sessions are local."""
    given = with_absolute_paths(settings.model_dump(mode="json", exclude_unset=True))
    given["placement"] = "local"
    given["console"] = {"enabled": False}
    given["grpc"] = given.get("grpc", {}) | {"port": 0, "background_port": 0, "socket_path": None}
    given["grpc"].pop("tensorflow_port", None)
    given.setdefault("sessions", {})["max_open"] = settings.sessions.max_open
    return given
