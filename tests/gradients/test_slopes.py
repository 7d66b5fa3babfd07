"""Gradients against finite differences: some ops, and those whose gradients in TensorFlow differ.

TensorFlow 2.21 has no gradient for Snapshot, RFFT3D and IRFFT3D, a broken one for TopK, refuses new
graphs with BatchNormWithGlobalNormalization, runs Xla ops in compiled functions only, aligns the
gradients of version 2 of the diagonal ops differently, and does not conjugate some complex
derivatives.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import protos as pb
import runtime.client as tf
from runtime.client import ops
from runtime.client.framework.function_graph import FunctionGraph
from tests.gradients.gradient_case import GradientCase, case, feeds, forward_graph, weights

M = np.array([[1.0, 2.0, 0.5], [3.0, 5.0, 0.25]])
CUBE = np.linspace(-1, 2, 18).reshape(2, 3, 3)
C = np.array([[0.5 + 0.25j, -0.75 + 0.5j], [1.5 - 2j, 1 + 1j]])
STEP = 1e-5


def _case(index: int, op: str = "Case") -> Any:
    def body(x: Any, y: Any) -> Any:
        functions = []
        for name, make in {
            "double": lambda a, b: a + a,
            "product": lambda a, b: a * b,
            "power": lambda a, b: b**3,
        }.items():
            graph = FunctionGraph(name, x.graph)
            a, b = (graph.add_argument(x.dtype, each.shape) for each in (x, y))
            graph.outputs = [graph.build(lambda make=make, a=a, b=b: make(a, b))]
            x.graph.add_functions(_library(graph))
            functions.append(graph.name)
        return getattr(ops, op)(tf.constant(index), [x, y], Tout=[x.dtype], branches=functions)[0]

    return body


def _library(graph: FunctionGraph) -> Any:
    return pb.FunctionDefLibrary(function=[graph.to_function_def()])


def _checked(x: Any) -> Any:
    """Something stateful, because of which If and While are not stateless."""
    ops.Assert(tf.reduce_sum(x) < 1e6, [x])
    return x


def _array_of_version_2(write: str, x: Any) -> Any:
    handle = ops.TensorArrayV2(2, dtype="float64", clear_after_read=False)
    flow = tf.constant(0.0)
    if write == "write":
        for index in range(2):
            flow = ops.TensorArrayWriteV2(handle, index, x[index], flow)
        rows = [ops.TensorArrayReadV2(handle, n, flow, dtype="float64") for n in (0, 1, 1)]
        return rows[0] * rows[1] * rows[2]
    if write == "scatter":
        flow = ops.TensorArrayScatterV2(handle, [1, 0], x, flow)
        return ops.TensorArrayGatherV2(handle, [0, 1, 0], flow, dtype="float64") ** 2
    flow = ops.TensorArraySplitV2(handle, x, np.array([1, 1]), flow)
    return ops.TensorArrayConcatV2(handle, flow, dtype="float64")[0] ** 2


def _composite(x: Any, y: Any) -> Any:
    metadata = b""
    whole = ops.CompositeTensorVariantFromComponents([x, y], metadata=metadata)
    types = [x.dtype, y.dtype]
    parts = ops.CompositeTensorVariantToComponents(whole, metadata=metadata, Tcomponents=types)
    return [parts[0] * parts[1], parts[1]]


CASES: dict[str, GradientCase] = {
    "snapshot": case(lambda x: ops.Snapshot(x) * x, M),
    "matrix_diag_v2": case(lambda x: ops.MatrixDiagV2(x, [0, 1], 3, 3, np.zeros(())), CUBE[:, :2]),
    "matrix_diag_part_v2": case(lambda x: ops.MatrixDiagPartV2(x, [-1, 1], np.zeros(())), CUBE),
    "matrix_set_diag_v2": case(
        lambda x, d: ops.MatrixSetDiagV2(x, d, [0, 1]), CUBE, CUBE[:, :2] * 2
    ),
    "cumprod_complex": case(lambda x: ops.Cumprod(x, 1), C),
    "matrix_determinant_complex": case(ops.MatrixDeterminant, C),
    **{
        f"global_batch_norm_{after}": case(
            lambda x, mean, variance, beta, gamma, after=after: (
                ops.BatchNormWithGlobalNormalization(x, mean, variance, beta, gamma, 0.25, after)
            ),
            CUBE[:, None, :2],
            CUBE[0, 0],
            CUBE[1, 1],
            CUBE[0, 1],
            CUBE[1, 0],
        )
        for after in (False, True)
    },
    "top_k": case(lambda x: ops.TopK(x, k=2)[0], CUBE),
    "rfft_cropped": case(lambda x: ops.RFFT(x, [2], Tcomplex=tf.complex128), CUBE[0]),
    "rfft_3d": case(lambda x: ops.RFFT3D(x, [2, 3, 2], Tcomplex=tf.complex128), CUBE),
    "irfft_3d": case(lambda x: ops.IRFFT3D(x, [1, 2, 3], Treal=tf.float64), C[None]),
    "xla_sharding": case(lambda x: ops.XlaSharding(x, sharding=b"any") * x, M),
    "a_layer": case(lambda x, w: tf.nn.softmax(tf.tanh(tf.matmul(x, w))), M, CUBE[0]),
    "a_norm": case(lambda x: tf.sqrt(tf.reduce_sum(tf.square(x - 1.4), 1)), M),
    **{
        f"{op}_complex": case(getattr(ops, op), C, C[::-1])
        for op in ("ReciprocalGrad", "InvGrad", "SqrtGrad", "RsqrtGrad")
    },
    **{f"case_{index}": case(_case(index), M, M + 1) for index in (0, 1, 2, 7)},
    "stateless_case": case(_case(1, "StatelessCase"), M, M + 1),
    "a_condition_with_a_check": case(
        lambda x: tf.cond(x[0, 0] > 0, lambda: _checked(x) ** 2, lambda: -x), M
    ),
    "a_loop_with_a_check": case(
        lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, _checked(y) * x), (0, x))[
            1
        ],
        M,
    ),
    **{
        f"array_of_version_2_{write}": case(partial(_array_of_version_2, write), M)
        for write in ("write", "scatter", "split")
    },
    "composite_tensor": case(_composite, M, M + 1),
    "printed": case(lambda x: ops.Print(x, [x], first_n=0) * x, M),
    "debugged": case(lambda x: ops.DebugIdentityV2(x) * ops.DebugGradientIdentity(x), M),
    "quantization_backward": case(
        lambda g: ops.QuantizeAndDequantizeV4Grad(g, M, 0.4, 2.5)[0] * g, M
    ),
    "a_condition": case(lambda x: tf.cond(x[0, 0] > 0, lambda: x * x, lambda: -x), M),
    "a_loop": case(
        lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x + y), (0, x))[1], M
    ),
    "a_loop_that_ends_by_itself": case(
        lambda x: tf.while_loop(lambda y: tf.reduce_sum(y) < 90, lambda y: [y * 1.5], [x]), M
    ),
    "a_loop_in_a_loop": case(
        lambda x: tf.while_loop(
            lambda i, y: i < 2,
            lambda i, y: (
                i + 1,
                tf.while_loop(lambda j, z: j < i + 2, lambda j, z: (j + 1, z * x / 2), (0, y))[1],
            ),
            (0, x),
        )[1],
        M,
    ),
    "rows_of_an_array": case(lambda x: tf.map_fn(lambda row: tf.cumprod(row * row), x), M),
    "a_scan": case(lambda x: tf.scan(lambda a, row: a * row + row, x), M),
    "a_loop_twice": case(lambda x: tf.foldl(lambda a, row: tf.tanh(a * row), x), M, order=2),
    "a_condition_twice": case(lambda x: tf.cond(x[0, 0] > 0, lambda: x**3, lambda: -x), M, order=2),
}


def gradients_and_loss(case: GradientCase) -> tuple[tf.Graph, list[Any], Any]:
    """(graph, gradients, loss): the loss is the weighted sum of the differentiated tensors."""
    graph, ys, xs = forward_graph(case)
    loss: Any = None
    with graph.as_default(), tf.Session() as session:
        for _ in range(case.order):
            values = session.run(ys, feeds(case))
            begun = [tf.constant(weights(np.asarray(value))) for value in values]
            parts = [_real_product(*pair) for pair in zip(begun, ys, strict=True)]
            loss = tf.add_n([tf.reduce_sum(part) for part in parts])
            ys = tf.gradients(ys, xs, begun)
    return graph, ys, loss


def _real_product(weight: Any, y: Any) -> Any:
    is_complex = y.dtype.numpy.kind == "c"
    return ops.Real(tf.conj(weight) * y, Tout=tf.float64) if is_complex else weight * y


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_the_slope(name: str) -> None:
    case = CASES[name]
    graph, found, loss = gradients_and_loss(case)
    with tf.Session(graph=graph) as session:
        for index, array in enumerate(case.arrays):
            gradient = session.run(found[index], feeds(case))
            assert gradient.shape == array.shape
            for place in np.ndindex(array.shape):
                for way in (1, 1j) if array.dtype.kind == "c" else (1,):
                    more, less = array.copy(), array.copy()
                    more[place] += STEP * way
                    less[place] -= STEP * way
                    ends = [
                        session.run(loss, {**feeds(case), f"x{index}:0": each})
                        for each in (more, less)
                    ]
                    slope = (ends[0] - ends[1]) / (2 * STEP)
                    ours = (np.conj(gradient[place]) * way).real
                    assert ours == pytest.approx(slope, rel=1e-5, abs=1e-6)
