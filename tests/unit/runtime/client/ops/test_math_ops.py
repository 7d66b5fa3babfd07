"""Arithmetic, reductions and losses."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf
from tests.unit.runtime.client.evaluation import values


def test_arithmetic(graph):
    m = tf.constant([[1, 5, 2], [7, 0, 3]])
    f = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    cases = [
        (tf.subtract(m, 1), [[0, 4, 1], [6, -1, 2]]),
        (tf.argmax(m, axis=1), [1, 0]),
        (tf.argmin(m), [0, 1, 0]),
        (tf.reduce_max(m, 1), [5, 7]),
        (tf.reduce_min(m), 0),
        (tf.reduce_prod(m, [0, 1]), 0),
        (tf.reduce_any(m > 6, 0), [True, False, False]),
        (tf.reduce_mean(f, 0), [2, 3]),
        (tf.matmul(f, f, transpose_b=True), [[5, 11], [11, 25]]),
        (tf.matmul(tf.ones([2, 1, 2]), tf.ones([2, 2, 1])), [[[2]], [[2]]]),
        (tf.divide(tf.constant(7), 2), 3.5),
        (tf.div(tf.constant(7), 2), 3),
        (tf.floordiv(tf.constant(-7), 2), -4),
        (tf.mod(tf.constant(-7), 3), 2),
        (tf.range(1, 8, 3), [1, 4, 7]),
        (tf.range(0.0, 1.0, 0.5), [0, 0.5]),
        (tf.cumsum(m, 1), [[1, 6, 8], [7, 7, 10]]),
        (tf.clip_by_value(m, 1, 5), [[1, 5, 2], [5, 1, 3]]),
        (tf.add_n([f, f]), [[2, 4], [6, 8]]),
        (tf.abs(tf.constant([-1.0, 2.0])), [1, 2]),
        (tf.math.square(tf.constant(3)), 9),
        (tf.add("a", tf.constant(["b", "c"])), [b"ab", b"ac"]),
        (tf.to_int32([1.7]), [1]),
        (tf.logical_xor([True, True], [True, False]), [False, True]),
        (tf.nn.softmax(tf.constant([[0.0, 0.0]])), [[0.5, 0.5]]),
        (tf.nn.top_k(m, 2).indices, [[1, 2], [0, 2]]),
        (tf.nn.embedding_lookup(f, [1]), [[3, 4]]),
        (tf.nn.moments(f, [0])[1], [1, 1]),
        (tf.nn.l2_normalize(tf.constant([3.0, 4.0])), pytest.approx([0.6, 0.8])),
        (
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0], logits=[[1.0, 1.0]]),
            pytest.approx([np.log(2)]),
        ),
        (
            tf.nn.softmax_cross_entropy_with_logits_v2(labels=[[0.0, 1.0]], logits=[[1.0, 1.0]]),
            pytest.approx([np.log(2)]),
        ),
        (
            tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[0.0]),
            pytest.approx([np.log(2)]),
        ),
    ]
    assert values(*(tensor for tensor, _ in cases)) == [expected for _, expected in cases]
