"""Functions of arrays: values and static shapes."""

from __future__ import annotations

import numpy as np

import runtime.client as tf
from tests.unit.runtime.client.evaluation import values


def test_arrays(graph):
    z = tf.constant([1.0, 2.0, 3.0])
    m = tf.constant([[1, 5, 2], [7, 0, 3]])
    cases = [
        (tf.stack([z, z], axis=1), [[1, 1], [2, 2], [3, 3]]),
        (tf.split(z, 3)[1], [2]),
        (tf.split(z, [1, 2])[1], [2, 3]),
        (tf.unstack(z)[2], 3),
        (tf.where(z > 1, z, -z), [-1, 2, 3]),
        (tf.where(z > 1), [[1], [2]]),
        (tf.one_hot([0, 2], 3), [[1, 0, 0], [0, 0, 1]]),
        (tf.expand_dims(z, 0), [[1, 2, 3]]),
        (tf.squeeze(z[tf.newaxis]), [1, 2, 3]),
        (tf.tile(z, [2]), [1, 2, 3, 1, 2, 3]),
        (tf.gather(z, [2, 0]), [3, 1]),
        (tf.gather(m, [0, 2], axis=1), [[1, 2], [7, 3]]),
        (tf.transpose(m), [[1, 7], [5, 0], [2, 3]]),
        (tf.zeros_like(m), [[0, 0, 0], [0, 0, 0]]),
        (tf.ones_like(m, tf.float32), [[1, 1, 1], [1, 1, 1]]),
        (tf.fill([2], 9), [9, 9]),
        (tf.shape(m), [2, 3]),
        (tf.rank(m), 2),
        (tf.size(m), 6),
        (tf.pad(z, [[1, 2]]), [0, 1, 2, 3, 0, 0]),
        (tf.pad(z, [[1, 1]], "REFLECT"), [2, 1, 2, 3, 2]),
        (tf.slice(m, [0, 1], [-1, 2]), [[5, 2], [0, 3]]),
        (tf.boolean_mask(z, [True, False, True]), [1, 3]),
        (tf.sequence_mask([1, 3], 3), [[True, False, False], [True, True, True]]),
        (tf.reverse(z, [0]), [3, 2, 1]),
        (tf.reshape(m, [-1, 2]), [[1, 5], [2, 7], [0, 3]]),
        (tf.concat([m, m], 1), [[1, 5, 2, 1, 5, 2], [7, 0, 3, 7, 0, 3]]),
    ]
    assert values(*(tensor for tensor, _ in cases)) == [expected for _, expected in cases]
    for tensor, expected in cases:
        assert tensor.shape.is_compatible_with(np.shape(expected)), tensor
