"""NodeWatch: whether the nodes from which calls wait for answers still open their ports.

Ray tells soon that an actor has ended with its node. But of an actor that had answered before, a
large answer is awaited until Ray declares the node dead, which takes 15 s and more.

Guarantees: `add` and `remove` may be called from any thread; `look` from one, to which `_missed`
belongs. `_lock` guards `_waiting` and the start of the thread.
"""

from __future__ import annotations

import concurrent.futures
import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence

from runtime.sessions.ray_cluster.nodes import Node

QUIET_SECONDS = 1.0  # for which a call has waited when its node is looked at
LOOK_SECONDS = 1.0
MISSED_LOOKS = 3  # after which a node is given up
# What a node that has ended, or its machine, or the network to it, answers.
_CLOSED = frozenset(
    {errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN}
)
_LOOKS_AT_A_TIME = 16
_log = logging.getLogger(__name__)


class Waiting:
    """A call that waits for an answer from a node; `on_lost` is called if the node is given up."""

    __slots__ = ("node", "on_lost", "since")

    def __init__(self, node: Node, on_lost: Callable[[], object], since: float) -> None:
        self.node = node
        self.on_lost = on_lost
        self.since = since


class NodeWatch:
    """The calls that wait. `are_open` returns for each node whether its port opens."""

    def __init__(self, are_open: Callable[[Sequence[Node]], Sequence[bool]]) -> None:
        self._are_open = are_open
        self._lock = threading.Lock()
        self._waiting: set[Waiting] = set()
        self._missed: dict[str, int] = {}  # by node id: looks in a row without an answer
        self._thread: threading.Thread | None = None

    def add(self, node: Node, on_lost: Callable[[], object]) -> Waiting:
        """Watch the node of a call until `remove`; `on_lost` must be short."""
        waiting = Waiting(node, on_lost, time.monotonic())
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(
                    target=self._look_forever, name="ray_node_watch", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # the system allows no more threads
                    return waiting  # unwatched; the next call tries again
                self._thread = thread
            self._waiting.add(waiting)
        return waiting

    def remove(self, waiting: Waiting) -> None:
        """End the watch of a call; it may have ended already."""
        with self._lock:
            self._waiting.discard(waiting)

    def look(self, now: float) -> None:
        """Look once at the nodes of calls that have waited for a while at `now`."""
        with self._lock:
            late = [each for each in self._waiting if now - each.since >= QUIET_SECONDS]
        nodes = list({each.node.id: each.node for each in late}.values())
        missed = {
            node.id: self._missed.get(node.id, 0) + 1
            for node, is_open in zip(nodes, self._are_open(nodes), strict=True)
            if not is_open
        }
        self._missed = missed
        for each in late:
            if missed.get(each.node.id, 0) >= MISSED_LOOKS:
                self.remove(each)
                each.on_lost()

    def _look_forever(self) -> None:
        pause = threading.Event()
        while not pause.wait(LOOK_SECONDS):
            try:
                self.look(time.monotonic())
            except Exception:
                _log.exception("A look at the nodes failed")


def _are_open(nodes: Sequence[Node]) -> Sequence[bool]:
    if not nodes:
        return []
    with concurrent.futures.ThreadPoolExecutor(min(len(nodes), _LOOKS_AT_A_TIME)) as threads:
        return list(threads.map(_is_open, nodes))


def _is_open(node: Node) -> bool:
    try:
        socket.create_connection((node.address, node.port), LOOK_SECONDS).close()
    except OSError as error:
        return not says_closed(error)
    return True


def says_closed(error: OSError) -> bool:
    """Return whether an attempt to connect says that the port does not open.

    Of other errors, such as too many open files, this machine is the cause.
    """
    return isinstance(error, TimeoutError) or error.errno in _CLOSED


node_watch = NodeWatch(_are_open)
