"""Queues: elements kept between steps, closed queues, and requested counts."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    RunRequest,
    SessionOptions,
    new_session,
)
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import X, direct_session, queue_graph


@pytest.mark.parametrize("op", ["QueueDequeueManyV2", "QueueDequeueUpToV2"])
def test_the_first_number_counts(op):
    graph = Graph()
    queue = graph.add("FIFOQueueV2", component_types=["int32"], shapes=[()])[0]
    values = np.arange(5, dtype=np.int32)
    graph.add("QueueEnqueueManyV2", queue, values, Tcomponents=["int32"], name="fill")
    n = graph.placeholder("int32", "n")
    graph.add(op, queue, n, component_types=["int32"], name="taken")
    session = new_session(SessionOptions())
    session.create(graph.graph_def)
    session.run({}, (), ["fill"])
    for asked, expected in (([2, 9], [0, 1]), ([[0]], []), (3, [2, 3, 4])):
        (taken,) = session.run({"n": np.array(asked, np.int32)}, ["taken:0"])
        assert taken.tolist() == expected


SHORT = pb.RunOptions(timeout_in_ms=50)


def test_a_queue_keeps_its_elements_between_runs() -> None:
    session = direct_session(queue_graph())
    assert session.run({}, ["size"]) == [0]
    session.run({"value": X}, [], ["enq"])
    assert session.run({}, ["size"]) == [1]
    assert session.run({}, ["deq"]) == [3]
    assert session.run({}, ["size"]) == [0]


def test_a_closed_queue() -> None:
    session = direct_session(queue_graph())
    waiting = session.run_async(RunRequest({}, ["deq"]))
    session.run({}, [], ["close"])
    insufficient = (
        r"^FIFOQueue '_\d+_q' is closed and has insufficient elements "
        r"\(requested 1, current size 0\)"
    )
    with pytest.raises(OutOfRangeError, match=insufficient):
        waiting.result(timeout=30)
    with pytest.raises(OutOfRangeError, match=insufficient):
        session.run({}, ["deq"])
    with pytest.raises(CancelledError, match=r"^FIFOQueue '_\d+_q' is closed\."):
        session.run({"value": X}, [], ["enq"])


def test_a_full_queue_blocks_until_it_is_closed() -> None:
    session = direct_session(queue_graph())
    for _ in range(2):
        session.run({"value": X}, [], ["enq"])
    with pytest.raises(DeadlineExceededError):
        session.run({"value": X}, [], ["enq"], SHORT)
    waiting = session.run_async(RunRequest({"value": X}, [], ["enq"]))
    session.run({}, [], ["close_cancelling"])
    with pytest.raises(CancelledError, match=r"^Enqueue operation was cancelled"):
        waiting.result(timeout=30)
    assert [session.run({}, ["deq"])[0] for _ in range(2)] == [3, 3]
    with pytest.raises(OutOfRangeError, match="is closed and has insufficient elements"):
        session.run({}, ["deq"])


def test_an_element_of_another_type() -> None:
    graph = queue_graph()
    wrong = graph.node.add(name="wrong", op="QueueEnqueueV2", input=["q", "number"])
    wrong.attr["Tcomponents"].list.type.append(pb.DT_INT32)
    number = graph.node.add(name="number", op="Placeholder")
    number.attr["dtype"].type = pb.DT_INT32
    with pytest.raises(InvalidArgumentError) as caught:
        direct_session(graph).run({"number": np.int32(1)}, [], ["wrong"])
    assert caught.value.message.startswith(
        "Signature mismatch, have: resource, int32-> expected: resource, float->"
    )


def test_a_dequeue_that_fails_leaves_the_enqueue_that_completes_it_alone() -> None:
    graph = Graph()
    types = ["float32"]
    queue = graph.add("PaddingFIFOQueueV2", component_types=types, shapes=[(-1, -1)])[0]
    value = graph.placeholder("float32", "value")
    graph.add("QueueEnqueueV2", queue, [value], name="enq")
    graph.add("QueueDequeueManyV2", queue, np.int32(2), component_types=types, name="deq")
    session = direct_session(graph.graph_def)
    waiting = session.run_async(RunRequest({}, ["deq"]))
    large = 200_000  # padded to one shape, two such elements need 320 GB
    for shape in ((1, large), (large, 1)):
        assert session.run({"value": np.zeros(shape, np.float32)}, [], ["enq"]) == []
    with pytest.raises(ResourceExhaustedError, match=r"shape\[2,200000,200000\].*\n.*node deq"):
        waiting.result(timeout=30)
