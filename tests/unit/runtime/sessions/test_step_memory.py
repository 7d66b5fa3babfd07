"""What a step held goes with it: nothing waits for the garbage collector, which comes seldom."""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancellationManager,
    CancelledError,
    DirectSession,
    InvalidArgumentError,
    OpError,
    RunRequest,
)
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import direct_session, g1, in_caller, queue_graph
from tests.unit.runtime.sessions.test_step_errors import loop_graph

SECONDS = 30  # to wait for a thread that ends


@pytest.fixture(autouse=True)
def _collector_stays_away() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def value() -> np.ndarray:
    return np.ones(3, np.float32)


def run(session: DirectSession, fed: np.ndarray, options: pb.RunOptions) -> list[np.ndarray]:
    return session.run({"x": fed}, ["n"], (), options)


def run_in_parts(session: DirectSession, fed: np.ndarray, _: pb.RunOptions) -> list[np.ndarray]:
    handle = session.partial_run_setup(["x"], ["m:0", "n:0"])
    session.partial_run(handle, {"x": fed}, ["m:0"])
    return session.partial_run(handle, {}, ["n:0"])


def run_callable(session: DirectSession, fed: np.ndarray, options: pb.RunOptions) -> list[object]:
    made = pb.CallableOptions(feed=["x"], fetch=["n"], run_options=options)
    return session.run_callable(session.make_callable(made), [fed])


OPTIONS = pytest.mark.parametrize(
    "options",
    [pb.RunOptions(), in_caller(), pb.RunOptions(timeout_in_ms=60_000)],
    ids=["pool", "caller", "timeout"],
)


@OPTIONS
@pytest.mark.parametrize("call", [run, run_in_parts, run_callable])
def test_feeds_and_fetches_go_with_their_last_reader(
    call: Callable[..., list[np.ndarray]], options: pb.RunOptions
) -> None:
    session = direct_session(g1())
    fed = value()
    fetched = call(session, fed, options)
    traces = [weakref.ref(fed), weakref.ref(fetched[0])]
    assert [trace() is None for trace in traces] == [False, False]
    del fed, fetched
    until_idle(session)
    assert [trace() is None for trace in traces] == [True, True]


def until_idle(session: DirectSession) -> None:
    """Until the pool's threads have let go of what they ran last: they take another task."""
    for pool in session.thread_pools:
        together = threading.Barrier(pool.num_threads + 1)
        for _ in range(pool.num_threads):
            pool.schedule(functools.partial(together.wait, SECONDS))
        together.wait(SECONDS)


@OPTIONS
@pytest.mark.parametrize("fetch", ["nowhere", "n:7", "n"])
def test_a_step_that_fails_holds_no_feed(fetch: str, options: pb.RunOptions) -> None:
    built = Graph()
    built.add("AddV2", built.placeholder("float32", "x"), np.zeros(2, np.float32), name="n")
    session = direct_session(built.graph_def)
    fed = value()
    with pytest.raises(OpError):
        session.run({"x": fed}, [fetch], (), options)
    trace = weakref.ref(fed)
    del fed
    until_idle(session)
    assert trace() is None


def test_a_loop_leaves_nothing() -> None:
    session = direct_session(loop_graph())
    start = np.array(2, np.int32)
    assert session.run({"start": start}, ["exit"]) == [5]
    trace = weakref.ref(start)
    del start
    until_idle(session)
    assert trace() is None


def test_a_step_that_was_cancelled_while_it_waited_leaves_nothing() -> None:
    session = direct_session(queue_graph())
    for _ in range(2):
        session.run({"value": np.float32(1)}, (), ["enq"])
    cancellation = CancellationManager()
    fed = np.array(3, np.float32)
    future = session.run_async(RunRequest({"value": fed}, (), ["enq"], cancellation=cancellation))
    cancellation.cancel(CancelledError("enough"))
    with pytest.raises(CancelledError):
        future.result()
    trace = weakref.ref(fed)
    del fed, future
    until_idle(session)
    assert trace() is None


def test_a_short_step_that_fails_at_once_holds_no_feed() -> None:
    built = Graph()
    built.add("AddV2", built.placeholder("float32", "x"), np.zeros(3, np.float32), name="n")
    session = direct_session(built.graph_def)
    request = RunRequest({"x": value()}, ["n"])
    session.run_async(request).result()
    session._graph.compiled(request).executor.duration.seconds = 0.0
    fed = np.ones(2, np.float32)
    with contextlib.suppress(InvalidArgumentError):
        session.run_if_short(RunRequest({"x": fed}, ["n"]))
        raise AssertionError("it had to be queued on a pool")
    trace = weakref.ref(fed)
    del fed
    assert trace() is None
