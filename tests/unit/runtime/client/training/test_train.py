"""The global step of a graph."""

from __future__ import annotations

import runtime.client as tf


def test_the_global_step(session):
    assert tf.train.get_global_step() is None
    step = tf.train.get_or_create_global_step()
    assert tf.train.get_or_create_global_step() is step
    assert (step.name, step.dtype) == ("global_step:0", tf.int64)
    session.run(step.initializer)
    session.run(tf.assign_add(step, 1))
    assert tf.train.global_step(session, step) == 1
