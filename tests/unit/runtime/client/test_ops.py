"""Calls of ops, operators, and Python values as constants, with TensorFlow's messages."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.api
import runtime.client
from runtime.client import (
    Graph,
    Session,
    bfloat16,
    bool,
    complex128,
    constant,
    convert_to_tensor,
    float32,
    float64,
    int32,
    int64,
    ops,
    placeholder,
    string,
    uint8,
)
from runtime.client.framework.op_call import snake_case


@pytest.fixture
def graph():
    with Graph().as_default() as graph:
        yield graph


def value_of(tensor):
    return Session(graph=tensor.graph).run(tensor)


def test_inputs_and_attributes_by_position_and_name(graph):
    a, b = constant([[1.0, 2.0]]), constant([[3.0, 4.0]])
    for product in (
        ops.MatMul(a, b, transpose_b=True),
        ops.mat_mul(a=a, b=b, transpose_b=True, name="product"),
    ):
        assert value_of(product).tolist() == [[11]]
    assert product.name == "product:0"
    assert [node.name for node in graph.as_graph_def().node][-1] == "product"


def test_results(graph):
    values, indices = ops.TopKV2([1.0, 3.0, 2.0], 2)
    assert value_of(values).tolist() == [3, 2]
    assert ops.TopKV2([1.0], 1)._fields == ("values", "indices")
    assert value_of(indices).tolist() == [1, 2]
    assert [value_of(part) for part in ops.Unpack(constant([1, 2]), 2)] == [1, 2]
    assert ops.NoOp().type == "NoOp"
    dynamic = ops.ListDiff([1, 2, 3], [2])
    assert value_of(dynamic.out).tolist() == [1, 3]


def test_every_op_has_a_function():
    assert {"MatMul", "mat_mul", "TopKV2", "top_kv2", "Conv2D", "conv2d"} <= set(dir(ops))
    assert "transpose_a: attribute, bool" in ops.MatMul.__doc__
    with pytest.raises(AttributeError, match="There is no op 'NoSuchOp'"):
        ops.NoSuchOp  # noqa: B018 - looking it up is what fails


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("MatMul", "mat_mul"),
        ("ConcatV2", "concat_v2"),
        ("Conv2DBackpropInput", "conv2d_backprop_input"),
        ("LSTMBlockCell", "lstm_block_cell"),
        ("BatchMatMulV2", "batch_mat_mul_v2"),
    ],
)
def test_python_names(op, name):
    assert snake_case(op) == name


# (call, class of the error, its message)
WRONG_CALLS = (
    (
        lambda x: x + constant(1),
        TypeError,
        "Input 'y' of 'AddV2' Op has type int32 that does not match type float32 of argument 'x'.",
    ),
    (
        lambda x: constant(1) + 1.5,
        TypeError,
        "Input 'y' of 'AddV2' Op has type float32 that does not match type int32 of argument 'x'.",
    ),
    (
        lambda x: x + "a",
        TypeError,
        "Input 'y' of 'AddV2' Op has type string that does not match type float32 of argument 'x'.",
    ),
    (lambda x: ops.MatMul(x), TypeError, "mat_mul() missing a required argument: 'b'"),
    (
        lambda x: ops.MatMul(x, x, zz=1),
        TypeError,
        "mat_mul() got an unexpected keyword argument 'zz'",
    ),
    (
        lambda x: ops.MatMul(x, x, transpose_a="q"),
        TypeError,
        "Expected bool for argument 'transpose_a' not 'q'.",
    ),
    (
        lambda x: ops.MatMul(constant("a"), constant("a")),
        TypeError,
        "Value passed to parameter 'a' has DataType string not in list of allowed values: "
        "bfloat16, float16, float32, float64, int32, int64, uint8, uint16, uint32, uint64, "
        "complex64, complex128",
    ),
    (
        lambda x: ops.Conv2D(x, x, [1, 1, 1, 1], "FOO"),
        ValueError,
        "Attr 'padding' of 'Conv2D' Op passed string 'FOO' not in: \"SAME\", \"VALID\", "
        '"EXPLICIT".',
    ),
    (
        lambda x: ops.ConcatV2([], 0),
        ValueError,
        "List argument 'values' to 'ConcatV2' Op with length 0 shorter than minimum length 2.",
    ),
    (
        lambda x: ops.Pack([1, 2.5]),
        TypeError,
        "Tensors in list passed to 'values' of 'Pack' Op have types [int32, float32] that don't "
        "all match.",
    ),
    (
        lambda x: ops.Placeholder("flot"),
        TypeError,
        "Expected DataType for argument 'dtype' not 'flot'.",
    ),
    (lambda x: ops.Cast(x), TypeError, "cast() missing a required argument: 'DstT'"),
    (lambda x: constant(1.5, int32), TypeError, "Expected int32, but got 1.5 of type 'float'."),
    (lambda x: constant("a", int32), TypeError, "Expected int32, but got a of type 'str'."),
    (lambda x: constant(None), ValueError, "None values not supported."),
    (
        lambda x: constant(x),
        TypeError,
        "Expected any non-tensor type, but got a tensor instead.",
    ),
    (
        lambda x: constant([1, "a"]),
        TypeError,
        "Failed to convert elements of [1, 'a'] to Tensor. Consider casting elements to a "
        "supported type.",
    ),
    (
        lambda x: constant(1 << 70),
        TypeError,
        f"Failed to convert elements of {1 << 70} to Tensor. Consider casting elements to a "
        "supported type.",
    ),
    (
        lambda x: convert_to_tensor(x, int32),
        ValueError,
        "Tensor conversion requested dtype int32 for Tensor with dtype float32: "
        "<tf.Tensor 'x:0' shape=(None, 3) dtype=float32>",
    ),
    (
        lambda x: ops.AssignVariableOp(x, 1.0),
        TypeError,
        "Input 'resource' of 'AssignVariableOp' Op has type float32 that does not match expected "
        "type of resource.",
    ),
    (
        lambda x: ops.Assign(x, 1.0),
        TypeError,
        "'Assign' Op requires that input 'ref' be a mutable tensor (e.g.: a tf.Variable)",
    ),
)


@pytest.mark.parametrize(("call", "kind", "message"), WRONG_CALLS)
def test_wrong_calls(graph, call, kind, message):
    with pytest.raises(kind) as error:
        call(placeholder(float32, [None, 3], name="x"))
    assert str(error.value) == message


def test_graphs_do_not_mix(graph):
    x = placeholder(float32, name="x")
    with Graph().as_default():
        other = constant(1.0)
    with pytest.raises(ValueError) as error:
        x + other
    assert str(error.value) == (
        f"{other} must be from the same graph as {x} (graphs are {other.graph} and {graph})."
    )


def test_ops_go_to_the_graph_of_their_tensors():
    graph = Graph()
    with graph.as_default():
        x = constant(1.0)
    assert (x + 1).graph is graph
    assert ops.Neg(x).graph is graph


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, int32), (1 << 40, int64), (1.5, float32), ([1, 2.5], float32), (True, bool),
        ("a", string), (b"a", string), (1j, complex128), ([], float32), (np.float64(1), float64),
        (np.arange(2), int64), (np.array(["a"]), string),
    ],
)  # fmt: skip
def test_types_of_constants(graph, value, dtype):
    assert constant(value).dtype is dtype


def test_constants_of_a_given_type_and_shape(graph):
    assert value_of(constant(300, uint8)) == 44
    assert value_of(constant(1, shape=[3])).tolist() == [1, 1, 1]
    assert value_of(constant([1, 2, 3, 4], float64, [2, 2])).tolist() == [[1, 2], [3, 4]]
    assert value_of(constant([1.5], bfloat16)).dtype.name == "bfloat16"
    assert value_of(constant([1, 2], shape=[2, 2])).tolist() == [[1, 2], [2, 2]]  # 2 is repeated
    with pytest.raises(
        ValueError, match=r"Too many elements provided\. Takes at most 2, but got 3"
    ):
        constant([1, 2, 3], shape=[2])
    assert value_of(constant([b"a\0", "é"])).tolist() == [b"a\0", "é".encode()]


def test_lists_with_tensors_are_packed(graph):
    a = constant(1.0)
    assert value_of(convert_to_tensor([a, [2.0][0], 3])).tolist() == [1, 2, 3]
    assert value_of(ops.Sum([[a, 1], [2, a]], 0)).tolist() == [3, 2]


X = np.array([[1.0, -2.0, 3.5], [4.0, 5.0, -6.0]], np.float32)
OPERATORS = {
    "add": lambda x: x + 1, "radd": lambda x: 1 + x, "sub": lambda x: x - 1,
    "rsub": lambda x: 1 - x, "mul": lambda x: x * 2, "div": lambda x: x / 2,
    "rdiv": lambda x: 2 / x, "floordiv": lambda x: x // 2, "mod": lambda x: x % 2,
    "pow": lambda x: x**2, "rpow": lambda x: 2**x, "neg": lambda x: -x, "abs": lambda x: abs(x),
    "matmul": lambda x: x @ np.ones((3, 2), np.float32), "less": lambda x: x < 1,
    "less_equal": lambda x: x <= 1, "greater": lambda x: x > 1, "greater_equal": lambda x: x >= 1,
    "array_first": lambda x: np.float32(2) * x,
    "and": lambda x: (x > 1) & (x < 4), "or": lambda x: (x > 1) | (x < 0),
    "xor": lambda x: (x > 1) ^ (x < 4), "not": lambda x: ~(x > 1),
    "index": lambda x: x[0], "negative": lambda x: x[-1, 1], "range": lambda x: x[:, 1:3],
    "step": lambda x: x[:, ::2], "ellipsis": lambda x: x[..., 0], "axis": lambda x: x[:, None, 1],
    "backwards": lambda x: x[::-1],
}  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_operators_do_what_numpy_s_do(graph, operator):
    x = placeholder(float32, [None, 3])
    result = Session().run(operator(x), {x: X})
    np.testing.assert_allclose(result, operator(X), rtol=1e-6)
    assert result.dtype == operator(X).dtype


def test_integers_divide_to_floats_and_bits_combine(graph):
    assert value_of(constant(3) / 2) == 1.5
    assert (constant(3) / 2).dtype is float64
    assert value_of(constant(6) | 1) == 7
    assert value_of(~constant(6)) == -7
    assert value_of(constant([1, 2, 3])[constant(1)]) == 2
    with pytest.raises(TypeError, match=r"are valid indices, got 1\.5"):
        constant([1])[1.5]


def test_static_shapes_where_they_are_cheap(graph):
    x = placeholder(float32, [None, 3])
    assert (x + 1).shape == [None, 3]
    assert (x + np.ones((4, 1), np.float32)).shape == [4, 3]
    assert (x @ np.ones((3, 2), np.float32)).shape == [None, 2]
    assert ops.Relu(x).shape == [None, 3]
    assert ops.Sum(x, 0).shape == [3]
    assert ops.Cholesky(x).shape.rank is None


def test_the_door_of_the_front_end():
    assert {"Graph", "Session", "ops", "saved_model", "float32"} <= set(dir(runtime.client))
    assert "bool" not in runtime.client.__all__
    assert all(getattr(runtime.client, name) is not None for name in dir(runtime.client))
    assert runtime.api.Session is Session
    with pytest.raises(AttributeError, match=r"runtime\.client has no 'Sesion'; `ops` has"):
        runtime.client.Sesion  # noqa: B018 - looking it up is what fails
    with pytest.raises(AttributeError, match="has no attribute 'Sesion'"):
        runtime.api.Sesion  # noqa: B018
