"""The names that `runtime.client` exports."""

from __future__ import annotations

import pytest

import protos as pb
import runtime.api
import runtime.client
from runtime.client import Session


def test_the_door_of_the_front_end():
    assert {"Graph", "Session", "ops", "saved_model", "float32"} <= set(dir(runtime.client))
    assert "bool" not in runtime.client.__all__
    assert all(getattr(runtime.client, name) is not None for name in dir(runtime.client))
    assert runtime.api.Session is Session
    with pytest.raises(AttributeError, match=r"runtime\.client has no 'Sesion'; `ops` has"):
        runtime.client.Sesion  # noqa: B018 - looking it up is what fails
    with pytest.raises(AttributeError, match="has no attribute 'Sesion'"):
        runtime.api.Sesion  # noqa: B018


def test_messages_and_errors_under_the_names_of_programs():
    import runtime.client as tf

    for name in tf._MESSAGES:
        assert getattr(tf, name) is getattr(pb, name)
    assert tf.raw_ops is tf.ops
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        queue = tf.raw_ops.FIFOQueueV2([tf.float32])
        session.run(tf.raw_ops.QueueCloseV2(queue))
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(tf.raw_ops.QueueDequeueV2(queue, [tf.float32]))
