"""Operations that are placed with others."""

from __future__ import annotations

import runtime.client as tf


def test_operations_stand_beside_others(session):
    with tf.device("/cpu:0"):
        first = tf.constant(1.0, name="first")
    with tf.device("/cpu:1"), tf.colocate_with(first):
        second = tf.constant(2.0, name="second")
        with tf.colocate_with(second):
            third = tf.constant(3.0)
    assert second.op.get_attr("_class") == ("loc:@first",)
    assert third.op.get_attr("_class") == ("loc:@first",)
    assert second.device == first.device == "/device:CPU:0"
