"""DirectoryActor: the named, detached actor that places sessions on the nodes of a Ray cluster.

Calls on open sessions do not pass here: a session's id names its host, which is an actor with a
name. The directory chooses the node of a new session, starts the hosts, counts sessions, knows how
hosts have ended, and lets the served models change in all hosts and front ends or in none. Ray
starts it again when it ends; then it asks the hosts what they have, and has the rest from the GCS.

Guarantees: its methods are coroutines on one event loop, so there are no locks. Each returns an
Answer (`runtime.ray_api`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import ray

from runtime.ray_api import (
    NAMESPACE,
    Answer,
    as_ray_error,
    exit_actor,
    refusal,
)
from server.host import Change
from server.ray_sessions.change_turns import ChangeTurns
from server.ray_sessions.cluster_nodes import LOOK_SECONDS
from server.ray_sessions.cluster_settings import nodes_option
from server.ray_sessions.directory import Directory
from server.ray_sessions.host_ids import host_prefix, is_front
from server.ray_sessions.kept_state import forget_state, keep_state, kept_state
from server.ray_sessions.model_changes import Instruction, Refusal
from server.ray_sessions.session_hosts import SessionHosts
from server.ray_sessions.switchboard import Origin, Question, Switchboard

_log = logging.getLogger(__name__)

FRONT_SECONDS = 10.0  # after which a front end that says nothing is given up
CONFIGURE_SECONDS = 120.0  # until the hosts must have the models that an operator has changed
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
        self._recovery: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._master = ""
        self._started_at = self._heard_at = time.monotonic()
        self._fronts: dict[str, float] = {}  # when each was heard of last
        self._directory = Directory(0)
        self._hosts = SessionHosts(application, self._directory, self._hosts_changed)
        self._turns = ChangeTurns(self._keep)
        self._switchboard = Switchboard()
        self._set(settings, nodes)

    def _set(self, settings: dict[str, Any], nodes: str) -> None:
        self._settings, self._nodes = settings, nodes
        self._placement = nodes_option(nodes)
        self._directory.max_open = settings["sessions"]["max_open"]

    # --- the start, also after an end ----------------------------------------------------------

    async def recovered(self) -> None:
        """Wait until the hosts that there are have said what they have."""
        self._heard_at = time.monotonic()
        last = self._recovery
        if last is None or (last.done() and last.exception() is not None):
            self._recovery = asyncio.ensure_future(self._recover())
        assert self._recovery is not None
        await asyncio.shield(self._recovery)

    async def _recover(self) -> None:
        kept = await asyncio.to_thread(kept_state, self._application)
        if kept is not None:
            self._set(kept["settings"], kept["nodes"])
            self._turns.restore(kept["changes"])
        named = await asyncio.to_thread(ray.util.list_named_actors, all_namespaces=True)
        prefix = host_prefix(self._application)
        names = [
            each["name"]
            for each in named
            if each["namespace"] == NAMESPACE and each["name"].startswith(prefix)
        ]
        self._master = await self._hosts.find(names)
        if kept is not None:
            self._directory.restore(kept["directory"])
        self._turns.changes.followers |= self._hosts.followers()
        self._looking = asyncio.ensure_future(self._look_forever())

    async def _keep(self, changes: dict[str, Any]) -> None:
        state = {
            "settings": self._settings,
            "nodes": self._nodes,
            "changes": changes,
            "directory": self._directory.kept(),
        }
        await asyncio.to_thread(keep_state, self._application, state)

    def _hosts_changed(self) -> None:
        """Keep which hosts there are, soon."""
        if self._recovery is None or not self._recovery.done():
            return
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.ensure_future(self._keep_hosts())

    async def _keep_hosts(self) -> None:
        await asyncio.sleep(0)  # several may have ended together
        try:
            await self._keep(self._turns.changes.kept())
        except Exception as error:
            _log.warning("The state of the directory can't be kept: %r", error)

    # --- calls ---------------------------------------------------------------------------------

    @_answered
    async def configure(self, settings: dict[str, Any], nodes: str, waits: bool) -> None:
        """Take the settings of a front end, for hosts that start later.

        Other models than before are for all hosts; `waits` until they have them.
        """
        has_changed = settings.get("models") != self._settings.get("models")
        self._set(settings, nodes)
        if has_changed:
            await self._turns.begin_anew({"configure": settings.get("models") or []})
        else:
            await self._keep(self._turns.changes.kept())
        if waits:
            late = await self._turns.made_by([*self._hosts.followers()], CONFIGURE_SECONDS)
            if late:
                _log.warning("These do not have the new models yet: %s", ", ".join(late))

    @_answered
    async def place(self) -> tuple[str, int]:
        """Return the id of the host for a new session, which is started if need be, and a ticket.

        Raises what `choose_node` raises, ResourceExhaustedError if there are too many sessions, and
        the error of a host that does not start.
        """
        self._directory.check_place(time.monotonic())
        host_id = await self._host()
        return host_id, self._directory.reserve(host_id, time.monotonic())

    async def _host(self) -> str:
        return await self._hosts.for_session(
            self._placement, self._settings, self._turns.changes.for_newcomers
        )

    @_answered
    async def master(self) -> str:
        """Return the id of the host that has TensorFlow's master."""
        if self._master not in self._directory.hosts:
            self._master = await self._host()
            await self._hosts.actor(self._master).be_master.remote()
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
    async def ping(self, front: str) -> None:
        """Answer, so that a front end knows that the directory runs, and it that the front does."""
        self._fronts[front] = time.monotonic()

    @_answered
    async def fronts(self) -> list[str] | None:
        """Return the front ends that there are; None if some may not have said so since the start.

        They are given up after FRONT_SECONDS.
        """
        is_known = time.monotonic() - self._started_at > FRONT_SECONDS
        return list(self._fronts) if is_known else None

    @_answered
    async def leave(self, front: str) -> None:
        """Forget a front end that ends."""
        self._fronts.pop(front, None)
        await self._turns.drop(front)

    @_answered
    async def stop(self) -> None:
        """End the hosts, and with them all sessions, and the directory."""
        self._hosts.kill_all()
        await asyncio.to_thread(forget_state, self._application)
        asyncio.get_running_loop().call_later(0.1, exit_actor)

    # --- changes of the models: see ChangeTurns ------------------------------------------------

    @_answered
    async def follow(
        self, who: str, position: int, tried: tuple[str, Refusal | None] | None, waits: bool
    ) -> Instruction | None:
        """Return what a front end or a host has to do next, or None if there is nothing."""
        if is_front(who):
            self._fronts[who] = time.monotonic()
        return await self._turns.follow(who, position, tried, waits=waits)

    @_answered
    async def take_turn(self, front: str, ticket: str) -> int:
        """Wait until a front end may change the models; return the number of the next change."""
        return await self._turns.take(front, ticket)

    @_answered
    async def give_turn(self, ticket: str) -> None:
        """End a turn."""
        await self._turns.give(ticket)

    @_answered
    async def change(
        self, ticket: str, change_id: str, change: Change, seconds: float | None
    ) -> None:
        """Make a change in all front ends and hosts, or in none."""
        await self._turns.change(ticket, change_id, change, seconds)

    @_answered
    async def abandon(self, change_id: str) -> None:
        """Let a change fail whose caller has gone away."""
        await self._turns.abandon(change_id)

    # --- processes that can't be called: see Switchboard ---------------------------------------

    @_answered
    async def listen(self, origin: Origin, answered: tuple[int, Any] | None) -> Question | None:
        """Return what a front or a replica of Ray Serve is asked, or None if it is nothing."""
        return await self._switchboard.listen(origin, answered)

    @_answered
    async def ask_listeners(
        self, but: Origin, what: str, owner: str | None, roles: list[str], seconds: float
    ) -> list[tuple[Origin, Any]]:
        """Return what the fronts and replicas of Ray Serve say."""
        return await self._switchboard.ask(but, what, owner, roles, seconds)

    # --- ends ----------------------------------------------------------------------------------

    async def _look_forever(self) -> None:
        """Give up hosts whose nodes do not answer, and end what nobody uses."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except Exception:
                _log.exception("The nodes can't be looked at")

    async def _look(self) -> None:
        idle_since = time.monotonic() - self._idle_seconds
        await self._hosts.look(idle_since)
        await self._look_at_followers()
        if self._hosts.are_none and self._heard_at < idle_since:
            await asyncio.to_thread(forget_state, self._application)
            exit_actor()

    async def _look_at_followers(self) -> None:
        """Give up the front ends that have said nothing for a while, and forget ended hosts."""
        since = time.monotonic() - FRONT_SECONDS
        for front in [each for each, heard_at in self._fronts.items() if heard_at < since]:
            _log.warning("%s says nothing any more", front)
            del self._fronts[front]
        known = self._hosts.followers() | self._fronts.keys()
        for who in self._turns.changes.followers - known:
            await self._turns.drop(who)
        await self._turns.note()
