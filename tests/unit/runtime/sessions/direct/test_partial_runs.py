"""Partial runs: parts, errors, expiry, and the end of their session."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancellationManager,
    CancelledError,
    Code,
    InvalidArgumentError,
    ResourceExhaustedError,
    ThreadPool,
)
from runtime.sessions.direct.partial_runs import PartialRuns
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, g1, queue_graph
from tests.unit.runtime.sessions.session_errors import error_of

SECONDS = 30  # the longest time that a test waits


def test_an_abandoned_partial_run_ends() -> None:
    session = direct_session(g1())
    runs = session._partial_runs = PartialRuns(idle_seconds=0.05)
    handle = session.partial_run_setup(["x"], ["m:0", "n:0"])
    assert len(runs) == 1
    ended = threading.Event()
    while len(runs):
        ended.wait(0.01)  # until the thread of the timer has run
    with pytest.raises(InvalidArgumentError) as caught:
        session.partial_run(handle, {"x": X}, ["m:0"])
    assert caught.value.message == "Must run 'setup' before performing partial runs!"


def test_a_part_renews_the_lease() -> None:
    session = direct_session(g1())
    session._partial_runs = PartialRuns(idle_seconds=SECONDS)
    handle = session.partial_run_setup(["x"], ["m:0", "n:0"])
    assert session.partial_run(handle, {"x": X}, ["m:0"]) == [6]
    assert len(session._partial_runs) == 1
    assert session.partial_run(handle, {}, ["n:0"]) == [-6]
    assert len(session._partial_runs) == 0


def test_a_part_that_is_cancelled_ends_the_run() -> None:
    session = direct_session(queue_graph())
    cancellation = CancellationManager()
    handle = session.partial_run_setup([], ["deq"])
    part = session.partial_run_async(handle, {}, ["deq"], cancellation)
    assert not part.done()
    cancellation.cancel(CancelledError("The client went away."))
    with pytest.raises(CancelledError, match="The client went away"):
        part.result(SECONDS)
    assert len(session._partial_runs) == 0
    message = error_of(lambda: session.partial_run(handle, {}, ["deq"])).message
    assert message == "Must run 'setup' before performing partial runs!"
    # The dequeue waits no longer: what is put in is left for another step.
    session.run({"value": np.float32(4)}, (), ["enq"])
    assert session.run({}, ["size"]) == [1]


def test_a_part_that_has_ended_can_not_be_cancelled() -> None:
    session = direct_session(g1())
    cancellation = CancellationManager()
    handle = session.partial_run_setup(["x"], ["m:0", "n:0"])
    assert session.partial_run_async(handle, {"x": X}, ["m:0"], cancellation).result() == [6]
    with pytest.raises(InvalidArgumentError, match="already been fetched"):
        session.partial_run_async(handle, {}, ["m:0"], cancellation)
    cancellation.cancel(CancelledError("too late"))
    with pytest.raises(CancelledError, match="too late"):
        session.partial_run_async(handle, {}, ["n:0"], cancellation)
    assert session.partial_run(handle, {}, ["n:0"]) == [-6]


def test_a_run_with_a_part_that_waits_is_not_left_alone() -> None:
    session = direct_session(queue_graph())
    runs = session._partial_runs = PartialRuns(idle_seconds=0.02)
    handle = session.partial_run_setup([], ["deq"])
    part = session.partial_run_async(handle, {}, ["deq"])
    (entry,) = runs._entries.values()
    first = entry.deadline
    waiting = threading.Event()
    while entry.deadline < first + 0.04:  # the run would have expired twice by then
        waiting.wait(0.005)
    assert not part.done()
    session.run({"value": np.float32(4)}, (), ["enq"])
    assert part.result(30) == [4]
    assert len(runs) == 0


def test_a_waiting_part_ends_with_its_session() -> None:
    session = direct_session(queue_graph())
    handle = session.partial_run_setup([], ["deq:0"])
    waiting = session.partial_run_async(handle, {}, ["deq:0"])
    session.close()
    error = waiting.exception(SECONDS)
    assert isinstance(error, CancelledError)
    assert error.message == "Dequeue operation was cancelled\n\t [[{{node deq}}]]"


def test_parts_that_wait_hold_no_thread() -> None:
    session = direct_session(
        queue_graph(), pb.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=1)
    )
    pool = session.thread_pools[0]
    handles = [session.partial_run_setup([], ["deq:0"], pool=pool) for _ in range(3)]
    parts = [session.partial_run_async(handle, {}, ["deq:0"]) for handle in handles]
    for value in (1, 2, 3):
        session.run({"value": np.float32(value)}, [], ["enq"])
    assert sorted(part.result(SECONDS)[0] for part in parts) == [1, 2, 3]
    session.destroy()


def test_a_part_may_come_while_another_waits() -> None:
    session = direct_session(queue_graph())
    handle = session.partial_run_setup(["value"], ["deq:0", "size:0"], ["enq"])
    waiting = session.partial_run_async(handle, {}, ["deq:0"])
    with pytest.raises(InvalidArgumentError, match="deq:0 has already been fetched"):
        session.partial_run(handle, {}, ["deq:0"])
    assert not waiting.done()
    size = session.partial_run(handle, {"value": X}, ["size:0"])
    assert size[0] in (0, 1)
    assert waiting.result(SECONDS) == [3]


def test_a_full_pool_refuses_a_part_and_changes_nothing() -> None:
    session = direct_session(g1())
    pool = ThreadPool("small", 1, queue_size=1)
    handle = session.partial_run_setup(["x"], ["m:0"], pool=pool)
    released = threading.Event()
    started = threading.Event()
    while pool.stats().completed < 1:  # the setup computes constants on the pool
        started.wait(0.001)
    pool.schedule(lambda: (started.set(), released.wait(SECONDS)))
    assert started.wait(SECONDS)
    pool.schedule(lambda: None)
    with pytest.raises(ResourceExhaustedError, match="The queue of thread pool small is full"):
        session.partial_run_async(handle, {"x": X}, ["m:0"])
    released.set()
    while pool.stats().queued:
        released.wait(0)
    assert session.partial_run(handle, {"x": X}, ["m:0"]) == [6]
    pool.shutdown()


def test_a_part_that_the_pool_refuses_while_the_step_ends_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = direct_session(g1())
    handle = session.partial_run_setup(["x"], ["m:0"])
    run = session._partial_runs._entries[handle].run

    def end_and_refuse(work: object) -> None:
        run.abandon(CancelledError("closed"))
        raise ResourceExhaustedError("full")

    monkeypatch.setattr(run._step, "runner", end_and_refuse)
    with pytest.raises(ResourceExhaustedError, match="full"):
        session.partial_run_async(handle, {"x": X}, ["m:0"])


def test_a_partial_run_on_two_devices_runs_in_one_piece() -> None:
    graph = g1()
    graph.node[2].device = "/device:CPU:1"
    session = direct_session(graph, pb.ConfigProto(device_count={"CPU": 2}))
    handle = session.partial_run_setup(["x"], ["m:0", "n:0"])
    assert session.partial_run(handle, {"x": X}, ["m:0"]) == [6]
    assert session.partial_run(handle, {}, ["n:0"]) == [-6]


def partial_graph() -> pb.GraphDef:
    graph = Graph()
    p1 = graph.placeholder("float32", "p1")
    p2 = graph.placeholder("float32", "p2")
    i1 = graph.add("Neg", p1, name="i1")[0]
    graph.add("Mul", i1, p2, name="i2")
    return graph.graph_def


def test_partial_run_in_parts() -> None:
    session = direct_session(partial_graph())
    handle = session.partial_run_setup(["p1", "p2"], ["i1:0", "i2:0"])
    assert handle.startswith("p1,p2->i1:0,i2:0//1/;")
    assert session.partial_run(handle, {"p1": X}, ["i1:0"]) == [-3]
    refused = [
        ({"p1": X}, [], "The feed p1 has already been fed."),
        ({}, ["i1:0"], "The fetch i1:0 has already been fetched."),
        (
            {},
            ["i2:0"],
            "Fetch i2:0 can't be computed from the feeds that have been fed so far.",
        ),
        ({"zz": X}, [], "The feed zz was not specified in partial_run_setup."),
        ({}, ["zz:0"], "The fetch zz:0 was not specified in partial_run_setup."),
    ]
    for feeds, fetches, text in refused:
        error = error_of(lambda f=feeds, o=fetches: session.partial_run(handle, f, o))
        assert (error.code, error.message) == (Code.INVALID_ARGUMENT, text)
    assert session.partial_run(handle, {"p2": X}, ["i2:0"]) == [-9]
    assert error_of(lambda: session.partial_run(handle, {}, [])).message == (
        "Must run 'setup' before performing partial runs!"
    )


def test_a_part_may_feed_an_array_of_another_byte_order() -> None:
    session = direct_session(partial_graph())
    handle = session.partial_run_setup(["p1", "p2"], ["i1:0", "i2:0"])
    for feed, fetch in (("p1", "i1:0"), ("p2", "i2:0")):
        (value,) = session.partial_run(handle, {feed: np.array([1, 3], ">f4")}, [fetch])
        assert value.dtype.isnative
    assert value.tolist() == [-1, -9]


@pytest.mark.parametrize(
    ("value", "given"),
    [(np.float64([1]), "double"), (np.int32([1]), "int32"), (np.array([b"1"], object), "string")],
    ids=["double", "int32", "string"],
)
def test_a_part_feeds_values_of_the_right_type_or_changes_nothing(
    value: np.ndarray, given: str
) -> None:
    graph = Graph()
    one, x = graph.placeholder("float32", "one"), graph.placeholder("float32", "x")
    graph.add("AddV2", one, x, name="y")
    session = direct_session(graph.graph_def)
    handle = session.partial_run_setup(["one", "x"], ["y:0"])
    session.partial_run(handle, {"one": [1.0]}, [])  # a list becomes an array
    expected = rf"Expects arg\[1\] to be float but {given} is provided"
    with pytest.raises(InvalidArgumentError, match=expected):
        session.partial_run(handle, {"x": value}, ["y:0"])
    [y] = session.partial_run(handle, {"x": np.float32([2])}, ["y:0"])
    np.testing.assert_array_equal(y, np.float32([3]), strict=True)


def test_an_error_ends_a_partial_run() -> None:
    graph = Graph()
    p1 = graph.placeholder("float32", "p1")
    graph.add("AddV2", p1, np.zeros(3, np.float32), name="i1")
    session = direct_session(graph.graph_def)
    handle = session.partial_run_setup(["p1"], ["i1:0"])
    with pytest.raises(InvalidArgumentError, match="Incompatible shapes"):
        session.partial_run(handle, {"p1": np.zeros(2, np.float32)}, ["i1:0"])
    assert "Must run 'setup'" in error_of(lambda: session.partial_run(handle, {}, [])).message
