"""TensorArray in loops and branches."""

from __future__ import annotations

import pytest

import runtime.client as tf
from tests.unit.runtime.client.evaluation import values


def test_arrays_of_tensors_in_loops(graph):
    array = tf.TensorArray(tf.float32, size=4)
    _, filled = tf.while_loop(
        lambda i, _: i < 4,
        lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32) ** 2)),
        [0, array],
    )
    other = tf.TensorArray(tf.int32, 0, dynamic_size=True).write(2, [5, 6])
    rows = tf.TensorArray(tf.int32, 2).unstack([[1, 2], [3, 4]])
    assert rows.read(1).shape == [2]
    chosen = tf.cond(tf.constant(True), lambda: rows.write(0, [9, 9]), lambda: rows)
    assert values(
        filled.stack(),
        filled.size(),
        other.read(2),
        rows.concat(),
        rows.gather([1]),
        chosen.read(0),
    ) == [[0, 1, 4, 9], 4, [5, 6], [1, 2, 3, 4], [[3, 4]], [9, 9]]
    with pytest.raises(ValueError, match="Inconsistent shapes"):
        rows.write(0, [1, 2, 3])
    with pytest.raises(ValueError, match="Argument `size` must be provided"):
        tf.TensorArray(tf.float32)
