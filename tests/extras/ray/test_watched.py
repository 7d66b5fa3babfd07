"""How long a call waits for the answer of a host whose node may be given up."""

from __future__ import annotations

import collections
import math
import types
from collections.abc import Callable
from typing import Any

import pytest
import ray
from ray.exceptions import ActorDiedError, GetTimeoutError

from runtime.api import AbortedError, DeadlineExceededError, UnavailableError
from runtime.sessions.ray_cluster import hosts
from runtime.sessions.ray_cluster.hosts import GRACE_SECONDS, Host
from runtime.sessions.ray_cluster.node_watch import LOOK_SECONDS, QUIET_SECONDS
from runtime.sessions.ray_cluster.nodes import Node

NODE = Node("a" * 40, "10.0.0.1", "a", {}, {})
LATE = GetTimeoutError("Get timed out")


class Waits:
    """A `ray.get` that takes no time: it answers in turn, and moves the clock by its timeout."""

    def __init__(self, *answers: Any) -> None:
        self._answers = collections.deque(answers)
        self.timeouts: list[float | None] = []
        self.now = 0.0
        self.watched = 0
        self.on_lost: Callable[[], object] = lambda: None
        self.lost_after = math.inf  # seconds

    def get(self, _: Any, timeout: float | None) -> Any:
        self.timeouts.append(timeout)
        answer = self._answers.popleft() if self._answers else LATE
        if not isinstance(answer, GetTimeoutError):
            if isinstance(answer, Exception):
                raise answer
            return answer
        assert timeout is not None, "it would wait for ever"
        self.now += timeout
        if self.watched and self.now >= self.lost_after:
            self.on_lost()
        raise answer

    def add(self, node: Node, on_lost: Callable[[], object]) -> object:
        """Begin to watch, in place of `node_watch`."""
        assert node is NODE
        self.watched += 1
        self.on_lost = on_lost
        return node

    def remove(self, waiting: object) -> None:
        """End to watch."""
        assert waiting is NODE
        self.watched -= 1


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr(ray, "get", made.get)
    monkeypatch.setattr(hosts, "node_watch", made)
    monkeypatch.setattr(hosts, "time", types.SimpleNamespace(monotonic=lambda: made.now))
    return made


def answers(waits: Waits, *told: Any) -> None:
    waits._answers.extend(told)


HOST = Host(None, NODE, False)


def test_a_quick_answer_is_not_watched(waits: Waits) -> None:
    answers(waits, "done")
    assert HOST.result(None, None) == "done"
    assert waits.timeouts == [QUIET_SECONDS]


def test_a_late_answer_of_a_node_that_is_there(waits: Waits) -> None:
    answers(waits, LATE, LATE, LATE, "done")
    assert HOST.result(None, None) == "done"
    assert waits.timeouts == [QUIET_SECONDS, *[LOOK_SECONDS / 2] * 3]
    assert waits.watched == 0


def test_a_node_that_is_given_up_ends_the_call(waits: Waits) -> None:
    waits.lost_after = 4.0
    with pytest.raises(
        UnavailableError, match=r"can't be reached at present .*: the port of the node does not"
    ):
        HOST.result(None, 60.0)
    assert 4.0 <= waits.now <= 4.0 + LOOK_SECONDS / 2
    assert waits.watched == 0


@pytest.mark.parametrize("seconds", [0.0, 0.3, QUIET_SECONDS - GRACE_SECONDS, 0.7, 2.6, 5.0])
def test_a_deadline_holds_while_the_node_is_watched(waits: Waits, seconds: float) -> None:
    with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
        HOST.result(None, seconds)
    assert waits.now == pytest.approx(seconds + GRACE_SECONDS)
    assert waits.watched == 0


def test_a_host_that_ends_while_its_node_is_watched(waits: Waits) -> None:
    answers(waits, LATE, ActorDiedError())
    with pytest.raises(AbortedError, match="The session is lost with its actor"):
        HOST.result(None, None)
    assert waits.watched == 0


def test_a_node_that_is_not_known_is_not_watched(waits: Waits) -> None:
    with pytest.raises(DeadlineExceededError):
        HOST.result(None, 60.0, is_node_known=False)
    assert waits.timeouts == [60.0 + GRACE_SECONDS]
