"""Deadlines of steps: the options and the configuration that set them, and what they end."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancellationManager,
    CancelledError,
    DeadlineExceededError,
    KernelDef,
    RunRequest,
    SessionOptions,
    new_session,
)
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, queue_graph

LONG_MS = 60_000  # longer than a test may take


@pytest.mark.parametrize(
    ("configured", "asked"), [(30, 0), (30, -5), (LONG_MS, 30), (0, 30)], ids=str
)
@pytest.mark.parametrize("pool", [0, -1])
def test_the_options_win_when_they_are_positive(configured: int, asked: int, pool: int) -> None:
    session = direct_session(queue_graph(), pb.ConfigProto(operation_timeout_in_ms=configured))
    options = pb.RunOptions(timeout_in_ms=asked, inter_op_thread_pool=pool)
    started = time.monotonic()
    with pytest.raises(DeadlineExceededError) as caught:
        session.run({}, ["deq"], (), options)
    assert 0.03 <= time.monotonic() - started < LONG_MS / 1000
    assert caught.value.message == "Timed out waiting for notification"


def test_a_deadline_does_not_wait_for_a_kernel() -> None:
    go_on = threading.Event()

    def block(_: object) -> np.ndarray:
        go_on.wait(30)
        return np.array(b"done", object)

    graph = Graph()
    graph.add("StringUpper", np.array(b"", object), name="block")
    graph.add("StringLower", np.array(b"X", object), name="quick")
    session = new_session(SessionOptions(kernels=[KernelDef("StringUpper", block)]))
    session.create(graph.graph_def)
    with pytest.raises(DeadlineExceededError):
        session.run({}, ["block"], (), pb.RunOptions(timeout_in_ms=20))
    go_on.set()
    assert session.run({}, ["quick"])[0][()] == b"x"


def test_one_step_may_be_cancelled_while_the_others_go_on() -> None:
    session = direct_session(queue_graph())
    cancellation = CancellationManager()
    given_up = session.run_async(RunRequest({}, ["deq"], cancellation=cancellation))
    staying = session.run_async(RunRequest({}, ["deq"]))
    cancellation.cancel(CancelledError("No longer wanted"))
    with pytest.raises(CancelledError):
        given_up.result(timeout=30)
    session.run({"value": X}, [], ["enq"])
    assert staying.result(timeout=30) == [3]


def test_callables_run_side_by_side() -> None:
    session = direct_session(g1())
    handle = session.make_callable(pb.CallableOptions(feed=["x"], fetch=["n"]))
    wrong: list[object] = []

    def run_many(seed: int) -> None:
        for step in range(250):
            value = np.float32(seed * 1000 + step)
            if session.run_callable(handle, [value]) != [-2 * value]:
                wrong.append(value)

    threads = [threading.Thread(target=run_many, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_deadline_ends_one_step_only() -> None:
    session = direct_session(queue_graph())
    options = pb.RunOptions(timeout_in_ms=50)
    with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
        session.run({}, ["deq"], (), options)
    session.run({"value": X}, [], ["enq"])
    assert session.run({}, ["deq"]) == [3]


def test_the_configured_timeout_holds_unless_the_options_say_otherwise() -> None:
    session = direct_session(queue_graph(), pb.ConfigProto(operation_timeout_in_ms=30))
    started = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        session.run({}, ["deq"])
    assert time.monotonic() - started < 5
