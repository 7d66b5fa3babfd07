"""Names of the operations that functions of tf.compat.v1 add to the graph."""

from __future__ import annotations

import runtime.client as tf


def test_names_come_from_the_functions(graph):
    a = tf.constant([1.0, 2.0])
    found = [
        tf.add(a, a), tf.multiply(a, 2.0), tf.reduce_mean(a), tf.concat([a, a], 0),
        tf.stack([a, a]), tf.cast(a, tf.int32), tf.zeros([2]), tf.transpose(a), a / 2,
        tf.divide(a, 2.0), tf.range(3), tf.one_hot([0], 2), tf.random_uniform([2]),
    ]  # fmt: skip
    assert [tensor.name for tensor in found] == [
        "Add:0", "Mul:0", "Mean:0", "concat:0", "stack:0", "Cast:0", "zeros:0", "transpose:0",
        "truediv:0", "truediv_1:0", "range:0", "one_hot:0", "random_uniform:0",
    ]  # fmt: skip
