"""Queues of every kind."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf
from runtime.api import CancelledError, OutOfRangeError
from runtime.client import int32, ops, placeholder


def test_queues(graph):
    queue = tf.FIFOQueue(3, [tf.float32], shapes=[[]], name="q")
    one, many = queue.enqueue([1.0]), queue.enqueue_many([[2.0, 3.0]])
    with tf.Session() as session:
        session.run(one)
        session.run(many)
        assert session.run(queue.size()) == 3
        assert session.run(queue.dequeue()) == 1
        pair = queue.dequeue_many(2)
        assert pair.shape == [2]
        assert session.run(pair).tolist() == [2, 3]
        session.run(queue.close())
        with pytest.raises(OutOfRangeError, match="is closed and has insufficient elements"):
            session.run(queue.dequeue())
        with pytest.raises(CancelledError, match="is closed"):
            session.run(one)
    assert (queue.name, one.name) == ("q", "q_enqueue")
    with pytest.raises(ValueError, match=r"Shapes \(2,\) and \(\) are incompatible"):
        queue.enqueue([[1.0, 2.0]])
    with pytest.raises(ValueError, match="expected 1 components, but got 2"):
        queue.enqueue([1.0, 2.0])


def test_other_queues(graph):
    padded = tf.PaddingFIFOQueue(4, [tf.int32], [[None]])
    shuffled = tf.RandomShuffleQueue(4, 0, tf.int32, shapes=[[]], seed=1)
    ordered = tf.PriorityQueue(4, [tf.string], shapes=[[]])
    named = tf.FIFOQueue(4, [tf.int32, tf.string], shapes=[[], []], names=["n", "s"])
    with tf.Session() as session:
        for row in ([1], [2, 3]):
            session.run(padded.enqueue([row]))
        assert session.run(padded.dequeue_many(2)).tolist() == [[1, 0], [2, 3]]
        session.run(shuffled.enqueue_many([[1, 2, 3]]))
        assert sorted(session.run(shuffled.dequeue_many(3))) == [1, 2, 3]
        session.run(ordered.enqueue_many([np.array([7, 3]), ["late", "soon"]]))
        assert session.run(ordered.dequeue()) == [3, b"soon"]
        session.run(named.enqueue({"n": 1, "s": "one"}))
        assert session.run(named.dequeue()) == {"n": 1, "s": b"one"}


def test_queues_of_raw_ops(session):
    queue = ops.FIFOQueueV2([int32], shapes=[[]], capacity=10)
    value = placeholder(int32, [None])
    fill = ops.QueueEnqueueManyV2(queue, [value])
    take = ops.QueueDequeueV2(queue, [int32])[0]
    session.run(fill, {value: [1, 2, 3]})
    assert [session.run(take) for _ in range(2)] == [1, 2]
    assert session.run(ops.QueueSizeV2(queue)) == 1
