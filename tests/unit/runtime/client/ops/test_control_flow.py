"""Branches and loops: cond, while_loop, switch and merge."""

from __future__ import annotations

import pytest

import runtime.client as tf
from runtime.client import Variable, cond, constant, float32, no_op, ops, placeholder, while_loop


def test_switch_and_merge(session):
    predicate = tf.placeholder(tf.bool, [])
    otherwise, then = tf.switch(tf.constant(3.0), predicate)
    value, index = tf.merge([otherwise * 2.0, then + 1.0])
    assert session.run([value, index], {predicate: True}) == [4, 1]
    assert session.run([value, index], {predicate: False}) == [6, 0]
    with pytest.raises(ValueError, match="At least one of the merge inputs is None"):
        tf.merge([value, None])


def test_a_branch_runs_and_the_other_does_not(session):
    x = placeholder(float32, [])
    variable = Variable(0.0)
    chosen = cond(
        x > 1,
        lambda: [variable.assign_add(x), {"twice": x * 2}],
        lambda: [variable + 100.0, {"twice": x}],
    )
    session.run(variable.initializer)
    assert session.run(chosen, {x: 2.0}) == [2, {"twice": 4}]
    assert session.run(chosen, {x: 0.5}) == [102, {"twice": 0.5}]
    assert session.run(variable) == 2


def test_branches_of_operations_alone(session):
    x = placeholder(float32, [])
    variable = Variable(0.0)
    act = cond(x > 1, lambda: variable.assign(5.0, read_value=False), no_op)
    session.run(variable.initializer)
    session.run(act, {x: 0.0})
    assert session.run(variable) == 0
    session.run(act, {x: 2.0})
    assert session.run(variable) == 5


def test_side_effects_of_a_branch_keep_their_order(session):
    variable = Variable(1.0)

    def branch():
        variable.assign(10.0)
        variable.assign_add(1.0)
        variable.assign(variable.read_value() * 2.0)
        return variable.read_value()

    result = cond(constant(True), branch, lambda: constant(0.0))
    session.run(variable.initializer)
    assert session.run(result) == 22


def test_branches_have_to_agree(session):
    x = placeholder(float32, [], name="p")
    with pytest.raises(
        ValueError, match="Outputs of 'true_fn' and 'false_fn' must have the same"
    ) as e:
        cond(x > 1, lambda: x, lambda: 1)
    assert str(e.value).endswith("Received float32 from 'true_fn' and int32 from 'false_fn'.")
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        cond(x > 1, lambda: (x, x), lambda: [x, x])
    with pytest.raises(ValueError, match="'true_fn' must have a return value"):
        cond(x > 1, lambda: None, lambda: x)
    with pytest.raises(TypeError, match="'true_fn' must be callable"):
        cond(x > 1, 1, 2)
    with pytest.raises(TypeError, match="'pred' must not be a Python bool"):
        cond(True, no_op, no_op)


def test_loops(session):
    x = placeholder(float32, [])
    assert session.run(while_loop(lambda i: i < 10, lambda i: i + 3, [0])) == 12
    counted = while_loop(lambda i, total: i < 4, lambda i, total: (i + 1, total + x), (0, x))
    assert session.run(counted, {x: 2.0}) == (4, 10)
    state = while_loop(
        lambda state: state["left"] > 0,
        lambda state: [{"left": state["left"] - 1, "product": state["product"] * 2.0}],
        [{"left": 5, "product": x}],
    )
    assert session.run(state, {x: 1.0}) == [{"left": 0, "product": 32}]


def test_a_loop_may_end_early(session):
    variable = Variable(0.0)
    session.run(variable.initializer)
    limited = while_loop(
        lambda total: True, lambda total: total + variable.assign_add(1.0), [0.0],
        maximum_iterations=3,
    )  # fmt: skip
    assert session.run(limited) == 1 + 2 + 3
    assert session.run(variable) == 3


def test_loops_in_branches_in_loops(session):
    x = placeholder(float32, [])

    def body(i, total):
        inner = cond(
            x > 1,
            lambda: total + x,
            lambda: while_loop(lambda j: j < 5.0, lambda j: j + 1, [total]),
        )
        return i + 1, inner

    _, total = while_loop(lambda i, total: i < 3, body, [0, x])
    assert session.run(total, {x: 2.0}) == 8
    assert session.run(total, {x: 0.5}) == 5.5


def test_loop_variables_keep_their_types_and_shapes(session):
    start = constant(0, name="start")
    with pytest.raises(TypeError) as error:
        while_loop(lambda i: i < 10, lambda i: ops.Cast(i, float32), [start])
    assert str(error.value) == (
        "Loop var start:0 enters the loop with type <dtype: 'int32'> but has type "
        "<dtype: 'float32'> after 1 iteration. start:0 type should remain constant."
    )
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        while_loop(lambda i: i < 10, lambda i: (i, i), [start])
    with pytest.raises(TypeError, match="has type int32 that does not match expected type of bool"):
        while_loop(lambda i: 1, lambda i: i, [start])
    with pytest.raises(ValueError, match="use the `shape_invariants` argument"):
        while_loop(lambda v: v[0] < 1, lambda v: constant([1, 2]), [constant([0])])
    grown = while_loop(
        lambda v: ops.Size(v) < 8,
        lambda v: ops.ConcatV2([v, v], 0),
        [constant([1])],
        shape_invariants=[[None]],
    )
    assert session.run(grown).tolist() == [1] * 8
