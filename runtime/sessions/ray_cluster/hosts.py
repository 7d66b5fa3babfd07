"""Hosts: the host actors that this program uses, one for each node, and actors of single sessions.

A node's host is a detached actor with a name, so that every program finds the same one, and ends
by itself after HOST_IDLE_SECONDS without a session. It takes no CPU of Ray's account, because its
sessions come and go. The actor of an isolated session takes what the session asks for, one CPU if
nothing; it belongs to this program and ends with it at the latest.

Guarantees: all methods may be called from any thread. `_lock` guards all fields, and is held while
a node is chosen, but not while an actor is looked up or starts.
"""

from __future__ import annotations

import atexit
import collections
import concurrent.futures
import contextlib
import importlib
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import protos as pb
from runtime.foundation.errors import (
    DeadlineExceededError,
    OpError,
    ResourceExhaustedError,
    UnavailableError,
)
from runtime.sessions.ray_cluster.actor_values import PROTOCOL, Answer, content_of
from runtime.sessions.ray_cluster.cluster_connection import NAMESPACE
from runtime.sessions.ray_cluster.node_watch import LOOK_SECONDS, QUIET_SECONDS, node_watch
from runtime.sessions.ray_cluster.nodes import Node
from runtime.sessions.ray_cluster.ray_errors import as_ray_error
from runtime.sessions.ray_cluster.ray_target import Placement

HOST_IDLE_SECONDS = 300.0
START_SECONDS = 60.0  # until an actor must have started: a new process imports the runtime
KEEP_ALIVE_SECONDS = 10.0
GRACE_SECONDS = 1.0  # after a deadline, for the answer that says so
_GOODBYE_SECONDS = 2.0
_CONCURRENT_CALLS = 10_000  # of all clients of an actor; waiting steps count
# The program of the actor stands above this module: it knows registrations and models.
_ACTOR = ("runtime.session_host.host_actor", "HostActor")


class Host:
    """An actor with sessions. `node` is where it is; of an isolated one, once it runs."""

    def __init__(self, actor: Any, node: Node, is_isolated: bool) -> None:
        self.actor = actor
        self.node = node
        self.is_isolated = is_isolated

    @property
    def name(self) -> str:
        """What errors call it."""
        kind = "an actor of its own" if self.is_isolated else "the session host"
        return f"{kind} on node {self.node.address} ({self.node.id[:8]})"

    def start(self, method: str, argument: Any = None) -> Any:
        """Call a method and return the reference of its answer; raise its OpError."""
        try:
            return getattr(self.actor, method).remote(argument)
        except Exception as error:
            raise as_ray_error(error, self.name) from None

    def result(self, reference: Any, seconds: float | None, *, is_node_known: bool = True) -> Any:
        """Wait for an answer and return it; raise DeadlineExceededError after `seconds`.

        Raises UnavailableError if the node is given up meanwhile, which is not looked at as long as
        it is not known.
        """
        left = math.inf if seconds is None else seconds + GRACE_SECONDS
        quiet = QUIET_SECONDS if is_node_known else math.inf
        try:
            try:
                shorter = min(left, quiet)
                return ray.get(reference, timeout=None if shorter == math.inf else shorter)
            except exceptions.GetTimeoutError:
                if left <= quiet:
                    raise
                return self._watched(reference, left - quiet)
        except Exception as error:
            raise as_ray_error(error, self.name) from None

    def _watched(self, reference: Any, seconds: float) -> Any:
        """Wait for an answer while its node is watched."""
        is_lost = threading.Event()
        until = time.monotonic() + seconds
        waiting = node_watch.add(self.node, is_lost.set)
        try:
            while True:
                left = max(0.0, until - time.monotonic())
                try:
                    return ray.get(reference, timeout=min(left, LOOK_SECONDS / 2))
                except exceptions.GetTimeoutError:
                    if is_lost.is_set():
                        raise self.lost() from None
                    if left <= LOOK_SECONDS / 2:
                        raise
        finally:
            node_watch.remove(waiting)

    def lost(self) -> UnavailableError:
        """Return the error of a call whose answer does not come because its node is given up."""
        return UnavailableError(
            f"The actor can't be reached at present ({self.name}: the port of the node does not "
            "open)"
        )

    def call(self, method: str, argument: Any = None, seconds: float | None = None) -> Any:
        """Call a method, wait for its answer and return the content; raise its OpError."""
        return content_of(self.result(self.start(method, argument), seconds))

    def open(self, method: str, argument: Any, seconds: float | None) -> pb.CreateSessionResponse:
        """Open a session by a method; one that is opened after this has failed is closed."""
        answer = self.start(method, argument)
        try:
            return _opened(self.result(answer, seconds))
        except BaseException:
            answer.future().add_done_callback(self._close_late)
            raise

    def _close_late(self, answer: concurrent.futures.Future[Any]) -> None:
        with contextlib.suppress(Exception):  # none is opened, or it has ended with its host
            self.start("close", _opened(answer.result()).session_handle)

    def kill(self) -> None:
        """End the actor at once."""
        with contextlib.suppress(Exception):  # it is dead already, or Ray has been shut down
            ray.kill(self.actor)


