"""Assertions, groups and tuples of operations."""

from __future__ import annotations

import pytest

import runtime.client as tf
from runtime.foundation.errors import InvalidArgumentError
from tests.unit.runtime.client.evaluation import values


def test_an_assertion(graph):
    n = tf.placeholder(tf.int32, [])
    with tf.control_dependencies([tf.Assert(n > 0, [n])]):
        checked = tf.identity(n)
    assert values(checked, feeds={n: 2}) == [2]
    with pytest.raises(InvalidArgumentError, match=r"assertion failed: \[-2\]"):
        values(checked, feeds={n: -2})


def test_what_can_not_be_grouped(graph):
    with pytest.raises(TypeError, match="'inputs' should be zero or more"):
        tf.group(3)


def test_a_tuple_waits_for_all_of_it(session):
    variable = tf.get_variable("v", initializer=1.0)
    session.run(variable.initializer)
    added = tf.assign_add(variable, 1.0)
    kept, nothing = tf.tuple([tf.constant(4.0), None], control_inputs=[added])
    assert nothing is None
    assert session.run(kept) == 4
    assert session.run(variable) == 2
    with pytest.raises(ValueError, match="Must have at least one Tensor"):
        tf.tuple([None])
