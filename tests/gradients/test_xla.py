"""Gradients of Xla ops, which TensorFlow runs in compiled functions only, and those of others."""

from __future__ import annotations

import numpy as np
import pytest

import runtime.client as tf
from runtime.client import ops
from tests.gradients.gradient_case import case, feeds, forward_graph, weights

A = np.float32([[1.0, 2.0, 0.5], [3.0, 5.0, 0.25]])
B = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("equation", "a", "b"),
    [
        ("ab,bc->ac", A, B),
        ("ab,bc->ca", A, B),
        ("zab,zbc->zac", np.stack([A, A + 1]), np.stack([B, B - 1])),
        ("ab,cd->abcd", A, B),
    ],
)
def test_xla_einsum_has_the_gradient_of_einsum(equation: str, a: np.ndarray, b: np.ndarray) -> None:
    found = []
    for body in (
        lambda x, y: ops.XlaEinsum(x, y, equation=equation),
        lambda x, y: ops.Einsum([x, y], equation=equation),
    ):
        each = case(body, a, b)
        graph, results, inputs = forward_graph(each)
        with graph.as_default(), tf.Session() as session:
            (value,) = session.run(results, feeds(each))
            gradients = tf.gradients(results, inputs, [tf.constant(weights(value))])
            found.append(session.run(gradients, feeds(each)))
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)