class Hosts:
    """The hosts that this process has found or made. `client` names the process to hosts."""

    def __init__(self) -> None:
        self.client = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._shared: dict[str, Host] = {}  # by node id
        self._counts: collections.Counter[Host] = collections.Counter()  # open sessions
        self._opening: collections.Counter[str] = collections.Counter()  # by node id
        self._keeper: threading.Thread | None = None
        self._ended = threading.Event()

    @contextlib.contextmanager
    def opening(self, choose: Callable[[Mapping[str, int]], Node]) -> Iterator[Node]:
        """Choose the node of a session, which counts there inside the context.

        `choose` gets the number of this program's sessions by node id, open or being opened.
        """
        with self._lock:
            counts = self._opening.copy()
            for host, count in self._counts.items():
                counts[host.node.id] += count
            node = choose(counts)
            self._opening[node.id] += 1
        try:
            yield node
        finally:
            with self._lock:
                self._opening[node.id] -= 1

    def shared(self, node: Node) -> Host:
        """Return the host of a node, which is started if there is none."""
        with self._lock:
            host = self._shared.get(node.id)
        if host is not None:
            return host
        options = {
            "name": f"session_host.{PROTOCOL}.{node.id}",
            "namespace": NAMESPACE,
            "lifetime": "detached",
            "get_if_exists": True,
            "num_cpus": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False),
        }
        host = Host(_make([node], options), node, False)
        host.call("describe", None, START_SECONDS)
        with self._lock:
            return self._shared.setdefault(node.id, host)

    def isolated(self, placement: Placement, nodes: Sequence[Node], node: Node) -> Host:
        """Start an actor for one session; raise ResourceExhaustedError if Ray finds no room.

        If the placement names no node, it is Ray that chooses one of `nodes` which has room.
        """
        amounts = {"CPU": 1.0, **placement.amounts}
        options: dict[str, Any] = {"num_cpus": amounts.pop("CPU")}
        if "memory" in amounts:
            options["memory"] = int(amounts.pop("memory"))
        if "GPU" in amounts:
            options["num_gpus"] = amounts.pop("GPU")
        if amounts:
            options["resources"] = amounts
        if placement.node:
            strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
            options["scheduling_strategy"] = strategy
        elif placement.labels:
            options["label_selector"] = dict(placement.labels)
        host = Host(_make(nodes, options), node, True)
        try:
            answer = host.start("describe")
            is_known = bool(placement.node)
            described = content_of(host.result(answer, START_SECONDS, is_node_known=is_known))
            host.node = next((each for each in nodes if each.id == described["node"]), node)
        except DeadlineExceededError:
            host.kill()
            raise ResourceExhaustedError(
                f"No actor with {_shown(placement)} could start within {START_SECONDS:g} s: the "
                "nodes that have these resources are in use"
            ) from None
        except BaseException:
            host.kill()
            raise
        return host

    def forget(self, host: Host) -> None:
        """Look the node's host up again at the next session, because this one has ended."""
        with self._lock:
            if self._shared.get(host.node.id) is host:
                del self._shared[host.node.id]

    def forget_all(self) -> None:
        """Forget every host: the program has joined a cluster anew, and old handles are void."""
        with self._lock:
            self._shared.clear()

    def opened(self, host: Host) -> None:
        """Count a session; while there is one, the hosts hear that this program lives."""
        with self._lock:
            self._counts[host] += 1
            if self._keeper is None:
                self._keeper = threading.Thread(
                    target=self._keep_alive, name="ray_keep_alive", daemon=True
                )
                self._keeper.start()
                atexit.register(self._say_goodbye)

    def closed(self, host: Host) -> None:
        """Count a session that has ended."""
        with self._lock:
            self._counts[host] -= 1
            if not self._counts[host]:
                del self._counts[host]

    def _in_use(self) -> list[Host]:
        with self._lock:
            return list(self._counts)

    def _keep_alive(self) -> None:
        while not self._ended.wait(KEEP_ALIVE_SECONDS):
            if ray.is_initialized():
                self._tell_hosts("keep_alive")

    def _tell_hosts(self, method: str) -> list[Any]:
        references = []
        for host in self._in_use():
            with contextlib.suppress(OpError):  # its sessions will notice
                references.append(host.start(method, self.client))
        return references

    def _say_goodbye(self) -> None:
        """Close what is open, so that hosts need not wait for the silence of this program."""
        self._ended.set()
        if ray.is_initialized() and (references := self._tell_hosts("close_client")):
            ray.wait(references, num_returns=len(references), timeout=_GOODBYE_SECONDS)


def _opened(answer: Answer) -> pb.CreateSessionResponse:
    return pb.CreateSessionResponse.FromString(content_of(answer))


def _make(nodes: Sequence[Node], options: dict[str, Any]) -> Any:
    module, name = _ACTOR
    addresses = {node.id: node.address for node in nodes}
    actor_class = ray.remote(getattr(importlib.import_module(module), name))
    try:
        return actor_class.options(
            max_concurrency=_CONCURRENT_CALLS, max_restarts=0, **options
        ).remote(addresses, HOST_IDLE_SECONDS)
    except Exception as error:
        raise as_ray_error(error, "a session host") from None


def _shown(placement: Placement) -> str:
    amounts = {"CPU": 1.0, **placement.amounts}
    return ", ".join(f"{name}={amount:g}" for name, amount in amounts.items())


hosts = Hosts()
