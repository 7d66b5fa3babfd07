"""Gradient functions of special functions, and of elementwise ops that are rarely used.

TF: tensorflow/python/ops/math_grad.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.graph.gradients.elementwise_gradients import (
    GradientFunction,
    Gradients,
    Unary,
    elementwise,
)
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node

_HALF_ROOT_PI = math.sqrt(math.pi) / 2
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


def _where_zero(ops: GradientNodes, x: Endpoint, value: float, other: Endpoint) -> Endpoint:
    """Return `value` for each element of x that is zero, else the element of `other`."""
    is_zero = ops.Equal(x, ops.like(0, x))
    output: Endpoint = ops.SelectV2(is_zero, ops.like(value, x), other)
    return output


def _divide_by_nonzero(ops: GradientNodes, y: Endpoint, x: Endpoint) -> Endpoint:
    """Return y / x for each element of x that is not zero, else the element of y."""
    is_zero = ops.Equal(x, ops.like(0, x))
    output: Endpoint = ops.RealDiv(y, ops.SelectV2(is_zero, ops.OnesLike(x), x))
    return output


def _fresnel_phase(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return π/2 × x²; the integrands of the Fresnel integrals are its cosine and sine."""
    output: Endpoint = ops.Mul(ops.like(math.pi / 2, x), ops.Square(x))
    return output


# op that computes y = f(x) → function that returns the derivative at x; it does not use dy
_SLOPES: dict[str, Unary] = {
    "Digamma": lambda ops, x, y, dy: ops.Polygamma(ops.OnesLike(x), x),
    "Erfinv": lambda ops, x, y, dy: ops.Mul(ops.like(_HALF_ROOT_PI, x), ops.Exp(ops.Square(y))),
    "Ndtri": lambda ops, x, y, dy: ops.Mul(
        ops.like(_ROOT_TWO_PI, x), ops.Exp(ops.Mul(ops.like(0.5, x), ops.Square(y)))
    ),
    "BesselI0": lambda ops, x, y, dy: ops.BesselI1(x),
    "BesselI0e": lambda ops, x, y, dy: ops.Sub(ops.BesselI1e(x), ops.Mul(ops.Sign(x), y)),
    "BesselI1": lambda ops, x, y, dy: _where_zero(
        ops, x, 1.0, ops.Sub(ops.BesselI0(x), _divide_by_nonzero(ops, y, x))
    ),
    "BesselI1e": lambda ops, x, y, dy: _where_zero(
        ops,
        x,
        0.5,
        ops.Sub(
            ops.BesselI0e(x), ops.AddV2(ops.Mul(y, ops.Sign(x)), _divide_by_nonzero(ops, y, x))
        ),
    ),
    "BesselK0": lambda ops, x, y, dy: ops.Neg(ops.BesselK1(x)),
    "BesselK0e": lambda ops, x, y, dy: ops.Sub(y, ops.BesselK1e(x)),
    "BesselK1": lambda ops, x, y, dy: ops.Neg(ops.AddV2(ops.BesselK0(x), ops.RealDiv(y, x))),
    "BesselK1e": lambda ops, x, y, dy: ops.Sub(
        ops.Mul(y, ops.Sub(ops.like(1, x), ops.Reciprocal(x))), ops.BesselK0e(x)
    ),
    "BesselJ0": lambda ops, x, y, dy: ops.Neg(ops.BesselJ1(x)),
    "BesselJ1": lambda ops, x, y, dy: _where_zero(
        ops, x, 0.5, ops.Sub(ops.BesselJ0(x), _divide_by_nonzero(ops, y, x))
    ),
    "BesselY0": lambda ops, x, y, dy: ops.Neg(ops.BesselY1(x)),
    "BesselY1": lambda ops, x, y, dy: ops.Sub(ops.BesselY0(x), ops.RealDiv(y, x)),
    "Dawsn": lambda ops, x, y, dy: ops.Sub(ops.like(1, x), ops.Mul(ops.like(2, x), ops.Mul(x, y))),
    "Expint": lambda ops, x, y, dy: ops.RealDiv(ops.Exp(x), x),
    "FresnelCos": lambda ops, x, y, dy: ops.Cos(_fresnel_phase(ops, x)),
    "FresnelSin": lambda ops, x, y, dy: ops.Sin(_fresnel_phase(ops, x)),
    "Spence": lambda ops, x, y, dy: ops.SelectV2(
        ops.Equal(x, ops.like(1, x)),
        ops.like(-1, x),
        ops.RealDiv(ops.Log(x), ops.Sub(ops.like(1, x), x)),
    ),
}


def _broadcast_pair(
    ops: GradientNodes, node: Node, dx: Endpoint, first: Endpoint | None = None
) -> Gradients:
    """Return the gradients of the two inputs, summed to the shapes that these had before broadcast.

    `first` and `dx` are the gradients of the broadcast inputs. If `first` is None, the first
    input has no gradient.
    """
    a, x = node.inputs
    da = None if first is None else ops.reduced_to(first, a, x)
    return [da, ops.reduced_to(dx, x, a)]


