"""`get_variable` and `variable_scope`: names, sharing, and errors."""

from __future__ import annotations

import pytest

import runtime.client as tf
from tests.unit.runtime.client.evaluation import values


def test_names_of_nested_scopes(session):
    with tf.variable_scope("layer") as scope:
        weights = tf.get_variable("weights", [2, 3])
        with tf.variable_scope("inner"):
            count = tf.get_variable("count", [], tf.int32)
        output = tf.identity(weights, name="output")
    assert [each.name for each in (weights, count)] == ["layer/weights:0", "layer/inner/count:0"]
    assert output.name == "layer/output:0"
    assert scope.name == "layer"
    assert tf.get_variable_scope().name == ""
    assert weights.shape == (2, 3)


def test_a_variable_is_made_once_and_used_again(session):
    with tf.variable_scope("a") as scope:
        made = tf.get_variable("v", [2])
    with tf.variable_scope("a", reuse=True):
        assert tf.get_variable("v", [2]) is made
    with tf.variable_scope(scope, reuse=True):
        assert tf.get_variable("v") is made
        with tf.variable_scope("b"), pytest.raises(ValueError, match="a/b/v does not exist"):
            tf.get_variable("v", [2])  # reuse is inherited
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("v", [2]) is made
        assert tf.get_variable("new", [1]).name == "a/new:0"
    with tf.variable_scope("a") as again:
        again.reuse_variables()
        assert tf.get_variable("v", [2]) is made


def test_the_store_is_the_graphs(session):
    made = tf.get_variable("v", [2])
    with tf.Graph().as_default():
        assert tf.get_variable("v", [3]) is not made


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"name": "v", "shape": [2]},
            "Variable v already exists, disallowed. Did you mean to set reuse=True or "
            "reuse=tf.AUTO_REUSE in VarScope?",
        ),
        (
            {"name": "w"},
            "Shape of a new variable (w) must be fully defined, but instead was <unknown>.",
        ),
        (
            {"name": "w", "shape": [None, 2]},
            "Shape of a new variable (w) must be fully defined, but instead was (None, 2).",
        ),
        (
            {"name": "w", "shape": [2], "initializer": 3.0},
            "If initializer is a constant, do not specify shape.",
        ),
    ],
)
def test_refused_variables(session, arguments, message):
    tf.get_variable("v", [2])
    with pytest.raises(ValueError) as error:
        tf.get_variable(**arguments)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"shape": [3]},
            "Trying to share variable v, but specified shape (3,) and found shape (2,).",
        ),
        (
            {"dtype": tf.int32},
            "Trying to share variable v, but specified dtype int32 and found dtype float32.",
        ),
    ],
)
def test_sharing_with_another_shape_or_type(session, arguments, message):
    tf.get_variable("v", [2])
    tf.get_variable_scope().reuse_variables()
    with pytest.raises(ValueError) as error:
        tf.get_variable("v", **arguments)
    assert str(error.value) == message


def test_default_names_are_made_unique(session):
    names = []
    for _ in range(2):
        with tf.variable_scope(None, "dense"):
            names.append(tf.get_variable("v", [1]).name)
    assert names == ["dense/v:0", "dense_1/v:0"]
    with (
        pytest.raises(ValueError, match="If default_name is None then name_or_scope is required"),
        tf.variable_scope(None),
    ):
        pass


def test_scopes_state_initializer_type_and_kind(session):
    with tf.variable_scope(
        "s", initializer=tf.ones_initializer(), dtype=tf.float64, use_resource=False
    ):
        variable = tf.get_variable("v", [2])
        assert (variable.dtype, variable.is_resource) == (tf.float64, False)
    session.run(tf.global_variables_initializer())
    assert session.run(variable).tolist() == [1, 1]


def test_an_initial_value_may_be_zero(session):
    variable = tf.get_variable("v", initializer=0)
    assert (variable.dtype, variable.shape) == (tf.int32, ())


def test_a_layer_in_scopes(graph):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.variable_scope("layer", initializer=tf.ones_initializer()):
        weights = tf.get_variable("weights", [3, 2])
        bias = tf.get_variable("bias", [2], initializer=tf.constant_initializer([1.0, -100.0]))
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights), bias), name="y")
    total = tf.reduce_sum(y, axis=1, keepdims=True)
    assert y.shape == [None, 2]
    assert total.get_shape().as_list() == [None, 1]
    assert (y.name, y.op.inputs[0].op.type) == ("layer/y:0", "BiasAdd")
    assert graph.get_operation_by_name("layer/MatMul").get_attr("transpose_a") is False
    assert values(y, total, feeds={x: [[1, 2, 3]]}) == [[[7, 0]], [[7]]]


def test_scopes_that_are_entered_again(graph):
    with tf.variable_scope("a") as a, tf.variable_scope("b"):
        made = tf.get_variable("q", [1])
    with tf.variable_scope(a, reuse=tf.AUTO_REUSE) as again:
        found, operation = tf.get_variable("b/q", [1]), tf.identity(1.0, name="op")
    assert found is made
    assert operation.name == "a_1/op:0"
    assert (a.original_name_scope, again.original_name_scope) == ("a/", "a/")
    with pytest.raises(TypeError, match="name_or_scope must be a string or VariableScope"):
        tf.variable_scope(3).__enter__()
