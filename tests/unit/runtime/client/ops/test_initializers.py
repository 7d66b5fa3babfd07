"""Initial values of variables, and the seed of the graph."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf

INITIALIZERS = {
    "zeros": (tf.zeros_initializer(), lambda v: not v.any()),
    "ones": (tf.ones_initializer(), lambda v: (v == 1).all()),
    "constant": (tf.constant_initializer(2.5), lambda v: (v == 2.5).all()),
    "uniform": (
        tf.random_uniform_initializer(-1, 1, seed=7), lambda v: abs(v).max() < 1 and v.std() > 0.4,
    ),
    "normal": (tf.random_normal_initializer(3, 0.1, seed=7), lambda v: abs(v.mean() - 3) < 0.1),
    "truncated": (
        tf.truncated_normal_initializer(0, 0.1, seed=7), lambda v: 0 < abs(v).max() < 0.2,
    ),
    "default": (None, lambda v: 0 < abs(v).max() < np.sqrt(6 / 60)),
}  # fmt: skip


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initial_values(session, name):
    initializer, holds = INITIALIZERS[name]
    variable = tf.get_variable("v", [20, 40], initializer=initializer)
    session.run(variable.initializer)
    value = session.run(variable)
    assert value.shape == (20, 40)
    assert holds(value)


def test_a_seed_of_the_graph_gives_the_same_values_in_every_session():
    def drawn(seed):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(seed)
            first, second = tf.get_variable("a", [50]), tf.get_variable("b", [50])
            session.run(tf.global_variables_initializer())
            return session.run([first, second])

    first, second = drawn(5)
    assert (first != second).any()
    again = drawn(5)
    assert (first == again[0]).all() and (second == again[1]).all()
    assert (first != drawn(6)[0]).any()
