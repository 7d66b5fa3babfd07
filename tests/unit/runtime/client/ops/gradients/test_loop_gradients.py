"""Gradients of loops of version 1, beside those that tests/gradients/test_loops.py compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import runtime.client as tf
from runtime.client import ops
from runtime.client.framework.graph_import import import_graph_def
from tests.unit.runtime.client.ops.gradients import version_1_loop

V = np.array([0.5, -0.25, 0.75])


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


@pytest.fixture
def x(session: tf.Session) -> tf.Tensor:
    return tf.placeholder(tf.float64, [3], name="x")


def _slopes(session: tf.Session, y: Any, x: tf.Tensor, at: np.ndarray) -> list[float]:
    step = 1e-6 * np.eye(at.size)
    return [
        (session.run(y, {x: at + each}).sum() - session.run(y, {x: at - each}).sum()) / 2e-6
        for each in step
    ]


def _power(x: tf.Tensor, times: int = 3) -> tf.Tensor:
    """`x ** (times + 1)`, by a loop whose invariant is x."""
    return version_1_loop.build(x, times, lambda y, around: y * around(x))


def test_second_and_third_derivatives(session: tf.Session, x: tf.Tensor) -> None:
    found = _power(x)
    for expected in (4 * V**3, 12 * V**2, 24 * V):
        (found,) = tf.gradients(found, x)
        np.testing.assert_allclose(session.run(found, {x: V}), expected)


def test_a_loop_that_does_not_run(session: tf.Session, x: tf.Tensor) -> None:
    (found,) = tf.gradients(_power(x, 0) * 3.0, x)
    assert session.run(found, {x: V}).tolist() == [3, 3, 3]


def test_loops_one_after_the_other_and_twice(session: tf.Session, x: tf.Tensor) -> None:
    once = _power(x)
    y = _power(once) + once
    (found,) = tf.gradients(y, x)
    np.testing.assert_allclose(session.run(found, {x: V}), _slopes(session, y, x, V), 1e-6)
    (again,) = tf.gradients(y, x)
    np.testing.assert_allclose(session.run(again, {x: V}), session.run(found, {x: V}))


def test_what_does_not_enter_has_no_gradient(session: tf.Session, x: tf.Tensor) -> None:
    z = tf.placeholder(tf.float64, [3])
    y = version_1_loop.build(x, 2, lambda y, around: y + ops.Floor(around(z)))
    by_x, by_z = tf.gradients(y, [x, z])
    assert by_z is None
    assert session.run(by_x, {x: V, z: V}).tolist() == [1, 1, 1]


def test_a_result_of_the_loop_that_is_stopped(session: tf.Session, x: tf.Tensor) -> None:
    y = _power(x)
    assert tf.gradients(y * 2.0, x, stop_gradients=[y]) == [None]
    (found,) = tf.gradients(y * 2.0, y)
    assert session.run(found, {x: V}).tolist() == [2, 2, 2]


def test_a_variable_that_the_loop_reads(session: tf.Session, x: tf.Tensor) -> None:
    w = tf.Variable(np.array([1.0, 2.0, 3.0]), use_resource=True)
    y = version_1_loop.build(
        x, 3, lambda y, around: y * ops.ReadVariableOp(around(w.handle), dtype="float64")
    )
    (found,) = tf.gradients(y, w)
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(session.run(found, {x: V}), 3 * np.array([1.0, 4.0, 9.0]) * V)


def test_a_loop_in_the_body_of_a_while_loop(session: tf.Session, x: tf.Tensor) -> None:
    y = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, _power(y * x, 1)), (0, x))[1]
    (found,) = tf.gradients(y, x)
    np.testing.assert_allclose(session.run(found, {x: V}), _slopes(session, y, x, V), 1e-6)


def test_a_while_loop_in_a_loop(session: tf.Session, x: tf.Tensor) -> None:
    def body(y: tf.Tensor, around: Callable[[Any], tf.Tensor]) -> tf.Tensor:
        many, factor = around(tf.constant(2)), around(x)
        one, start = around(tf.constant(1)), around(tf.constant(0))
        return tf.while_loop(
            lambda i, z: i < many, lambda i, z: (i + one, ops.Sin(z * factor)), (start, y)
        )[1]

    y = version_1_loop.build(x, 2, body)
    (found,) = tf.gradients(y, x)
    np.testing.assert_allclose(session.run(found, {x: V}), _slopes(session, y, x, V), 1e-6)


def test_only_what_leaves_the_loop_has_a_gradient(session: tf.Session, x: tf.Tensor) -> None:
    inside: list[tf.Tensor] = []

    def body(y: tf.Tensor, around: Callable[[Any], tf.Tensor]) -> tf.Tensor:
        inside.append(y * around(x))
        return inside[0]

    version_1_loop.build(x, 2, body)
    with pytest.raises(LookupError, match=r"belongs to a loop|inside a loop of version 1"):
        tf.gradients(inside[0], x)


def test_an_exit_without_a_loop_is_refused(session: tf.Session, x: tf.Tensor) -> None:
    entered = ops.Enter(x, frame_name="frame")
    with pytest.raises(LookupError, match="is no loop of version 1"):
        tf.gradients(ops.Exit(entered), x)


def test_the_loop_itself_is_not_changed(session: tf.Session, x: tf.Tensor) -> None:
    y = _power(x)
    before = tf.get_default_graph().as_graph_def()
    tf.gradients(y, x)
    after = {node.name: node for node in tf.get_default_graph().as_graph_def().node}
    assert all(after[node.name] == node for node in before.node)


def test_gradients_of_an_imported_loop_can_be_exported(session: tf.Session, x: tf.Tensor) -> None:
    (found,) = tf.gradients(_power(x), x)
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as other:
        (again,) = import_graph_def(graph_def, None, [found.name], "") or []
        np.testing.assert_allclose(other.run(again, {"x:0": V}), 4 * V**3)
