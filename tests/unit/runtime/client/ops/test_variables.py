"""Resource and reference variables: initialisation, updates, collections."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf
from runtime.api import FailedPreconditionError, OutOfRangeError
from runtime.client import (
    Variable,
    constant,
    control_dependencies,
    float32,
    global_variables,
    global_variables_initializer,
    group,
    local_variables,
    ops,
    placeholder,
    trainable_variables,
    variables_initializer,
)

KINDS = pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "reference"])


@KINDS
def test_a_variable_has_to_be_initialised(session, use_resource):
    variable = Variable([1.0, 2.0], name="v", use_resource=use_resource)
    text = (
        "Could not find variable v" if use_resource else "Attempting to use uninitialized value v"
    )
    assert not session.run(variable.is_initialized())
    with pytest.raises(FailedPreconditionError, match=text):
        session.run(variable)
    session.run(global_variables_initializer())
    assert session.run(variable.is_initialized())
    assert variable.eval().tolist() == [1, 2]
    assert (variable.name, variable.shape, variable.dtype) == ("v:0", [2], float32)


@KINDS
def test_updates_give_the_new_value(session, use_resource):
    variable = Variable(lambda: constant([1.0]), use_resource=use_resource)
    session.run(variable.initializer)
    assert session.run(variable.assign_add([2.0])) == [3]
    assert session.run(variable.assign_sub([1.0])) == [2]
    assert session.run(variable.assign([7.0], read_value=False)) is None
    assert session.run(variable * 2 + variable) == [21]
    assert session.run(variable[0]) == 7
    assert session.run(variable.read_value()) == [7]


def test_names_of_the_operations(session):
    Variable(1.0, name="v", use_resource=False)
    Variable(1.0, name="r")
    names = [operation.name for operation in session.graph.get_operations()]
    assert names == [
        "v/initial_value", "v", "v/Assign", "v/read",
        "r/Initializer/initial_value", "r", "r/Assign", "r/Read/ReadVariableOp",
    ]  # fmt: skip


def test_variables_print_as_what_they_are(session):
    assert (
        repr(Variable(1.0, name="v", use_resource=False))
        == "<tf.Variable 'v:0' shape=() dtype=float32_ref>"
    )
    assert repr(Variable([1, 2], name="r")) == "<tf.Variable 'r:0' shape=(2,) dtype=int32>"


def test_collections_of_variables(session):
    kept = Variable(1.0)
    fixed = Variable(1.0, trainable=False)
    local = Variable(1.0, trainable=False, collections=["local_variables"])
    assert global_variables() == [kept, fixed]
    assert trainable_variables() == [kept]
    assert local_variables() == [local]
    assert variables_initializer([kept, local]).control_inputs == [
        kept.initializer,
        local.initializer,
    ]
    with pytest.raises(ValueError, match=r"^The `initial_value` arg to"):
        Variable()


def test_a_linear_model_learns(session):
    """Gradients by hand: d/dw of mean((xw + b - y)²)."""
    x, y = placeholder(float32, [None, 1]), placeholder(float32, [None, 1])
    w, b = Variable([[0.0]]), Variable([0.0])
    error = x @ w + b - y
    gradient_w = ops.MatMul(x, error, transpose_a=True) / 2.0
    gradient_b = ops.Mean(error, [0]) * 2.0
    with control_dependencies([gradient_w, gradient_b]):
        train = group(w.assign_sub(0.1 * gradient_w), b.assign_sub(0.1 * gradient_b))
    session.run(global_variables_initializer())
    points = [[0.0], [1.0], [2.0], [3.0]]
    step = session.make_callable(train, [x, y])
    for _ in range(300):
        step(points, [[2 * value + 1] for [value] in points])
    assert session.run(w)[0, 0] == pytest.approx(2, abs=1e-2)
    assert session.run(b)[0] == pytest.approx(1, abs=1e-2)


def test_variables(graph):
    variable = tf.get_variable("v", initializer=tf.constant(2.0))
    table = tf.Variable(tf.ones([2, 2]), name="table")
    limited = tf.count_up_to(tf.Variable(0), 2)
    replaced = tf.scatter_update(table, [0], [[9.0, 9.0]])
    increased = tf.scatter_add(table, [1], [[1.0, 2.0]])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(replaced).tolist() == [[9, 9], [1, 1]]
        assert session.run(increased).tolist() == [[9, 9], [2, 3]]
        variable.load(7.0, session)
        assert variable.eval() == 7
        assert [session.run(limited), session.run(limited)] == [0, 1]
        with pytest.raises(OutOfRangeError, match="Reached limit of 2"):
            session.run(limited)
        with pytest.raises(TypeError, match=r"The value of a feed cannot be a tf\.Tensor object"):
            session.run(table, {table: variable})
    with pytest.raises(
        ValueError, match=r"' v:0': Shape mismatch\.The variable shape \(\), and the"
    ):
        tf.assign(variable, [1.0, 2.0])
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'assign'"):
        tf.assign(tf.constant(1.0), 2.0)


def test_what_has_no_value_yet_is_reported(session):
    assert session.run(tf.report_uninitialized_variables()).tolist() == []
    first, second = tf.get_variable("a", [1]), tf.get_variable("b", initializer=1)
    missing = tf.report_uninitialized_variables()
    assert session.run(missing).tolist() == [b"a", b"b"]
    session.run(first.initializer)
    assert session.run(missing).tolist() == [b"b"]
    assert session.run(tf.is_variable_initialized(second)) == np.False_


def test_assignments_as_functions(session):
    variable = tf.get_variable("v", initializer=1.0)
    session.run(tf.assign(variable, 5.0))
    assert session.run(tf.assign_add(variable, 2.0)) == 7
    assert session.run(tf.assign_sub(variable, 1.0)) == 6
