"""Checkpoints, queue runners and the global step."""

from __future__ import annotations

import threading

import pytest

import runtime.client as tf
from runtime.api import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


@pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "reference"])
def test_a_checkpoint_brings_values_back(session, tmp_path, use_resource):
    first = tf.Variable([1.0, 2.0], name="first", use_resource=use_resource)
    second = tf.Variable(3, name="second", use_resource=use_resource)
    saver = tf.train.Saver()
    with pytest.raises(FailedPreconditionError):
        saver.save(session, tmp_path / "model")
    session.run(tf.global_variables_initializer())
    path = saver.save(session, tmp_path / "model", global_step=7)
    assert path == str(tmp_path / "model-7")
    session.run([tf.assign(first, [0.0, 0.0]), tf.assign(second, 9)])
    saver.restore(session, path)
    assert session.run(first).tolist() == [1, 2]
    assert session.run(second) == 3


def test_another_program_restores_it(session, tmp_path):
    variable = tf.get_variable("v", initializer=4.0)
    session.run(variable.initializer)
    path = tf.train.Saver().save(session, tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as other:
        tf.train.import_meta_graph(f"{path}.meta")
        tf.train.Saver().restore(other, tf.train.latest_checkpoint(str(tmp_path)))
        assert other.run("v:0") is not None
        assert other.run(tf.global_variables()[0]) == 4


def test_keys_of_ones_own(session, tmp_path):
    variable = tf.get_variable("v", initializer=4.0)
    session.run(variable.initializer)
    path = tf.train.Saver({"renamed": variable}).save(session, tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as other:
        renamed = tf.get_variable("renamed", [])
        tf.train.Saver().restore(other, path)
        assert other.run(renamed) == 4
        tf.get_variable("missing", [])
        with pytest.raises(NotFoundError, match="Key missing not found in checkpoint"):
            tf.train.Saver().restore(other, path)


def test_only_the_newest_stay(session, tmp_path):
    session.run(tf.get_variable("v", initializer=4.0).initializer)
    saver = tf.train.Saver(max_to_keep=2)
    for step in range(4):
        saver.save(session, tmp_path / "model", global_step=step)
    assert sorted(path.name for path in tmp_path.glob("*.index")) == [
        "model-2.index",
        "model-3.index",
    ]
    assert (tmp_path / "checkpoint").read_text() == (
        'model_checkpoint_path: "model-3"\n'
        'all_model_checkpoint_paths: "model-2"\n'
        'all_model_checkpoint_paths: "model-3"\n'
    )
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-3")
    assert saver.last_checkpoints == [str(tmp_path / f"model-{step}") for step in (2, 3)]


def test_no_checkpoint(session, tmp_path):
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    tf.get_variable("v", [])
    with pytest.raises(ValueError, match="The passed save_path is not a valid checkpoint: /none"):
        tf.train.Saver().restore(session, "/none")


def test_the_global_step(session):
    assert tf.train.get_global_step() is None
    step = tf.train.get_or_create_global_step()
    assert tf.train.get_or_create_global_step() is step
    assert (step.name, step.dtype) == ("global_step:0", tf.int64)
    session.run(step.initializer)
    session.run(tf.assign_add(step, 1))
    assert tf.train.global_step(session, step) == 1


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
