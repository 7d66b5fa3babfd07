"""Gradient functions of elementwise ops with one or two inputs, and of similar ops with one input.

TF: tensorflow/core/ops/math_grad.cc, nn_grad.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from runtime.graph.gradients.gradient_nodes import GradientNodes, is_complex, type_of
from runtime.graph.node import Endpoint, Node

Gradients = Sequence[Endpoint | None]
GradientFunction = Callable[[GradientNodes, Node, Sequence[Endpoint]], Gradients]
# For y = f(x), a function (nodes, x, y, dy) → dx; dx and dy are gradients.
Unary = Callable[[GradientNodes, Endpoint, Endpoint, Endpoint], Endpoint]
# For y = f(a, b), a function (nodes, a, b, dy) → (da, db). The results have the shape of y: the
# caller sums them over the axes along which a or b was broadcast.
Binary = Callable[[GradientNodes, Endpoint, Endpoint, Endpoint], tuple[Endpoint, Endpoint]]

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _unary(function: Unary) -> GradientFunction:
    def gradient(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
        return [function(ops, node.inputs[0], (node, 0), grads[0])]

    return gradient


def _binary(function: Binary) -> GradientFunction:
    def gradient(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
        a, b = node.inputs
        da, db = function(ops, a, b, grads[0])
        return [ops.reduced_to(da, a, b), ops.reduced_to(db, b, a)]

    return gradient


def elementwise(slope: Unary) -> GradientFunction:
    """Return the gradient function of an op y = f(x) whose derivative is `slope`.

    It computes dx = dy × slope.
    """
    return _unary(lambda ops, x, y, dy: ops.Mul(dy, slope(ops, x, y, dy)))


def _one_minus_square(ops: GradientNodes, x: Endpoint) -> Endpoint:
    output: Endpoint = ops.Sub(ops.like(1, x), ops.Square(x))
    return output


def _one_plus_square(ops: GradientNodes, x: Endpoint) -> Endpoint:
    output: Endpoint = ops.AddV2(ops.like(1, x), ops.Square(x))
    return output


# op that computes y = f(x) → function that returns dx. If x is complex, the derivatives of the ops
# in `_CONJUGATED` are conjugated.
_UNARY: dict[str, Unary] = {
    "Abs": lambda ops, x, y, dy: ops.Mul(dy, ops.Sign(x)),
    "Neg": lambda ops, x, y, dy: ops.Neg(dy),
    "Inv": lambda ops, x, y, dy: ops.Mul(dy, ops.Neg(ops.Square(y))),
    "Reciprocal": lambda ops, x, y, dy: ops.Mul(dy, ops.Neg(ops.Square(y))),
    "Square": lambda ops, x, y, dy: ops.Mul(dy, ops.Mul(ops.like(2, x), x)),
    "Sqrt": lambda ops, x, y, dy: ops.RealDiv(dy, ops.Mul(ops.like(2, y), y)),
    "Rsqrt": lambda ops, x, y, dy: ops.Mul(
        dy, ops.Mul(ops.like(-0.5, y), ops.Mul(y, ops.Square(y)))
    ),
    "Exp": lambda ops, x, y, dy: ops.Mul(dy, y),
    "Expm1": lambda ops, x, y, dy: ops.Mul(dy, ops.Exp(x)),
    "Log": lambda ops, x, y, dy: ops.RealDiv(dy, x),
    "Log1p": lambda ops, x, y, dy: ops.RealDiv(dy, ops.AddV2(ops.like(1, x), x)),
    "Sin": lambda ops, x, y, dy: ops.Mul(dy, ops.Cos(x)),
    "Cos": lambda ops, x, y, dy: ops.Neg(ops.Mul(dy, ops.Sin(x))),
    "Tan": lambda ops, x, y, dy: ops.RealDiv(dy, ops.Square(ops.Cos(x))),
    "Asin": lambda ops, x, y, dy: ops.Mul(dy, ops.Rsqrt(_one_minus_square(ops, x))),
    "Acos": lambda ops, x, y, dy: ops.Neg(ops.Mul(dy, ops.Rsqrt(_one_minus_square(ops, x)))),
    "Atan": lambda ops, x, y, dy: ops.RealDiv(dy, _one_plus_square(ops, x)),
    "Sinh": lambda ops, x, y, dy: ops.Mul(dy, ops.Cosh(x)),
    "Cosh": lambda ops, x, y, dy: ops.Mul(dy, ops.Sinh(x)),
    "Tanh": lambda ops, x, y, dy: ops.TanhGrad(ops.conjugate(y), dy),
    "Asinh": lambda ops, x, y, dy: ops.RealDiv(dy, ops.Cosh(y)),
    "Acosh": lambda ops, x, y, dy: ops.RealDiv(dy, ops.Sinh(y)),
    "Atanh": lambda ops, x, y, dy: ops.RealDiv(dy, _one_minus_square(ops, x)),
    "Sigmoid": lambda ops, x, y, dy: ops.SigmoidGrad(ops.conjugate(y), dy),
    "Erf": lambda ops, x, y, dy: ops.Mul(
        dy, ops.Mul(ops.like(_TWO_OVER_ROOT_PI, x), ops.Exp(ops.Neg(ops.Square(x))))
    ),
    "Erfc": lambda ops, x, y, dy: ops.Mul(
        dy, ops.Mul(ops.like(-_TWO_OVER_ROOT_PI, x), ops.Exp(ops.Neg(ops.Square(x))))
    ),
    "Lgamma": lambda ops, x, y, dy: ops.Mul(dy, ops.Digamma(x)),
    "Relu": lambda ops, x, y, dy: ops.ReluGrad(dy, x),
    "Relu6": lambda ops, x, y, dy: ops.Relu6Grad(dy, x),
    "Elu": lambda ops, x, y, dy: ops.EluGrad(dy, y),
    "Selu": lambda ops, x, y, dy: ops.SeluGrad(dy, y),
    "Softplus": lambda ops, x, y, dy: ops.SoftplusGrad(dy, x),
    "Softsign": lambda ops, x, y, dy: ops.SoftsignGrad(dy, x),
    "Softmax": lambda ops, x, y, dy: _softmax(ops, y, dy),
    "LogSoftmax": lambda ops, x, y, dy: ops.Sub(
        dy, ops.Mul(ops.Exp(y), ops.Sum(dy, ops.indices([-1]), keep_dims=True))
    ),
    "Identity": lambda ops, x, y, dy: dy,
    "Snapshot": lambda ops, x, y, dy: dy,
    "CheckNumerics": lambda ops, x, y, dy: dy,
    "CheckNumericsV2": lambda ops, x, y, dy: dy,
    "EnsureShape": lambda ops, x, y, dy: dy,
    "Conj": lambda ops, x, y, dy: ops.Conj(dy),
    "Cast": lambda ops, x, y, dy: ops.Cast(dy, DstT=type_of(x)),
    "Squeeze": lambda ops, x, y, dy: ops.Reshape(dy, ops.Shape(x)),
    "L2Loss": lambda ops, x, y, dy: ops.Mul(dy, x),
    "Sign": lambda ops, x, y, dy: ops.ZerosLike(x),
    "Real": lambda ops, x, y, dy: ops.Complex(dy, ops.ZerosLike(dy), Tout=type_of(x)),
    "Imag": lambda ops, x, y, dy: ops.Complex(ops.ZerosLike(dy), dy, Tout=type_of(x)),
}
# Ops that compute holomorphic functions: the derivative is conjugated before it is multiplied by
# dy.
_CONJUGATED = frozenset((
    "Inv", "Reciprocal", "Square", "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Sin",
    "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Mul", "Div",
    "RealDiv", "DivNoNan", "MulNoNan", "Pow",
))  # fmt: skip


def _softmax(ops: GradientNodes, y: Endpoint, dy: Endpoint) -> Endpoint:
    weighted = ops.Sum(ops.Mul(dy, y), ops.indices([-1]), keep_dims=True)
    output: Endpoint = ops.Mul(ops.Sub(dy, weighted), y)
    return output


def _pow(ops: GradientNodes, a: Endpoint, b: Endpoint, dy: Endpoint) -> tuple[Endpoint, Endpoint]:
    zero = ops.ZerosLike(a)
    positive = ops.Greater(a, zero) if not is_complex(a) else ops.NotEqual(a, zero)
    safe_log = ops.SelectV2(positive, ops.Log(ops.SelectV2(positive, a, ops.OnesLike(a))), zero)
    da = ops.Mul(dy, ops.Mul(b, ops.Pow(a, ops.Sub(b, ops.like(1, b)))))
    return da, ops.Mul(dy, ops.Mul(ops.Pow(a, b), safe_log))


def _chosen(comparison: str) -> Binary:
    def gradient(
        ops: GradientNodes, a: Endpoint, b: Endpoint, dy: Endpoint
    ) -> tuple[Endpoint, Endpoint]:
        is_first = ops.add(comparison, a, b)
        zero = ops.like(0, dy)
        return ops.SelectV2(is_first, dy, zero), ops.SelectV2(is_first, zero, dy)

    return gradient


def _quotient(
    ops: GradientNodes, a: Endpoint, b: Endpoint, dy: Endpoint
) -> tuple[Endpoint, Endpoint]:
    return ops.RealDiv(dy, b), ops.Mul(dy, ops.RealDiv(ops.RealDiv(ops.Neg(a), b), b))


def _squared_difference(
    ops: GradientNodes, a: Endpoint, b: Endpoint, dy: Endpoint
) -> tuple[Endpoint, Endpoint]:
    da = ops.Mul(dy, ops.Mul(ops.like(2, a), ops.Sub(a, b)))
    return da, ops.Neg(da)


_BINARY: dict[str, Binary] = {
    "Add": lambda ops, a, b, dy: (dy, dy),
    "AddV2": lambda ops, a, b, dy: (dy, dy),
    "Sub": lambda ops, a, b, dy: (dy, ops.Neg(dy)),
    "Mul": lambda ops, a, b, dy: (ops.Mul(dy, b), ops.Mul(a, dy)),
    "Div": _quotient,
    "RealDiv": _quotient,
    "DivNoNan": lambda ops, a, b, dy: (
        ops.DivNoNan(dy, b),
        ops.Mul(dy, ops.DivNoNan(ops.DivNoNan(ops.Neg(a), b), b)),
    ),
    "MulNoNan": lambda ops, a, b, dy: (ops.MulNoNan(dy, b), ops.MulNoNan(a, dy)),
    "Xdivy": lambda ops, a, b, dy: (
        ops.Mul(dy, ops.Xdivy(ops.Cast(ops.NotEqual(a, ops.like(0, a)), DstT=type_of(a)), b)),
        ops.Mul(dy, ops.Xdivy(ops.Neg(a), ops.Square(b))),
    ),
    "Xlogy": lambda ops, a, b, dy: (
        ops.Mul(dy, ops.Xlogy(ops.Cast(ops.NotEqual(a, ops.like(0, a)), DstT=type_of(a)), b)),
        ops.Mul(dy, ops.Xdivy(a, b)),
    ),
    "Pow": _pow,
    "Maximum": _chosen("GreaterEqual"),
    "Minimum": _chosen("LessEqual"),
    "SquaredDifference": _squared_difference,
    "Complex": lambda ops, a, b, dy: (
        ops.Real(dy, Tout=type_of(a)),
        ops.Imag(dy, Tout=type_of(a)),
    ),
}


def _conjugated(function: Unary) -> Unary:
    """Return a function like `function`, which computes f'(x) × dy, but with f'(x) conjugated.

    It uses conj(f'(x)) × dy = conj(f'(x) × conj(dy)).
    """

    def gradient(ops: GradientNodes, x: Endpoint, y: Endpoint, dy: Endpoint) -> Endpoint:
        return ops.conjugate(function(ops, x, y, ops.conjugate(dy)))

    return gradient


def _both_conjugated(function: Binary) -> Binary:
    def gradient(
        ops: GradientNodes, a: Endpoint, b: Endpoint, dy: Endpoint
    ) -> tuple[Endpoint, Endpoint]:
        da, db = function(ops, a, b, ops.conjugate(dy))
        return ops.conjugate(da), ops.conjugate(db)

    return gradient


ELEMENTWISE_GRADIENTS: dict[str, GradientFunction] = {
    **{
        op: _unary(_conjugated(function) if op in _CONJUGATED else function)
        for op, function in _UNARY.items()
    },
    **{
        op: _binary(_both_conjugated(function) if op in _CONJUGATED else function)
        for op, function in _BINARY.items()
    },
}
