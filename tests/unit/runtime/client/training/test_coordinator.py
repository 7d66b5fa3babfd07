"""Queue runners, and the coordinator that stops their threads."""

from __future__ import annotations

import threading

import pytest

import runtime.client as tf
from runtime.api import InvalidArgumentError, OutOfRangeError


def counting_queue(limit):
    """(queue, enqueue, fill): `enqueue` adds 1, 2, … `limit`, after `fill` has run; then it fails.

    It fails with OUT_OF_RANGE, as the source of its elements is closed.
    """
    source = tf.ops.FIFOQueueV2([tf.float32], capacity=limit, name="source")
    fill = tf.ops.QueueEnqueueManyV2(source, [[float(each) for each in range(1, limit + 1)]])
    with tf.control_dependencies([fill]):
        filled = tf.ops.QueueCloseV2(source)
    queue = tf.ops.FIFOQueueV2([tf.float32], capacity=2, name="queue")
    enqueue = tf.ops.QueueEnqueueV2(queue, [tf.ops.QueueDequeueV2(source, [tf.float32])[0]])
    return queue, enqueue, filled


def test_queue_runners_until_the_input_ends(session):
    queue, enqueue, filled = counting_queue(5)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue, enqueue]))
    taken = tf.ops.QueueDequeueV2(queue, [tf.float32])[0]
    session.run(filled)
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    values = []
    with pytest.raises(OutOfRangeError):
        while True:
            values.append(session.run(taken))
    assert sorted(values) == [1, 2, 3, 4, 5]
    coordinator.request_stop()
    coordinator.join(threads)
    assert not any(thread.is_alive() for thread in threads)


def test_a_stop_ends_runners_that_wait(session):
    queue, enqueue, filled = counting_queue(5)
    session.run(filled)
    coordinator = tf.train.Coordinator()
    runner = tf.train.QueueRunner(queue, [enqueue])
    threads = runner.create_threads(session, coordinator, daemon=True, start=True)
    session.run(tf.ops.QueueDequeueV2(queue, [tf.float32]))
    coordinator.request_stop()
    coordinator.join(threads)
    assert coordinator.should_stop()


def test_what_goes_wrong_in_a_thread_is_raised_by_join(session):
    queue = tf.ops.FIFOQueueV2([tf.float32], name="queue")
    two = tf.placeholder_with_default([1.0, 2.0], [None])
    wrong = tf.ops.QueueEnqueueV2(queue, [tf.ops.Reshape(two, [3])])
    coordinator = tf.train.Coordinator()
    tf.train.QueueRunner(queue, [wrong]).create_threads(session, coordinator, True, True)
    with pytest.raises(InvalidArgumentError, match="requested shape has 3"):
        coordinator.join()


def test_a_coordinator_of_threads_of_ones_own():
    coordinator = tf.train.Coordinator()

    def work() -> None:
        with coordinator.stop_on_exception():
            raise KeyError("found nothing")

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(KeyError, match="found nothing"):
        coordinator.join([thread])
    coordinator.clear_stop()
    assert not coordinator.should_stop()


def test_runners_need_a_session_and_operations():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="No default session is registered"):
            tf.train.start_queue_runners()
        with pytest.raises(ValueError, match="Must provide queue and enqueue_ops"):
            tf.train.QueueRunner(tf.ops.FIFOQueueV2([tf.float32]), [])
