"""`gradients`: its arguments, results and errors."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
import runtime.client as tf
from runtime.client import ops
from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.tensor_shape import TensorShape

V = np.array([1, 2, 3], np.float32)


@pytest.fixture
def x(session):
    return tf.placeholder(tf.float32, [3], name="x")


def test_names_stand_under_a_scope_of_each_operation(session, x):
    (dx,) = tf.gradients(tf.tanh(x, name="layer/tanh"), x)
    assert dx.name == "gradients/layer/tanh_grad/TanhGrad:0"
    assert dx.shape == [3]


def test_several_results_are_added(session, x):
    assert session.run(tf.gradients([x * 2.0, x * x], x), {x: V})[0].tolist() == [4, 6, 8]


def test_gradients_of_the_results(session, x):
    found = tf.gradients([x * 2.0, x * x], x, [tf.constant([1.0, 0.0, 2.0]), None])
    assert session.run(found[0], {x: V}).tolist() == [4, 4, 10]
    with pytest.raises(ValueError, match="Passed 1 grad_ys for 2 ys"):
        tf.gradients([x, x], x, [tf.constant(V)])
    with pytest.raises(TypeError, match="Gradient type float64 given for tensor"):
        tf.gradients(x * x, x, [tf.constant(V.astype(np.float64))])


def test_complex_results_need_gradients(session):
    z = tf.placeholder(tf.complex64, [])
    with pytest.raises(TypeError, match=r"Gradients of complex tensors .* must set grad_ys"):
        tf.gradients(z * z, z)


def test_what_nothing_depends_on_has_none(session, x):
    other = tf.placeholder(tf.float32, [2])
    assert tf.gradients(x * x, [other, x])[0] is None
    (zeros,) = tf.gradients(x * x, other, unconnected_gradients="zero")
    assert session.run(zeros, {other: [1, 2]}).tolist() == [0, 0]
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'one'"):
        tf.gradients(x, x, unconnected_gradients="one")


def test_integers_stop_the_way(session, x):
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), x) == [None]
    assert tf.gradients(tf.argmax(x), x) == [None]


def test_stops(session, x):
    square = x * x
    product = square * x
    assert session.run(tf.gradients(product, x, stop_gradients=square), {x: V})[0].tolist() == [
        1,
        4,
        9,
    ]
    assert tf.gradients(tf.stop_gradient(x), x) == [None]


def test_a_source_on_the_way_to_another(session, x):
    square = x * x
    found = session.run(tf.gradients(square * 3.0, [square, x]), {x: V})
    assert [each.tolist() for each in found] == [[3, 3, 3], [6, 12, 18]]


@pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "reference"])
def test_variables(session, use_resource):
    variable = tf.Variable(V, use_resource=use_resource)
    loss = tf.reduce_sum(variable * variable) + tf.reduce_sum(variable.read_value())
    (found,) = tf.gradients(loss, variable)
    session.run(tf.global_variables_initializer())
    assert session.run(found).tolist() == [3, 5, 7]


def test_rows_of_a_variable_are_slices(session):
    table = tf.Variable(np.ones((4, 2), np.float32))
    rows = [tf.nn.embedding_lookup(table, [1, 3]), ops.ResourceGather(table, [[1]], tf.float32)]
    (found,) = tf.gradients(rows, table, [2 * np.ones((2, 2), np.float32), None])
    assert isinstance(found, tf.IndexedSlices)
    session.run(tf.global_variables_initializer())
    values, indices, shape = session.run(found)
    order = np.argsort(indices, kind="stable")
    assert indices[order].tolist() == [1, 1, 3]
    assert sorted(values.sum(1).tolist()) == [2, 4, 4]
    assert shape.tolist() == [4, 2]
    assert session.run(tf.convert_to_tensor(found)).tolist() == [[0, 0], [3, 3], [0, 0], [2, 2]]


def test_slices_and_tensors_become_a_tensor(session):
    table = tf.Variable(np.ones((3, 1), np.float32))
    loss = tf.reduce_sum(tf.gather(table, [1])) + tf.reduce_sum(table * 2.0)
    (found,) = tf.gradients(loss, table)
    session.run(tf.global_variables_initializer())
    assert session.run(found).tolist() == [[2], [3], [2]]


def test_an_op_without_a_gradient_is_named(session, x):
    with pytest.raises(LookupError, match=r"No gradient defined for operation 'far' \(op type: L"):
        tf.gradients(ops.Lu(ops.Reshape(x[:1], [1, 1]), name="far")[0], x)


@pytest.mark.parametrize("taken", [True, False])
def test_references_pass_gradients_through_branches(session, taken):
    v = tf.Variable(V, use_resource=False)
    otherwise, then = ops.RefSwitch(v.handle, tf.constant(taken))
    y = ops.RefMerge([ops.RefIdentity(otherwise), ops.RefIdentity(then)])[0]
    (found,) = tf.gradients(ops.DebugGradientRefIdentity(y) * 2.0, v)
    session.run(tf.global_variables_initializer())
    assert session.run(found).tolist() == [2, 2, 2]


def test_a_function_that_must_not_run_twice_is_refused(session, x):
    y = tf.cond(tf.constant(True), lambda: x * tf.random_uniform([3]), lambda: x)
    with pytest.raises(LookupError, match=r"RandomUniform'? \(RandomUniform\) must not run twice"):
        tf.gradients(y, x)


def test_gated_gradients_wait_for_each_other(session, x):
    y = tf.placeholder(tf.float32, [3])
    by_x, _ = tf.gradients(x * y, [x, y], gate_gradients=True)
    assert [each.type for each in by_x.op.control_inputs] == ["NoOp"]
    assert session.run(by_x, {x: V, y: V}).tolist() == [1, 2, 3]


def test_gradients_stand_beside_their_operations(session, x):
    with tf.device("/cpu:0"):
        y = tf.tanh(x, name="there")
    (dx,) = tf.gradients(y, x, colocate_gradients_with_ops=True)
    assert dx.op.get_attr("_class") == (b"loc:@there",) or dx.op.get_attr("_class") == (
        "loc:@there",
    )


def test_calls_of_functions(session, x):
    graph = tf.get_default_graph()
    function = FunctionGraph("inner", graph)
    argument = function.add_argument(tf.float32, TensorShape([3]))
    function.outputs = [function.build(lambda: argument * argument)]
    graph.add_functions(pb.FunctionDefLibrary(function=[function.to_function_def()]))
    (y,) = ops.PartitionedCall([x], Tout=[tf.float32], f=function.name)
    assert session.run(tf.gradients(y, x), {x: V})[0].tolist() == [2, 4, 6]


def test_variables_in_loops_and_branches(session):
    weights = tf.get_variable("weights", initializer=np.float32([[0.5, 1], [0.25, -1]]))
    bias = tf.get_variable("bias", initializer=np.float32([1, 2]))
    start = np.float32([[1, 2]])

    def step(i, h):
        return i + 1, tf.cond(i < 2, lambda: tf.matmul(h, weights), lambda: h * bias)

    _, looped = tf.while_loop(lambda i, _: i < 3, step, (0, tf.constant(start)))
    plain = tf.matmul(tf.matmul(start, weights), weights) * bias
    session.run(tf.global_variables_initializer())
    for ours, expected in zip(
        session.run(tf.gradients(looped, [weights, bias])),
        session.run(tf.gradients(plain, [weights, bias])),
        strict=True,
    ):
        assert np.allclose(ours, expected)


def test_the_number_of_iterations_has_no_gradient(session, x):
    steps, _ = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 2.0), (0, x))
    assert tf.gradients(steps, x) == [None]


def test_hessians_need_a_known_shape(session):
    unknown = tf.placeholder(tf.float32, [None])
    with pytest.raises(ValueError, match=r"the shape of .* has to be known, got \(None,\)"):
        tf.hessians(unknown * unknown, unknown)
