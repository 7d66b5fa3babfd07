"""SymbolicGradient: gradients of functions, from the gradient functions of the ops in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.client import Graph, float32, ops, placeholder
from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.tensor_shape import TensorShape
from runtime.framework.dtypes import from_numpy
from tests.conformance.case import Case, Step


def _f32(values: Sequence[Any]) -> np.ndarray:
    return np.array(values, np.float32)


V = _f32([0.5, 0.25, 0.75])
V2 = _f32([0.25, 0.5, 2.0])
SCALAR = np.array(3, np.float32)
M = _f32([[1, 2], [3, 5]])
M2 = _f32([[0.5, -1], [2, 0.25]])
IMAGE = (np.arange(32, dtype=np.float32) / 8).reshape(1, 4, 4, 2)
FILTER = (np.arange(16, dtype=np.float32) / 16).reshape(2, 2, 2, 2)

Body = Callable[..., Any]

_UNARY = (
    "Abs Neg Reciprocal Square Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh "
    "Tanh Atanh Sigmoid Relu Relu6 Identity"
)
_BINARY = "AddV2 Sub Mul RealDiv Pow Maximum Minimum SquaredDifference DivNoNan Xdivy Xlogy"

BODIES: dict[str, tuple[Body, tuple[np.ndarray, ...]]] = {
    **{op: (getattr(ops, op), (V - (V > 0.6),) if op in ("Abs", "Relu") else (V,))
       for op in _UNARY.split()},
    **{op: (getattr(ops, op), (V, V2)) for op in _BINARY.split()},
    **{f"{op}_broadcast": (getattr(ops, op), (M, SCALAR)) for op in ("Mul", "Sub", "Pow")},
    "unused": (lambda a, b: ops.Neg(a), (V, V2)),
    "used_twice": (lambda a: a * a + ops.Exp(a), (V,)),
    "two_results": (lambda a, b: [a * b, a + b], (V, V2)),
    "a_result_that_is_an_argument": (lambda a: [a, ops.Neg(a)], (V,)),
    "cast": (lambda a: ops.Cast(a, DstT=from_numpy(np.dtype(np.float64))), (V,)),
    "stop": (lambda a: ops.StopGradient(a) * a, (V,)),
    "select": (lambda a, b: ops.Select(a > b, a, b), (V, V2)),
    "sum": (lambda a: ops.Sum(a, [0]), (M,)),
    "sum_keep": (lambda a: ops.Sum(a, [1], keep_dims=True), (M,)),
    "mean": (lambda a: ops.Mean(a, [1]), (M,)),
    "max": (lambda a: ops.Max(a, [0]), (M,)),
    "min": (lambda a: ops.Min(a, [1]), (M,)),
    **{f"mat_mul_{int(ta)}{int(tb)}":
       (lambda a, b, ta=ta, tb=tb: ops.MatMul(a, b, transpose_a=ta, transpose_b=tb), (M, M2))
       for ta in (False, True) for tb in (False, True)},
    **{f"batch_mat_mul_{int(ta)}{int(tb)}":
       (lambda a, b, ta=ta, tb=tb: ops.BatchMatMulV2(a, b, adj_x=ta, adj_y=tb),
        (np.stack([M, M2]), M2[None]))
       for ta in (False, True) for tb in (False, True)},
    "reshape": (lambda a: ops.Reshape(a, [4]), (M,)),
    "expand_dims": (lambda a: ops.ExpandDims(a, 1), (M,)),
    "squeeze": (lambda a: ops.Squeeze(a), (M[None],)),
    "transpose": (lambda a: ops.Transpose(a, [1, 0]), (M,)),
    "pack": (lambda a, b: ops.Pack([a, b], axis=1), (V, V2)),
    "unpack": (lambda a: list(ops.Unpack(a, num=2, axis=1)), (M,)),
    "concat": (lambda a, b: ops.ConcatV2([a, b], 1), (M, M2[:, :1])),
    "split": (lambda a: list(ops.Split(1, a, 2)), (M,)),
    "slice": (lambda a: ops.Slice(a, [0, 1], [2, 1]), (M,)),
    "strided_slice": (lambda a: a[1, ::-1], (M,)),
    "reverse": (lambda a: ops.ReverseV2(a, [1]), (M,)),
    "gather_nd": (lambda a: ops.GatherNd(a, [[1], [0], [1]]), (M,)),
    "softmax": (ops.Softmax, (M,)),
    "log_softmax": (ops.LogSoftmax, (M,)),
    "bias_add": (ops.BiasAdd, (M, _f32([1, 2]))),
    "conv2d": (lambda a, b: ops.Conv2D(a, b, [1, 1, 1, 1], "SAME"), (IMAGE, FILTER)),
    "max_pool": (lambda a: ops.MaxPool(a, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), (IMAGE,)),
    "avg_pool": (lambda a: ops.AvgPool(a, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), (IMAGE,)),
    "a_bigger_body": (
        lambda x, w, b: ops.Mean(ops.Square(ops.Tanh(ops.MatMul(x, w) + b) - 1.0), [0, 1]),
        (M, M2, _f32([1, 2])),
    ),
}  # fmt: skip


def gradient_graph(body: Body, arrays: Sequence[np.ndarray], name: str = "F") -> Graph:
    """Return a graph whose node `gradient` is the gradient of `body` at the fed `x0`, `x1`, ….

    The incoming gradient of each result of the body is ones.
    """
    graph = Graph()
    with graph.as_default():
        function = FunctionGraph("body", graph)
        function.name = name
        types = [from_numpy(array.dtype) for array in arrays]
        arguments = [
            function.add_argument(data_type, TensorShape(array.shape))
            for data_type, array in zip(types, arrays, strict=True)
        ]
        results = function.build(body, *arguments)
        function.outputs = list(results) if isinstance(results, list) else [results]
        graph.add_functions(pb.FunctionDefLibrary(function=[function.to_function_def()]))
        inputs = [
            placeholder(float32, array.shape, f"x{index}") for index, array in enumerate(arrays)
        ]
        call = ops.PartitionedCall(inputs, Tout=[each.dtype for each in function.outputs], f=name)
        ones = [ops.OnesLike(each) for each in call]
        ops.SymbolicGradient([*inputs, *ones], Tout=types, f=name, name="gradient")
    return graph


def _case(name: str, body: Body, arrays: Sequence[np.ndarray]) -> Case:
    graph_def = gradient_graph(body, arrays).as_graph_def()
    feeds = {f"x{index}:0": array for index, array in enumerate(arrays)}
    fetches = tuple(f"gradient:{index}" for index in range(len(arrays)))
    return Case(name, graph_def, (Step(feeds, fetches),), tolerance=1e-5)


def _given_gradient(name: str, results: int) -> Case:
    """A function with a custom gradient in the library: twice the incoming gradient.

    The gradient function returns it `results` times; one is right.
    """
    graph = gradient_graph(lambda a: ops.Square(a), (V,))
    with graph.as_default():
        gradient = FunctionGraph("gradient", graph)
        gradient.name = "Twice"
        _, incoming = (gradient.add_argument(float32, TensorShape(V.shape)) for _ in range(2))
        gradient.outputs = [gradient.build(lambda each: each + each, incoming)] * results
        graph.add_functions(
            pb.FunctionDefLibrary(
                function=[gradient.to_function_def()],
                gradient=[pb.GradientDef(function_name="F", gradient_func="Twice")],
            )
        )
    steps = (Step({"x0:0": V}, ("gradient:0",)),)
    return Case(name, graph.as_graph_def(), steps)


CASES = (
    *(_case(name, *entry) for name, entry in BODIES.items()),
    _given_gradient("a_gradient_of_the_graphs_own", 1),
    _given_gradient("a_gradient_of_the_graphs_own_that_returns_too_much", 2),
    _case("an_op_without_a_gradient", lambda a: ops.HSVToRGB(a), (V,)),
)
