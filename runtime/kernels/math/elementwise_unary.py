"""Element-wise functions of one tensor: functions of numpy, or composed of a few of them.

TF: tensorflow/core/kernels/cwise_ops.h
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import (
    COMPLEX_TYPES,
    FLOAT_TYPES,
    HALF_TYPES,
    SINGLE_AND_DOUBLE,
)
from runtime.kernels.math.broadcasting import in_float32, unary_in_place


def rsqrt(x: np.ndarray) -> np.ndarray:
    """Rsqrt: return 1 / sqrt(x)."""
    return np.reciprocal(np.sqrt(x))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Sigmoid: return 1 / (1 + exp(−x))."""
    denominator = np.exp(np.negative(x))
    denominator += 1
    result = np.reciprocal(denominator)
    if np.iscomplexobj(x):  # 1 / ∞ is 0, even if a part of the infinite number is NaN
        result = np.where(np.isnan(result) & np.isfinite(x), result.dtype.type(0), result)
    return result


def round_integer(x: np.ndarray) -> np.ndarray:
    """Round of integers: return `x`.

    TensorFlow 2.21 returns 0, contrary to its documentation.
    """
    return x


def _refuse_numerics(message: str, found: list[str]) -> InvalidArgumentError:
    listed = f"{', '.join(found[:-1])}, and {found[-1]}" if len(found) > 2 else " and ".join(found)
    return InvalidArgumentError(f"{message} : Tensor had {listed} values")


def check_numerics(tensor: np.ndarray, *, message: str) -> np.ndarray:
    """CheckNumerics: return `tensor`; raise InvalidArgumentError if it has a NaN or infinity."""
    if np.isfinite(tensor).all():
        return tensor
    kinds = {"Inf": np.isinf, "NaN": np.isnan}
    raise _refuse_numerics(message, [kind for kind, test in kinds.items() if test(tensor).any()])


def check_numerics_v2(tensor: np.ndarray, *, message: str) -> np.ndarray:
    """CheckNumericsV2: return `tensor`; raise InvalidArgumentError if it has a NaN or infinity.

    The message distinguishes −Inf and +Inf.
    """
    if np.isfinite(tensor).all():
        return tensor
    kinds = {
        "-Inf": np.equal(tensor, -np.inf),
        "+Inf": np.equal(tensor, np.inf),
        "NaN": np.isnan(tensor),
    }
    raise _refuse_numerics(message, [kind for kind, found in kinds.items() if found.any()])


SAME_FOR_ALL_TYPES = {
    "Abs": np.absolute,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Floor": np.floor,
    "IsFinite": np.isfinite,
    "IsInf": np.isinf,
    "IsNan": np.isnan,
    "Log": np.log,
    "Log1p": np.log1p,
    "Neg": np.negative,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Tan": np.tan,
    "Tanh": np.tanh,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
}
# Functions composed of several ufuncs, computed in float32 for half-precision inputs.
COMPOSED = {"Rsqrt": rsqrt, "Sigmoid": sigmoid}
FULL_WIDTH = SINGLE_AND_DOUBLE + COMPLEX_TYPES

KERNELS: tuple[KernelDef, ...] = (
    *(
        KernelDef(op, function, fresh=True, in_place=unary_in_place(function))
        for op, function in SAME_FOR_ALL_TYPES.items()
    ),
    *(KernelDef(op, function, {"T": FULL_WIDTH}, fresh=True) for op, function in COMPOSED.items()),
    *(KernelDef(op, in_float32(function), {"T": HALF_TYPES}) for op, function in COMPOSED.items()),
    KernelDef("Reciprocal", np.reciprocal, {"T": FLOAT_TYPES + COMPLEX_TYPES}),
    KernelDef("Inv", np.reciprocal, {"T": FLOAT_TYPES + COMPLEX_TYPES}),
    KernelDef("Rint", np.rint, {"T": SINGLE_AND_DOUBLE}),
    KernelDef("Round", np.rint, {"T": FLOAT_TYPES}),
    KernelDef("Round", round_integer, {"T": (DataType.INT32, DataType.INT64)}),
    KernelDef("CheckNumerics", check_numerics),
    KernelDef("CheckNumericsV2", check_numerics_v2),
)
