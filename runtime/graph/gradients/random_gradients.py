"""Gradient functions of random numbers by the parameters of their distributions.

They are implicit derivatives: how a sample moves with a parameter if its cumulative probability
stays the same (Figurnov et al., 2018).

TF: tensorflow/python/ops/random_grad.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _gamma(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """RandomGamma and the stateless ones, whose last input is `alpha`."""
    *others, alpha = node.inputs
    slope = ops.Mul(grads[0], ops.RandomGammaGrad(alpha, (node, 0)))
    return [*([None] * len(others)), ops.reduced_to(slope, alpha, slope)]


def _truncated_normal(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """StatelessParameterizedTruncatedNormal: return the gradients of the four parameters.

    As in TensorFlow, the gradients of mean and deviation are those of a sample whose bounds move
    with it.
    """
    _, _, mean, deviation, low, high = node.inputs
    sample, grad = (node, 0), grads[0]
    limits = np.finfo(type_of(mean).numpy)
    half = ops.like(0.5, mean)

    def standard(x: Endpoint) -> Endpoint:
        output: Endpoint = ops.RealDiv(ops.Sub(x, mean), deviation)
        return output

    def probability(x: Endpoint) -> Endpoint:  # that a standard normal number is less than x
        output: Endpoint = ops.Mul(half, ops.Erfc(ops.Mul(ops.like(-math.sqrt(0.5), mean), x)))
        return output

    def weight(bound: Endpoint, logarithm: Endpoint) -> Endpoint:
        squares = ops.Sub(ops.Square(at), ops.Square(bound))
        output: Endpoint = ops.Exp(ops.AddV2(ops.Mul(half, squares), logarithm))
        return output

    at, lowest, highest = (standard(each) for each in (sample, low, high))
    share = ops.RealDiv(
        ops.Sub(probability(at), probability(lowest)),
        ops.Sub(probability(highest), probability(lowest)),
    )
    largest = ops.like(1 - float(limits.eps), mean)
    share = ops.Minimum(ops.Maximum(share, ops.like(float(limits.tiny), mean)), largest)
    slopes = (
        (mean, grad),
        (deviation, ops.Mul(grad, at)),
        (low, ops.Mul(grad, weight(lowest, ops.Log1p(ops.Neg(share))))),
        (high, ops.Mul(grad, weight(highest, ops.Log(share)))),
    )
    return [None, None, *(ops.reduced_to(dx, x, grad) for x, dx in slopes)]


RANDOM_GRADIENTS: dict[str, GradientFunction] = {
    "RandomGamma": _gamma,
    "StatelessRandomGammaV2": _gamma,
    "StatelessRandomGammaV3": _gamma,
    "StatelessParameterizedTruncatedNormal": _truncated_normal,
}
