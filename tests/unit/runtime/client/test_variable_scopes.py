"""`get_variable` and `variable_scope`: names, reuse, and initial values."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


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


def test_what_has_no_value_yet_is_reported(session):
    assert session.run(tf.report_uninitialized_variables()).tolist() == []
    first, second = tf.get_variable("a", [1]), tf.get_variable("b", initializer=1)
    missing = tf.report_uninitialized_variables()
    assert session.run(missing).tolist() == [b"a", b"b"]
    session.run(first.initializer)
    assert session.run(missing).tolist() == [b"b"]
    assert session.run(tf.is_variable_initialized(second)) == np.False_


def test_an_initial_value_may_be_zero(session):
    variable = tf.get_variable("v", initializer=0)
    assert (variable.dtype, variable.shape) == (tf.int32, ())


def test_assignments_as_functions(session):
    variable = tf.get_variable("v", initializer=1.0)
    session.run(tf.assign(variable, 5.0))
    assert session.run(tf.assign_add(variable, 2.0)) == 7
    assert session.run(tf.assign_sub(variable, 1.0)) == 6


def test_operations_stand_beside_others(session):
    with tf.device("/cpu:0"):
        first = tf.constant(1.0, name="first")
    with tf.device("/cpu:1"), tf.colocate_with(first):
        second = tf.constant(2.0, name="second")
        with tf.colocate_with(second):
            third = tf.constant(3.0)
    assert second.op.get_attr("_class") == ("loc:@first",)
    assert third.op.get_attr("_class") == ("loc:@first",)
    assert second.device == first.device == "/device:CPU:0"


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


def test_switch_and_merge(session):
    predicate = tf.placeholder(tf.bool, [])
    otherwise, then = tf.switch(tf.constant(3.0), predicate)
    value, index = tf.merge([otherwise * 2.0, then + 1.0])
    assert session.run([value, index], {predicate: True}) == [4, 1]
    assert session.run([value, index], {predicate: False}) == [6, 0]
    with pytest.raises(ValueError, match="At least one of the merge inputs is None"):
        tf.merge([value, None])


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
