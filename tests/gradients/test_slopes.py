"""Gradients against finite differences: some ops, and those whose gradients in TensorFlow differ.

TensorFlow 2.21 has no gradient for Snapshot, aligns the gradients of version 2 of the diagonal ops
differently, and does not conjugate some complex derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runtime.client as tf
from runtime.client import ops
from tests.gradients.gradient_case import GradientCase, case, feeds, forward_graph, weights

M = np.array([[1.0, 2.0, 0.5], [3.0, 5.0, 0.25]])
CUBE = np.linspace(-1, 2, 18).reshape(2, 3, 3)
C = np.array([[0.5 + 0.25j, -0.75 + 0.5j], [1.5 - 2j, 1 + 1j]])
STEP = 1e-5

CASES: dict[str, GradientCase] = {
    "snapshot": case(lambda x: ops.Snapshot(x) * x, M),
    "matrix_diag_v2": case(lambda x: ops.MatrixDiagV2(x, [0, 1], 3, 3, np.zeros(())), CUBE[:, :2]),
    "matrix_diag_part_v2": case(lambda x: ops.MatrixDiagPartV2(x, [-1, 1], np.zeros(())), CUBE),
    "matrix_set_diag_v2": case(
        lambda x, d: ops.MatrixSetDiagV2(x, d, [0, 1]), CUBE, CUBE[:, :2] * 2
    ),
    "cumprod_complex": case(lambda x: ops.Cumprod(x, 1), C),
    "matrix_determinant_complex": case(ops.MatrixDeterminant, C),
    "a_layer": case(lambda x, w: tf.nn.softmax(tf.tanh(tf.matmul(x, w))), M, CUBE[0]),
    "a_norm": case(lambda x: tf.sqrt(tf.reduce_sum(tf.square(x - 1.4), 1)), M),
    **{
        f"{op}_complex": case(getattr(ops, op), C, C[::-1])
        for op in ("ReciprocalGrad", "InvGrad", "SqrtGrad", "RsqrtGrad")
    },
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
