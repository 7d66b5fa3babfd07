"""Elementwise ops of one and two inputs."""

from __future__ import annotations

import numpy as np

from runtime.client import ops
from runtime.framework.dtypes import DataType
from tests.gradients.gradient_case import GradientCase, case

V = [0.5, 0.25, 0.75]
V2 = [0.25, 0.5, 2.0]
SIGNED = [-1.5, 0.5, 7.0, -0.25]
M = [[1.0, 2.0, 0.5], [3.0, 5.0, 0.25]]
C = np.array([0.5 + 0.25j, -0.75 + 0.5j, 1.5 - 2j], np.complex64)
C2 = np.array([1 - 0.5j, 0.25 + 1j, -0.5 - 0.75j], np.complex64)

_UNARY = (
    "Neg Reciprocal Inv Square Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh "
    "Tanh Asinh Atanh Sigmoid Erf Erfc Lgamma Digamma Erfinv Ndtri BesselI0 BesselI0e BesselI1 "
    "BesselI1e BesselK0 BesselK0e BesselK1 BesselK1e BesselJ0 BesselJ1 BesselY0 BesselY1 Dawsn "
    "Expint FresnelCos FresnelSin Spence Softplus Softsign Identity ZerosLike"
)
_OF_ANY_SIGN = "Abs Relu Relu6 Elu Selu Sign Floor LeakyRelu L2Loss"
_COMPLEX = (
    "Neg Reciprocal Square Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh "
    "Tanh Asinh Acosh Atanh Sigmoid Real Imag ComplexAbs Angle Conj Sign"
)
_BINARY = (
    "Add AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan Xdivy Xlogy Xlog1py Pow Maximum Minimum "
    "SquaredDifference FloorMod NextAfter Atan2 Igamma Igammac Polygamma Zeta"
)
_COMPLEX_BINARY = "AddV2 Sub Mul RealDiv Div DivNoNan Pow SquaredDifference Xdivy Xlogy"
_POSITIVE_FIRST = {"Zeta": 1.5, "Polygamma": 1.0}
_TWICE = (
    "Tanh Sigmoid Reciprocal Square Sqrt Rsqrt Exp Log Sin Cos Relu Elu Selu Softplus LeakyRelu "
    "Relu6 Tan Atan Erf"
)
_BROADCAST = "NextAfter AddV2 Mul RealDiv Pow Maximum Atan2 Igamma FloorMod Xlogy Sub"
_INPUT_GRADS = "ReluGrad Relu6Grad EluGrad SeluGrad SoftplusGrad LeakyReluGrad"
_GRADS = "TanhGrad SigmoidGrad ReciprocalGrad InvGrad SqrtGrad RsqrtGrad"


CASES: dict[str, GradientCase] = {
    **{op: case(getattr(ops, op), V) for op in _UNARY.split()},
    "Acosh": case(ops.Acosh, [1.5, 2.0, 3.0]),
    **{op: case(getattr(ops, op), SIGNED) for op in _OF_ANY_SIGN.split()},
    **{f"{op}_complex": case(getattr(ops, op), C, tolerance=3e-5) for op in _COMPLEX.split()},
    **{
        op: case(getattr(ops, op), np.array(V, np.float32) + _POSITIVE_FIRST.get(op, 0), V2)
        for op in _BINARY.split()
    },
    **{
        f"{op}_broadcast": case(getattr(ops, op), M, [[0.5], [2.0]])
        for op in _BROADCAST.split()
    },
    "scalar_and_matrix": case(lambda a, b: b * a + a / b, 2.5, M),
    **{
        f"{op}_complex": case(getattr(ops, op), C, C2, tolerance=3e-5)
        for op in _COMPLEX_BINARY.split()
    },
    "Maximum_of_equals": case(ops.Maximum, [1.0, 2.0], [1.0, 3.0]),
    "Minimum_of_equals": case(ops.Minimum, [1.0, 2.0], [1.0, 3.0]),
    "Pow_of_negative": case(ops.Pow, [-2.0, -1.5, 0.0], [2.0, 3.0, 2.0]),
    "Xlogy_of_zero": case(ops.Xlogy, [0.0, 1.0], [0.0, 2.0]),
    "DivNoNan_by_zero": case(ops.DivNoNan, [1.0, 1.0], [0.0, 2.0]),
    "Betainc": case(ops.Betainc, [1.5, 2.0], [2.5, 0.5], [0.25, 0.75]),
    "Complex": case(ops.Complex, V, V2),
    "Complex_broadcast": case(ops.Complex, M, [0.5, 1.0, 1.5]),
    "Cast_wider": case(lambda a: ops.Cast(a, DstT=DataType.DOUBLE), V),
    "Cast_to_integers": case(lambda a: [ops.Cast(a, DstT=DataType.INT32), a * 2.0], V),
    "CheckNumerics": case(lambda a: ops.CheckNumerics(a, "here"), V),
    "CheckNumericsV2": case(lambda a: ops.CheckNumericsV2(a, "here"), V),
    "AccumulateNV2": case(lambda a, b: ops.AccumulateNV2([a, b, a], [3]), V, V2),
    "Cross": case(ops.Cross, M, [[0.5, -1.0, 2.0], [2.0, 0.25, 1.5]]),
    "EnsureShape": case(lambda a: ops.EnsureShape(a, [3]), V),
    "StopGradient": case(lambda a: ops.StopGradient(a) * a, V),
    "IdentityN": case(lambda a, b: list(ops.IdentityN([a, b])), V, M),
    "AddN": case(lambda a, b: ops.AddN([a, b, a]), V, V2),
    "Select": case(lambda a, b: ops.Select(a > b, a, b), V, V2),
    "Select_rows": case(lambda a, b: ops.Select([True, False], a, b), M, M),
    "SelectV2": case(lambda a, b: ops.SelectV2([[True], [False]], a, b), M, [0.5, 1.0, 1.5]),
    "ClipByValue": case(ops.ClipByValue, SIGNED, -0.5, 1.0),
    "ClipByValue_by_element": case(ops.ClipByValue, SIGNED, [-1.0] * 4, [0.25, 1.0, 5.0, 0.5]),
    "BesselI0e_at_zero": case(ops.BesselI0e, [0.0, -1.0]),
    "BesselI1e_at_zero": case(ops.BesselI1e, [0.0, -1.0]),
    "BesselI1_at_zero": case(ops.BesselI1, [0.0, -1.0]),
    "BesselJ1_at_zero": case(ops.BesselJ1, [0.0, -1.0]),
    "Spence_at_one": case(ops.Spence, [1.0, 0.5]),
    "half_precision": case(lambda a: ops.Tanh(a) * a, np.array(V, np.float16), tolerance=2e-3),
    "double_precision": case(lambda a: ops.Tanh(a) * a, np.array(V)),
    **{f"{op}_twice": case(getattr(ops, op), SIGNED if "elu" in op.lower() else V, order=2)
       for op in _TWICE.split()},
    **{f"{op}_twice": case(getattr(ops, op), V, V2, order=2) for op in ("Mul", "RealDiv", "Pow")},
    **{op: case(getattr(ops, op), V, V2) for op in _GRADS.split()},
    **{f"{op}_complex": case(getattr(ops, op), C, C2) for op in ("TanhGrad", "SigmoidGrad")},
    **{op: case(getattr(ops, op), V, SIGNED[:3])
       for op in _INPUT_GRADS.split()},
    "broadcast_of_unknown_use": case(lambda a, b: [a * b, ops.Sum(b, [0])], M, V),
}  # fmt: skip
