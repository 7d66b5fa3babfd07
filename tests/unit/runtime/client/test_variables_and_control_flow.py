"""Resource and reference variables, cond and while_loop."""

from __future__ import annotations

import pytest

from runtime.api import FailedPreconditionError
from runtime.client import (
    Graph,
    Session,
    Variable,
    cond,
    constant,
    control_dependencies,
    float32,
    global_variables,
    global_variables_initializer,
    group,
    int32,
    local_variables,
    no_op,
    ops,
    placeholder,
    trainable_variables,
    variables_initializer,
    while_loop,
)

KINDS = pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "reference"])


@pytest.fixture
def session():
    with Graph().as_default(), Session() as session:
        yield session


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


def test_queues(session):
    queue = ops.FIFOQueueV2([int32], shapes=[[]], capacity=10)
    value = placeholder(int32, [None])
    fill = ops.QueueEnqueueManyV2(queue, [value])
    take = ops.QueueDequeueV2(queue, [int32])[0]
    session.run(fill, {value: [1, 2, 3]})
    assert [session.run(take) for _ in range(2)] == [1, 2]
    assert session.run(ops.QueueSizeV2(queue)) == 1
