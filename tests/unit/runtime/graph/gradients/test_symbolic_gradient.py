"""Gradients of functions against finite differences, and errors for ops without a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.client import Graph, Session, cond, constant, ops
from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.tensor_shape import TensorShape
from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework.dtypes import DataType
from tests.conformance.cases.control.symbolic_gradients import Body, gradient_graph

V = np.array([0.5, 0.25, 0.75], np.float32)
M = np.array([[1, 2], [3, 5]], np.float32)
STEP = 1e-2  # of the finite differences

# Ops that TensorFlow's SymbolicGradient lacks, or gets wrong (Asinh, Acosh, negative axes).
BODIES: dict[str, tuple[Body, tuple[np.ndarray, ...]]] = {
    "asinh": (ops.Asinh, (V,)),
    "acosh": (ops.Acosh, (V + 1,)),
    "erf": (ops.Erf, (V,)),
    "erfc": (ops.Erfc, (V,)),
    "softplus": (ops.Softplus, (V,)),
    "elu": (lambda a: ops.Elu(a - 1.0), (V,)),
    "add_n": (lambda a, b: ops.AddN([a, b, a]), (V, V)),
    "mul_no_nan": (ops.MulNoNan, (V, V)),
    "select_v2": (lambda a, b: ops.SelectV2(True, a, b), (V, np.array(2, np.float32))),
    "sum_from_the_end": (lambda a: ops.Sum(a * a, [-1], keep_dims=True), (M,)),
    "mean_of_all": (lambda a: ops.Mean(a * a, [-2, 1]), (M,)),
    "concat_from_the_end": (lambda a: ops.ConcatV2([a, a * a], -1), (M,)),
    "pad": (lambda a: ops.Pad(a * a, [[1, 0], [0, 2]]), (M,)),
    "split_v": (lambda a: list(ops.SplitV(a * a, [1, 1], 0, num_split=2)), (M,)),
    "broadcast_to": (lambda a: ops.BroadcastTo(a * a, [3, 2, 2]), (M,)),
    "identity_n": (lambda a, b: list(ops.IdentityN([a * b, b])), (V, V)),
    "l2_loss": (ops.L2Loss, (V,)),
    "cross_entropy": (
        lambda a: ops.SoftmaxCrossEntropyWithLogits(a, np.array([[1, 0], [0.5, 0.5]], np.float32))[
            0
        ],
        (M,),
    ),
    "sparse_cross_entropy": (
        lambda a: ops.SparseSoftmaxCrossEntropyWithLogits(a, np.array([1, 0], np.int32))[0],
        (M,),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_gradient_is_the_slope(name: str) -> None:
    body, arrays = BODIES[name]
    graph = gradient_graph(body, arrays)
    (call,) = (each for each in graph.get_operations() if each.type == "PartitionedCall")
    feeds = {f"x{index}:0": array for index, array in enumerate(arrays)}
    with Session(graph=graph) as session:

        def total(index: int, array: np.ndarray) -> float:
            values = session.run(list(call.outputs), {**feeds, f"x{index}:0": array})
            return float(sum(np.sum(value, dtype=np.float64) for value in values))

        for index, array in enumerate(arrays):
            gradient = session.run(f"gradient:{index}", feeds)
            assert gradient.shape == array.shape
            for place in np.ndindex(array.shape):
                more, less = array.copy(), array.copy()
                more[place] += STEP
                less[place] -= STEP
                slope = (total(index, more) - total(index, less)) / (2 * STEP)
                assert gradient[place] == pytest.approx(slope, rel=0.02, abs=0.02)


def run_gradient(body: Body) -> Any:
    with Session(graph=gradient_graph(body, (V,))) as session:
        return session.run("gradient:0", {"x0:0": V})


def test_a_call_in_the_body_is_differentiated_too() -> None:
    def body(x: Any) -> Any:
        graph = x.graph
        inner = FunctionGraph("inner", graph)
        argument = inner.add_argument(DataType.FLOAT, TensorShape([3]))
        inner.outputs = [inner.build(lambda: argument * argument)]
        graph.add_functions(pb.FunctionDefLibrary(function=[inner.to_function_def()]))
        return ops.PartitionedCall([x], Tout=[DataType.FLOAT], f=inner.name)[0] * 3.0

    assert run_gradient(body) == pytest.approx(6 * V)


def test_an_op_without_a_gradient_is_named() -> None:
    with pytest.raises(NotFoundError, match=r"^No gradient defined for op: RandomPoissonV2\n"):
        run_gradient(lambda x: ops.RandomPoissonV2([2], x))


def test_a_branch_without_a_gradient_is_named() -> None:
    with pytest.raises(NotFoundError, match="No gradient defined for op: StatelessIf"):
        run_gradient(lambda x: cond(constant(True), lambda: x * 2.0, lambda: x))


def test_an_op_is_no_function() -> None:
    with Graph().as_default(), Session() as session:
        gradient = ops.SymbolicGradient([V, V], Tout=[DataType.FLOAT], f="Tanh")
        with pytest.raises(NotFoundError, match="No gradient defined for op: Tanh"):
            session.run(gradient)


def test_types_that_do_not_agree() -> None:
    graph = gradient_graph(lambda x: x * x, (V,))
    with graph.as_default(), Session() as session:
        gradient = ops.SymbolicGradient([V, V], Tout=[DataType.INT32], f="F")
        with pytest.raises(InvalidArgumentError, match=r"gives float; .* Tout says int32"):
            session.run(gradient)