def _igamma(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Igamma and Igammac: return the gradients of `a` and `x`. Igammac is 1 − Igamma."""
    a, x = node.inputs
    dy = grads[0] if node.op == "Igamma" else ops.Neg(grads[0])
    power = ops.Mul(ops.Sub(a, ops.like(1, a)), ops.Log(x))
    slope = ops.Exp(ops.Sub(ops.Sub(power, x), ops.Lgamma(a)))
    return _broadcast_pair(ops, node, ops.Mul(slope, dy), ops.Mul(ops.IgammaGradA(a, x), dy))


def _polygamma(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    n, x = node.inputs
    slope = ops.Polygamma(ops.AddV2(n, ops.like(1, n)), x)
    return _broadcast_pair(ops, node, ops.Mul(slope, grads[0]))


def _zeta(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, q = node.inputs
    slope = ops.Neg(ops.Mul(x, ops.Zeta(ops.AddV2(x, ops.like(1, x)), q)))
    return _broadcast_pair(ops, node, ops.Mul(slope, grads[0]))


def _betainc(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    a, b, x = node.inputs
    log_beta = ops.Sub(ops.AddV2(ops.Lgamma(a), ops.Lgamma(b)), ops.Lgamma(ops.AddV2(a, b)))
    rising = ops.Xlogy(ops.Sub(a, ops.like(1, a)), x)
    falling = ops.Xlog1py(ops.Sub(b, ops.like(1, b)), ops.Neg(x))
    slope = ops.Exp(ops.Sub(ops.AddV2(falling, rising), log_beta))
    dx = ops.Mul(slope, grads[0])
    return [None, None, ops.reduced_to(dx, x, dx)]


def _atan2(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    y, x = node.inputs
    share = ops.RealDiv(grads[0], ops.AddV2(ops.Square(x), ops.Square(y)))
    return _broadcast_pair(ops, node, ops.Neg(ops.Mul(share, y)), ops.Mul(share, x))


def _floor_mod(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, y = node.inputs
    dy = ops.Mul(grads[0], ops.Neg(ops.FloorDiv(x, y)))
    return _broadcast_pair(ops, node, dy, grads[0])


def _xlog1py(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, y = node.inputs
    is_used = ops.Cast(ops.NotEqual(x, ops.like(0, x)), DstT=type_of(x))
    dx = ops.Mul(grads[0], ops.Xlog1py(is_used, y))
    dy = ops.Mul(grads[0], ops.Xdivy(x, ops.AddV2(y, ops.like(1, y))))
    return _broadcast_pair(ops, node, dy, dx)


def _next_after(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return _broadcast_pair(ops, node, ops.ZerosLike(grads[0]), grads[0])


def _cross(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    a, b = node.inputs
    return [ops.Cross(b, grads[0]), ops.Cross(grads[0], a)]


def _cumulative_logsumexp(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """CumulativeLogsumexp: return the gradient of `x`.

    Positive and negative parts of the output's gradient are handled separately because the
    computation takes logarithms.
    """
    x, axis = node.inputs
    turned = {"exclusive": node.attr("exclusive"), "reverse": not node.attr("reverse")}
    smallest = ops.like(np.finfo(type_of(x).numpy).min, x)
    zero, one = ops.like(0, x), ops.like(1, x)

    def share(dy: Endpoint) -> Endpoint:
        is_some = ops.Greater(dy, zero)
        logarithm = ops.Log(ops.SelectV2(is_some, dy, one))
        logarithm = ops.Sub(ops.SelectV2(is_some, logarithm, smallest), (node, 0))
        total = ops.CumulativeLogsumexp(logarithm, axis, **turned)
        output: Endpoint = ops.Exp(ops.AddV2(total, x))
        return output

    return [ops.Sub(share(grads[0]), share(ops.Neg(grads[0]))), None]


def _complex_abs(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x = node.inputs[0]
    whole = ops.Complex(grads[0], ops.ZerosLike(grads[0]), Tout=type_of(x))
    return [ops.Mul(whole, ops.Sign(x))]


def _angle(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x = node.inputs[0]
    parts = {"Tout": type_of(grads[0])}
    turned = ops.Complex(ops.Imag(x, **parts), ops.Real(x, **parts), Tout=type_of(x))
    whole = ops.Complex(grads[0], ops.ZerosLike(grads[0]), Tout=type_of(x))
    return [ops.Neg(ops.Mul(whole, ops.Reciprocal(turned)))]


SPECIAL_FUNCTION_GRADIENTS: dict[str, GradientFunction] = {
    **{op: elementwise(slope) for op, slope in _SLOPES.items()},
    "Igamma": _igamma,
    "Igammac": _igamma,
    "Polygamma": _polygamma,
    "Zeta": _zeta,
    "Betainc": _betainc,
    "Atan2": _atan2,
    "FloorMod": _floor_mod,
    "Xlog1py": _xlog1py,
    "NextAfter": _next_after,
    "Cross": _cross,
    "CumulativeLogsumexp": _cumulative_logsumexp,
    "ComplexAbs": _complex_abs,
    "Angle": _angle,
}
