"""What a caller writes into arrays that it has fed or fetched changes nothing in the session."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import DirectSession, RunRequest
from runtime.foundation.errors import InvalidArgumentError
from tests.conformance.case import Graph
from tests.unit.runtime.executors.derived_sessions import forks_of, scale_session
from tests.unit.runtime.sessions.graphs import direct_session, g1, in_caller

ONES = np.float32([1, 1])


def written(array: np.ndarray) -> None:
    array[...] = 100


def result(session: DirectSession) -> list[float]:
    """x · (2 v + w) for x = [1, 1]; [5, 5] at first."""
    return session.run({"x": ONES}, ["y"])[0].tolist()


@pytest.mark.parametrize("way", ["run", "callable", "future", "pool"])
def test_a_fed_array_that_is_written_to_later(way: str) -> None:
    session = scale_session(None if way != "pool" else pb.ConfigProto())
    value = np.float32([2, 2])
    if way == "callable":
        options = pb.CallableOptions(feed=["value"], target=["set_v"])
        session.run_callable(session.make_callable(options), [value])
    elif way == "future":
        session.run_async(RunRequest({"value": value}, (), ["set_v"])).result()
    else:
        session.run({"value": value}, (), ["set_v"])
    assert result(session) == [7, 7]
    written(value)
    assert session.run({}, ["rv"])[0].tolist() == [2, 2]
    assert result(session) == [7, 7]


@pytest.mark.parametrize("target", ["init_v", "set_v", "add_v"])
def test_a_fetched_value_of_a_variable_that_is_written_to(target: str) -> None:
    session = scale_session()
    feeds = {} if target == "init_v" else {"value": ONES.copy()}
    session.run(feeds, (), [target])
    (other,) = forks_of(session, 1)
    before, expected = session.run({}, ["rv"])[0].copy(), result(session)
    for each in (session, other):
        written(each.run({}, ["rv"])[0])
        for one in (session, other):
            assert np.array_equal(one.run({}, ["rv"])[0], before)
            assert result(one) == expected


def test_what_a_future_gives_can_not_be_written_to() -> None:
    session = scale_session()
    session.run({"value": ONES}, (), ["add_v"])
    (fetched,) = session.run_async(RunRequest({}, ["rv"])).result()
    with pytest.raises(ValueError, match="read-only"):
        written(fetched)


def test_an_update_after_a_fetch_changes_no_fetched_value() -> None:
    session = scale_session()
    session.run({"value": ONES}, (), ["add_v"])  # whose array is the variable's alone
    (fetched,) = session.run_async(RunRequest({}, ["rv"])).result()
    session.run({"value": ONES}, (), ["add_v"])
    assert (fetched.tolist(), session.run({}, ["rv"])[0].tolist()) == ([2, 2], [3, 3])


def test_feeds_that_are_given_are_not_copied() -> None:
    session = scale_session()
    value = np.float32([4, 4])
    request = RunRequest({"value": value}, (), ["set_v"], gives_feeds=True)
    session.run_async(request).result()
    (kept,) = session.run_async(RunRequest({}, ["rv"])).result()
    assert np.shares_memory(kept, value)


def test_a_step_that_only_computes_gets_the_fed_array_itself() -> None:
    session = direct_session(g1())
    session.run({"x": np.float32([1])}, ["m"])
    executor = session._graph.compiled(RunRequest({"x": np.float32([1])}, ["m"])).executor
    assert not executor.keeps_feeds
    assert (
        scale_session()
        ._graph.compiled(RunRequest({"value": ONES}, (), ["set_v"]))
        .executor.keeps_feeds
    )


def test_a_queue_keeps_what_was_enqueued() -> None:
    graph = Graph()
    queue = graph.add("FIFOQueueV2", name="q", component_types=["float32"], dtype="resource")
    value = graph.placeholder("float32", "value")
    graph.add("QueueEnqueueV2", queue[0], [value], name="put")
    graph.add("QueueDequeueV2", queue[0], component_types=["float32"], name="take")
    session = direct_session(graph.graph_def)
    value_fed = np.float32([1, 2])
    session.run({"value": value_fed}, (), ["put"])
    written(value_fed)
    assert session.run({}, ["take"])[0].tolist() == [1, 2]


def test_a_fetched_constant_is_the_callers() -> None:
    session = direct_session(g1())
    for _ in range(2):
        (fetched,) = session.run({}, ["a"])
        assert fetched == 2
        written(fetched)


@pytest.mark.parametrize("options", [pb.RunOptions(), in_caller()])
@pytest.mark.parametrize("value", ["text", [[1, 2], [3]], object(), {"a": 1}])
def test_a_feed_that_can_not_become_an_array(value: object, options: pb.RunOptions) -> None:
    session = direct_session(g1())
    with pytest.raises(InvalidArgumentError, match=r"Expects arg\[0\] to be float but .* for x"):
        session.run({"x": value}, ["m"], (), options)
    assert session.run({"x": 3.0}, ["m"]) == [6]
