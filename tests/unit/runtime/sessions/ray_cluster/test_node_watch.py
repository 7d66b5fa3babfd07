"""When a call is told that the node is lost from which it waits for an answer."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from runtime.sessions.ray_cluster import node_watch
from runtime.sessions.ray_cluster.node_watch import MISSED_LOOKS, QUIET_SECONDS, NodeWatch
from runtime.sessions.ray_cluster.nodes import Node

A, B = (Node(name, "10.0.0.1", name, {}, {}) for name in "ab")


class Ports:
    """The ports of nodes: `open` are the ids of those that open, `asked` of those looked at."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.asked: list[str] = []

    def __call__(self, nodes: Sequence[Node]) -> list[bool]:
        self.asked = [node.id for node in nodes]
        return [node.id in self.open for node in nodes]


def later() -> float:
    return time.monotonic() + QUIET_SECONDS


def test_a_node_is_given_up_after_several_looks() -> None:
    ports, lost = Ports(), list[str]()
    ports.open = {"b"}
    watch = NodeWatch(ports)
    for node in (A, A, B):
        watch.add(node, lambda node=node: lost.append(node.id))  # type: ignore[misc]
    for _ in range(MISSED_LOOKS):
        assert lost == []
        watch.look(later())
        assert sorted(ports.asked) == ["a", "b"]
    assert lost == ["a", "a"]
    watch.look(later())
    assert ports.asked == ["b"]
    assert lost == ["a", "a"]


def test_a_port_that_opens_again_is_not_lost() -> None:
    ports, lost = Ports(), list[str]()
    watch = NodeWatch(ports)
    watch.add(A, lambda: lost.append("a"))
    for is_open in (False, False, True, False, False):
        ports.open = {"a"} if is_open else set()
        watch.look(later())
    assert lost == []


def test_a_node_is_not_looked_at_for_calls_that_are_young_or_have_ended() -> None:
    ports = Ports()
    watch = NodeWatch(ports)
    waiting = watch.add(A, lambda: None)
    watch.look(time.monotonic())
    assert ports.asked == []
    watch.remove(waiting)
    watch.remove(waiting)
    watch.look(later())
    assert ports.asked == []


@pytest.mark.parametrize(
    ("error", "is_open"),
    [
        (OSError(errno.EMFILE, "Too many open files"), True),  # says nothing of the node
        (OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"), True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), False),
        (OSError(errno.EHOSTUNREACH, "No route to host"), False),
        (TimeoutError("timed out"), False),
    ],
)
def test_a_fault_of_this_machine_is_none_of_the_node(
    error: OSError, is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> socket.socket:
        raise error

    monkeypatch.setattr(socket, "create_connection", fail)
    assert node_watch._are_open([A]) == [is_open]


def test_a_thread_that_does_not_start_is_started_for_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ports = Ports()
    watch = NodeWatch(ports)
    with monkeypatch.context() as without_threads:
        without_threads.setattr(threading.Thread, "start", fail)
        watch.add(A, lambda: None)
    watch.look(later())
    assert ports.asked == []
    watch.add(B, lambda: None)
    watch.look(later())
    assert ports.asked == ["b"]
