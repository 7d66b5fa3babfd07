"""Random values and dropout."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf
from tests.unit.runtime.client.evaluation import values


def test_dropout_and_random_numbers(graph):
    tf.set_random_seed(3)
    ones = tf.ones([1000])
    kept, same = values(tf.nn.dropout(ones, rate=0.25), tf.nn.dropout(ones, rate=0))
    assert set(np.round(kept, 4)) == {0, np.float64(1.3333)}
    assert 600 < np.count_nonzero(kept) < 900
    assert same == [1] * 1000
    drawn = values(
        tf.random_uniform([100], 2, 5, tf.int32),
        tf.truncated_normal([100], 1.0, 0.1),
        tf.random_shuffle(tf.range(5)),
    )
    assert set(drawn[0]) == {2, 3, 4}
    assert all(0.8 <= each <= 1.2 for each in drawn[1])
    assert sorted(drawn[2]) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype int32"):
        tf.random_uniform([1], dtype=tf.int32)
