"""Functions that are called for each row, and the choice among several."""

from __future__ import annotations

import pytest

import runtime.client as tf
from runtime.foundation.errors import InvalidArgumentError
from tests.unit.runtime.client.evaluation import values


def test_functions_of_rows(graph):
    numbers = tf.range(1, 6)
    pairs = tf.map_fn(lambda p: (p[0] + p[1], p[0] * p[1]), (numbers, numbers))
    assert values(
        tf.map_fn(lambda each: each * each, numbers),
        *pairs,
        tf.map_fn(lambda each: tf.cast(each, tf.float32) / 2, numbers, dtype=tf.float32),
        tf.foldl(lambda total, each: total * each, numbers),
        tf.foldr(lambda total, each: total - each, numbers),
        tf.foldl(lambda total, each: total + each, numbers, initializer=100),
        tf.scan(lambda total, each: total + each, numbers),
        tf.scan(lambda total, each: total + each, numbers, initializer=10, reverse=True),
    ) == [
        [1, 4, 9, 16, 25], [2, 4, 6, 8, 10], [1, 4, 9, 16, 25], [0.5, 1, 1.5, 2, 2.5], 120, -5, 115,
        [1, 3, 6, 10, 15], [25, 24, 22, 19, 15],
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"must be 1\+ dimensional Tensors, not scalars"):
        tf.map_fn(lambda each: each, tf.constant(1))


def test_the_first_condition_that_holds(graph):
    n = tf.placeholder(tf.int32, [])
    chosen = tf.case(
        [(n < 1, lambda: tf.constant(1)), (n < 5, lambda: tf.constant(2))],
        default=lambda: tf.constant(3),
    )
    sure = tf.case([(n < 1, lambda: tf.constant(1)), (n < 5, lambda: tf.constant(2))])
    assert [values(chosen, feeds={n: number})[0] for number in (0, 4, 9)] == [1, 2, 3]
    assert values(sure, feeds={n: 4}) == [2]
    with pytest.raises(InvalidArgumentError, match="None of conditions evaluated as True"):
        values(sure, feeds={n: 9})
    with pytest.raises(TypeError, match="must be a tuple of"):
        tf.case([n < 1])
