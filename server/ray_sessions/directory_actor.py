"""DirectoryActor: the named, detached actor that places sessions on the nodes of a Ray cluster.

Calls on open sessions do not pass here: a session's id names its host, which is an actor with a
name. The directory chooses the node of a new session, starts the hosts, counts sessions, and
knows how hosts have ended. Ray starts it again when it ends; then it asks the hosts what it knew,
except how earlier hosts ended.

Guarantees: its methods are coroutines on one event loop, so there are no locks. Each returns an
Answer (`runtime.ray_api`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from runtime.errors import OpError
from runtime.ray_api import (
    NAMESPACE,
    SCHEME,
    Answer,
    Node,
    as_ray_error,
    choose_node,
    content_of,
    exit_actor,
    parse_ray_target,
    refusal,
)
from server.ray_sessions.directory import Directory, HostRecord
from server.ray_sessions.host_ids import host_name, host_prefix, new_host_id

_log = logging.getLogger(__name__)

START_SECONDS = 120.0  # until a host must have loaded the models
LOOK_SECONDS = 1.0
MISSED_LOOKS = 3  # after which a node that does not answer is given up
CONCURRENT_CALLS = 10_000
_DESCRIBE_SECONDS = 10.0
# The program of a host stands above this module.
_ACTOR = ("server.session_host_actor", "SessionHostActor")
_Call = Callable[..., Awaitable[Any]]


def _answered(call: _Call) -> _Call:
    """Turn what a call returns or raises into an Answer; recover before the first one."""

    @functools.wraps(call)
    async def answered(self: DirectoryActor, *arguments: Any) -> Answer:
        try:
            await self.recovered()
            return (0, await call(self, *arguments))
        except Exception as error:
            return refusal(as_ray_error(error, "the directory of sessions"))

    return answered


class DirectoryActor:
    """The directory of one application; `settings` are those of its session hosts, as JSON.

    `nodes` are the options of a `ray://` target that a node must fit.
    """

    def __init__(
        self, application: str, settings: dict[str, Any], nodes: str, idle_seconds: float
    ) -> None:
        self._application = application
        self._idle_seconds = idle_seconds
        self._actors: dict[str, Any] = {}  # by host id
        self._starting: dict[str, asyncio.Task[str]] = {}  # by node id
        self._tasks: set[asyncio.Task[Any]] = set()
        self._recovery: asyncio.Task[None] | None = None
        self._missed: dict[str, int] = {}  # by host id: looks at its node without an answer
        self._master = ""
        self._heard_at = time.monotonic()
        self._directory = Directory(0)
        self._set(settings, nodes)

    def _set(self, settings: dict[str, Any], nodes: str) -> None:
        self._settings = settings
        self._placement = parse_ray_target(f"{SCHEME}auto?{nodes}").placement
        self._directory.max_open = settings["sessions"]["max_open"]

    # --- the start, also after an end ----------------------------------------------------------

    async def recovered(self) -> None:
        """Wait until the hosts that there are have said what they have."""
        self._heard_at = time.monotonic()
        if self._recovery is None:
            self._recovery = asyncio.ensure_future(self._recover())
        await asyncio.shield(self._recovery)

    async def _recover(self) -> None:
        named = await asyncio.to_thread(ray.util.list_named_actors, all_namespaces=True)
        prefix = host_prefix(self._application)
        names = [
            each["name"]
            for each in named
            if each["namespace"] == NAMESPACE and each["name"].startswith(prefix)
        ]
        await asyncio.gather(*(self._find(name) for name in names))
        self._background(self._look_forever())

    async def _find(self, name: str) -> None:
        try:
            actor = await asyncio.to_thread(ray.get_actor, name, NAMESPACE)
            told = content_of(
                await asyncio.wait_for(_value(actor.describe.remote()), _DESCRIBE_SECONDS)
            )
        except (ValueError, TimeoutError, OpError, ray.exceptions.RayError) as error:
            _log.warning("A session host is not found again: %s: %r", name, error)
            return
        self._add(told["id"], told["node_id"], told["address"], actor, told["sessions"])
        if told["is_master"]:
            self._master = told["id"]

    def _add(self, host_id: str, node_id: str, address: str, actor: Any, sessions: int = 0) -> None:
        record = HostRecord(host_id, node_id, address, time.monotonic(), sessions)
        self._directory.add(record)
        self._actors[host_id] = actor
        self._background(self._watch(record, actor))

    def _background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- calls ---------------------------------------------------------------------------------

    @_answered
    async def configure(self, settings: dict[str, Any], nodes: str) -> None:
        """Take the settings of a front end, for hosts that start later."""
        self._set(settings, nodes)

    @_answered
    async def place(self) -> tuple[str, int]:
        """Return the id of the host for a new session, which is started if need be, and a ticket.

        Raises what `choose_node` raises, ResourceExhaustedError if there are too many sessions, and
        the error of a host that does not start.
        """
        self._directory.check_place(time.monotonic())
        host_id = await self._host()
        return host_id, self._directory.reserve(host_id, time.monotonic())

    @_answered
    async def master(self) -> str:
        """Return the id of the host that has TensorFlow's master."""
        if self._master not in self._directory.hosts:
            self._master = await self._host()
            await self._actors[self._master].be_master.remote()
        return self._master

    @_answered
    async def hosts(self) -> list[tuple[str, str]]:
        """Return the id of each host and the address of its node."""
        return [(each.id, each.address) for each in self._directory.hosts.values()]

    @_answered
    async def ending_of(self, host_id: str, seconds: float) -> str | None:
        """Return how a host ended; if it has not, wait for its end for some time."""
        until = time.monotonic() + seconds
        while host_id in self._directory.hosts and time.monotonic() < until:
            await asyncio.sleep(0.05)
        return self._directory.ending_of(host_id)

    @_answered
    async def note(self, host_id: str, sessions: int, tickets: list[int]) -> None:
        """Note how many sessions a host has."""
        self._directory.note(host_id, sessions, tickets, time.monotonic())

    @_answered
    async def ping(self) -> None:
        """Answer, so that a front end knows that the directory runs."""

    @_answered
    async def stop(self) -> None:
        """End the hosts, and with them all sessions, and the directory."""
        for actor in self._actors.values():
            ray.kill(actor)
        self._actors.clear()
        asyncio.get_running_loop().call_later(0.1, exit_actor)

    # --- hosts ---------------------------------------------------------------------------------

    async def _host(self) -> str:
        node = choose_node(
            self._placement, await asyncio.to_thread(_nodes), self._directory.counts()
        )
        record = self._directory.on_node(node.id)
        if record is not None:
            return record.id
        starting = self._starting.get(node.id)
        if starting is None:
            starting = self._starting[node.id] = asyncio.ensure_future(self._start(node))
            starting.add_done_callback(lambda _: self._starting.pop(node.id))
        return await asyncio.shield(starting)

    async def _start(self, node: Node) -> str:
        host_id = new_host_id()
        module, name = _ACTOR
        program = getattr(importlib.import_module(module), name)
        actor = (
            ray.remote(program)
            .options(
                name=host_name(self._application, host_id),
                namespace=NAMESPACE,
                lifetime="detached",
                num_cpus=0,
                max_concurrency=CONCURRENT_CALLS,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
            )
            .remote(self._application, host_id, node.id, node.address, self._settings)
        )
        try:
            content_of(await asyncio.wait_for(_value(actor.start.remote()), START_SECONDS))
        except Exception as error:
            with contextlib.suppress(Exception):
                ray.kill(actor)
            raise as_ray_error(error, f"the session host on node {node.address}") from None
        self._add(host_id, node.id, node.address, actor)
        return host_id

    async def _watch(self, record: HostRecord, actor: Any) -> None:
        """Note the end of a host when Ray tells it."""
        while record.id in self._directory.hosts:
            try:
                await _value(actor.until_end.remote())
            except ray.exceptions.ActorUnavailableError:
                await asyncio.sleep(LOOK_SECONDS)
            except Exception as error:
                reason = as_ray_error(error, f"node {record.address}").message
                self._ended(record.id, reason)

    def _ended(self, host_id: str, reason: str) -> None:
        _log.warning("host=%s ended: %s", host_id, reason)
        self._directory.end(host_id, reason)
        self._actors.pop(host_id, None)
        self._missed.pop(host_id, None)

    async def _look_forever(self) -> None:
        """Give up hosts whose nodes do not answer, and end what nobody uses."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except Exception:
                _log.exception("The nodes can't be looked at")

    async def _look(self) -> None:
        nodes = {node.id: node for node in await asyncio.to_thread(_nodes)}
        looks = [
            self._look_at(record, nodes.get(record.node_id))
            for record in list(self._directory.hosts.values())
        ]
        await asyncio.gather(*looks)
        for record in self._directory.idle(time.monotonic() - self._idle_seconds):
            self._directory.forget(record.id)
            ray.kill(self._actors.pop(record.id))
        is_unused = not self._directory.hosts and not self._starting
        if is_unused and time.monotonic() - self._heard_at > self._idle_seconds:
            exit_actor()

    async def _look_at(self, record: HostRecord, node: Node | None) -> None:
        """Give a host up if the port of its node does not open in MISSED_LOOKS looks.

        Ray itself takes longer to declare a node dead. The host is killed, so that it can't come
        back and have sessions that are known to be lost.
        """
        if node is None or await _is_open(node.socket):
            self._missed.pop(record.id, None)
            return
        self._missed[record.id] = self._missed.get(record.id, 0) + 1
        if self._missed[record.id] >= MISSED_LOOKS and record.id in self._actors:
            ray.kill(self._actors[record.id])
            self._ended(record.id, f"node {record.address} does not answer")


async def _value(reference: Any) -> Any:
    return await reference


def _nodes() -> list[Node]:
    return [
        Node(
            told["NodeID"],
            told["NodeManagerAddress"],
            told["NodeName"],
            told["Resources"],
            told["Labels"],
            f"{told['NodeManagerAddress']}:{told['NodeManagerPort']}",
        )
        for told in ray.nodes()
        if told["Alive"]
    ]


async def _is_open(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            _, writer = await asyncio.open_connection(host, int(port))
    except OSError:  # TimeoutError is one
        return False
    writer.close()
    return True
