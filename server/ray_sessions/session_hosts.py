"""SessionHosts: the actors of the session hosts, as the directory starts, watches and ends them.

Guarantees: used from one event loop.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import importlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from runtime.errors import OpError
from runtime.ray_api import (
    NAMESPACE,
    Node,
    Placement,
    as_ray_error,
    choose_node,
    content_of,
    feasible_nodes,
)
from server.ray_sessions.cluster_nodes import LOOK_SECONDS, ClusterNodes
from server.ray_sessions.directory import Directory, HostRecord
from server.ray_sessions.host_ids import follower_of, host_name, new_host_id

_log = logging.getLogger(__name__)

START_SECONDS = 120.0  # until a host must have loaded the models
SILENT_SECONDS = 3.0  # after which a host that does not answer is passed over
MISSED_LOOKS = 3  # after which a node that does not answer is given up
CONCURRENT_CALLS = 10_000
_DESCRIBE_SECONDS = 10.0
# The program of a host stands above this module.
_ACTOR = ("server.session_host_actor", "SessionHostActor")


class SessionHosts:
    """The hosts in a directory; `on_change` is called when there is one more or less."""

    def __init__(
        self, application: str, directory: Directory, on_change: Callable[[], None]
    ) -> None:
        self._application = application
        self._directory = directory
        self._on_change = on_change
        self._nodes = ClusterNodes()
        self._actors: dict[str, Any] = {}  # by host id
        self._starting: dict[str, asyncio.Task[str]] = {}  # by node id
        self._waiting: collections.Counter[str] = collections.Counter()  # sessions, by node id
        self._begun: set[str] = set()  # what hosts that start are called as followers
        self._tasks: set[asyncio.Task[Any]] = set()
        self._silent: set[str] = set()  # ids of nodes whose hosts do not answer at present
        self._missed: dict[str, int] = {}  # by host id: looks at its node without an answer

    @property
    def are_none(self) -> bool:
        """Whether there is no host, and none starts."""
        return not self._directory.hosts and not self._starting

    def actor(self, host_id: str) -> Any:
        """Return the actor of a host."""
        return self._actors[host_id]

    def followers(self) -> set[str]:
        """Return what the hosts are called where changes of models are spoken of."""
        records = self._directory.hosts.values()
        return {follower_of(each.id, each.address) for each in records} | self._begun

    # --- the start of the directory ------------------------------------------------------------

    async def find(self, names: Iterable[str]) -> str:
        """Ask the hosts with these names what they have; return which has the master, or ""."""
        found = await asyncio.gather(*(self._find(name) for name in names))
        return next((host_id for host_id in found if host_id), "")

    async def _find(self, name: str) -> str:
        try:
            actor = await asyncio.to_thread(ray.get_actor, name, NAMESPACE)
            told = content_of(
                await asyncio.wait_for(_value(actor.describe.remote()), _DESCRIBE_SECONDS)
            )
        except (ValueError, TimeoutError, OpError, ray.exceptions.RayError) as error:
            _log.warning("A session host is not found again: %s: %r", name, error)
            return ""
        if not told["is_ready"]:  # nobody waits for it any more
            ray.kill(actor)
            return ""
        self._add(told["id"], told["node_id"], told["address"], actor, told["sessions"])
        return str(told["id"]) if told["is_master"] else ""

    def _add(self, host_id: str, node_id: str, address: str, actor: Any, sessions: int = 0) -> None:
        record = HostRecord(host_id, node_id, address, time.monotonic(), sessions)
        self._directory.add(record)
        self._actors[host_id] = actor
        self._background(self._watch(record, actor))
        self._background(self._listen(record, actor))
        self._on_change()

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- new hosts -----------------------------------------------------------------------------

    async def for_session(
        self, placement: Placement, settings: dict[str, Any], position: int
    ) -> str:
        """Return the id of the host with the fewest sessions, after starting it if need be.

        One that does not answer at present is chosen only if there is no node without such a host.
        A new one gets the settings, which have the changes of the models before number `position`.
        """
        while True:
            nodes = await self._nodes.usable()
            fitting = feasible_nodes(placement, nodes)
            heard = [each for each in fitting if each.id not in self._silent]
            counts = self._waiting + collections.Counter(self._directory.counts())
            node = choose_node(placement, heard or fitting, counts)
            with self._wait_for(node):
                is_known = self._directory.on_node(node.id) or node.id in self._starting
                if not is_known and not await self._nodes.answers(node):
                    continue
                record = self._directory.on_node(node.id)
                if record is not None:
                    return record.id
                if node.id not in self._starting:
                    starting = asyncio.ensure_future(self._start(node, settings, position))
                    self._starting[node.id] = starting
                    starting.add_done_callback(functools.partial(self._has_started, node.id))
                return await asyncio.shield(self._starting[node.id])

    @contextlib.contextmanager
    def _wait_for(self, node: Node) -> Iterator[None]:
        """Count a session on a node inside the context, until it has a place in a host there."""
        self._waiting[node.id] += 1
        try:
            yield
        finally:
            self._waiting[node.id] -= 1

    def _has_started(self, node_id: str, _: asyncio.Task[str]) -> None:
        del self._starting[node_id]

    async def _start(self, node: Node, settings: dict[str, Any], position: int) -> str:
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
            .remote(self._application, host_id, node.id, node.address, settings, position)
        )
        follower = follower_of(host_id, node.address)
        self._begun.add(follower)
        try:
            content_of(await asyncio.wait_for(_value(actor.start.remote()), START_SECONDS))
            self._add(host_id, node.id, node.address, actor)
        except Exception as error:
            with contextlib.suppress(Exception):
                ray.kill(actor)
            raise as_ray_error(error, f"the session host on node {node.address}") from None
        finally:
            self._begun.discard(follower)
        return host_id

    # --- ends ----------------------------------------------------------------------------------

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

    async def _listen(self, record: HostRecord, actor: Any) -> None:
        """Note whether a host answers: one that hangs may come back, so it is not ended."""
        while record.id in self._directory.hosts:
            told = asyncio.ensure_future(_value(actor.describe.remote()))
            if not (await asyncio.wait((told,), timeout=SILENT_SECONDS))[0]:
                _log.warning("host=%s on node %s does not answer", record.id, record.address)
                self._silent.add(record.node_id)
                await asyncio.wait((told,))
                self._silent.discard(record.node_id)
                if told.exception() is None:
                    _log.warning("host=%s on node %s answers again", record.id, record.address)
            told.exception()  # `_watch` notes an end
            await asyncio.sleep(LOOK_SECONDS)

    def _ended(self, host_id: str, reason: str) -> None:
        _log.warning("host=%s ended: %s", host_id, reason)
        self._directory.end(host_id, reason)
        self._actors.pop(host_id, None)
        self._missed.pop(host_id, None)
        self._on_change()

    async def look(self, idle_since: float) -> None:
        """Give up hosts whose nodes do not answer, and end those without sessions since then."""
        nodes = await self._nodes.look()
        looks = [
            self._look_at(record, nodes.get(record.node_id))
            for record in list(self._directory.hosts.values())
        ]
        await asyncio.gather(*looks)
        for record in self._directory.idle(idle_since):
            self._directory.forget(record.id)
            ray.kill(self._actors.pop(record.id))
            self._on_change()

    async def _look_at(self, record: HostRecord, node: Node | None) -> None:
        """Give a host up if the port of its node does not open in MISSED_LOOKS looks.

        Ray itself takes longer to declare a node dead. The host is killed, so that it can't come
        back and have sessions that are known to be lost.
        """
        if node is None or await self._nodes.answers(node):
            self._missed.pop(record.id, None)
            return
        self._missed[record.id] = self._missed.get(record.id, 0) + 1
        if self._missed[record.id] >= MISSED_LOOKS and record.id in self._actors:
            ray.kill(self._actors[record.id])
            self._ended(record.id, f"node {record.address} does not answer")

    def kill_all(self) -> None:
        """End all hosts, and with them all sessions."""
        for actor in self._actors.values():
            ray.kill(actor)
        self._actors.clear()


async def _value(reference: Any) -> Any:
    return await reference
