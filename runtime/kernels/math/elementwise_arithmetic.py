"""Element-wise arithmetic of two or more tensors: sums, products, quotients, powers.

TF: tensorflow/core/kernels/cwise_ops.h
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError, OpError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import (
    COMPLEX_TYPES,
    FLOAT_TYPES,
    HALF_TYPES,
    INTEGRAL_TYPES,
    NUMBER_TYPES,
    SINGLE_AND_DOUBLE,
)
from runtime.framework.shapes import shape_text
from runtime.kernels.math.broadcasting import (
    binary,
    binary_in_place,
    broadcast_shape,
    in_float32,
    incompatible_shapes,
)
from runtime.kernels.math.element_blocks import CLIP_DTYPES, CLIP_FROM


def add_strings(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Add of strings: concatenate `x` and `y` element by element."""
    broadcast_shape(x, y)
    # From two object arrays of rank 0, np.add returns bare bytes.
    return np.asarray(np.add(x, y), object)


def squared_difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """SquaredDifference: return (x − y)², or |x − y|² if the numbers are complex."""
    difference = np.subtract(x, y)
    if difference.dtype.kind == "c":
        return np.multiply(difference, np.conjugate(difference))
    return np.square(difference)


def _division_by_zero() -> OpError:
    return InvalidArgumentError("Integer division by zero")


def _truncate_division_by_zero() -> OpError:
    # TensorFlow's truncating kernels raise an error with another code and message.
    return InternalError(
        "Unexpected error in binary operator (only integer div and mod should have errors)"
    )


def _checked_division(function: Kernel, error: Callable[[], OpError]) -> Kernel:
    """Return an integer division kernel that raises `error` if any divisor is zero."""

    def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not np.all(y) and np.size(x):
            broadcast_shape(x, y)
            raise error()
        try:
            return function(x, y)
        except ValueError:
            raise incompatible_shapes(x, y) from None

    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel


def truncate_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the quotient of integers, rounded toward zero."""
    quotient = np.floor_divide(x, y)
    # If the exact quotient is negative and no integer, its floor is one less than its truncation.
    inexact = np.multiply(quotient, y) != x
    return np.add(quotient, inexact & (quotient < 0), dtype=quotient.dtype)


def floor_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return floor(x / y); unlike numpy's floor_divide it keeps infinities."""
    return np.floor(np.divide(x, y))


def truncated_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x / y rounded toward zero."""
    return np.trunc(np.divide(x, y))


def integer_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x ** y of integers; the result wraps around.

    Raises InvalidArgumentError if any exponent is negative.
    """
    if np.any(np.less(y, 0)):
        broadcast_shape(x, y)
        if not np.size(x):
            return np.multiply(x, y)
        raise InvalidArgumentError("Integers to negative integer powers are not allowed")
    return np.power(x, y)


def _zero_where(condition: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    return np.where(condition, np.zeros((), otherwise.dtype), otherwise)


def div_no_nan(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """DivNoNan: return x / y, and 0 if y is 0."""
    return _zero_where(np.equal(y, 0), np.divide(x, y))


def mul_no_nan(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """MulNoNan: return x · y, and 0 if y is 0, even if x is NaN or infinite."""
    return _zero_where(np.equal(y, 0), np.multiply(x, y))


def xdivy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Xdivy: return x / y, and 0 if x is 0, even if y is 0 or NaN."""
    return _zero_where(np.equal(x, 0), np.divide(x, y))


def xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Xlogy: return x · log(y), and 0 if x is 0, even if the logarithm is NaN or infinite."""
    return _zero_where(np.equal(x, 0), np.multiply(x, np.log(y)))


def xlog1py(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Xlog1py: return x · log(1 + y), and 0 if x is 0, even if the logarithm is NaN or infinite."""
    return _zero_where(np.equal(x, 0), np.multiply(x, np.log1p(y)))


def add_n(*inputs: np.ndarray) -> np.ndarray:
    """AddN: return the sum of tensors of one shape.

    Raises InvalidArgumentError if the shapes differ.
    """
    first = inputs[0]
    for index, each in enumerate(inputs):
        if each.shape != first.shape:
            raise InvalidArgumentError(
                "Inputs to operation AddN must have the same size and shape.  "
                f"Input 0: {shape_text(first.shape)} != input {index}: {shape_text(each.shape)}"
            )
    if len(inputs) == 1:
        return first
    total = np.add(first, inputs[1])
    for each in inputs[2:]:
        total += each  # `total` was made here, so it may be overwritten
    return total


def clip_by_value(
    t: np.ndarray, clip_value_min: np.ndarray, clip_value_max: np.ndarray
) -> np.ndarray:
    """ClipByValue: return max(min(t, clip_value_max), clip_value_min).

    Each bound must be a scalar or have the shape of `t`; otherwise raises InvalidArgumentError. The
    two parts of a complex number are clipped separately.
    """
    if any(np.ndim(each) and each.shape != t.shape for each in (clip_value_min, clip_value_max)):
        raise InvalidArgumentError(
            "clip_value_min and clip_value_max must be either of the same shape as input, or "
            f"a scalar. input shape: {shape_text(t.shape)}"
            f"clip_value_min shape: {shape_text(clip_value_min.shape)}"
            f"clip_value_max shape: {shape_text(clip_value_max.shape)}"
        )
    if np.iscomplexobj(t):
        clipped = np.empty_like(t)
        clipped.real, clipped.imag = (
            np.maximum(np.minimum(part(t), part(clip_value_max)), part(clip_value_min))
            for part in (np.real, np.imag)
        )
        return clipped
    if t.size >= CLIP_FROM and _clip_fits(t.dtype, clip_value_min, clip_value_max):
        return np.asarray(np.clip(t, clip_value_min, clip_value_max))
    return np.maximum(np.minimum(t, clip_value_max), clip_value_min)


def _clip_fits(dtype: np.dtype, low: np.ndarray, high: np.ndarray) -> bool:
    """Return whether np.clip gives every bit of max(min(t, high), low), for t of `dtype`.

    It does not if the bounds are in the wrong order or NaN, or if the sign of a zero may differ.
    """
    if dtype not in CLIP_DTYPES or np.ndim(low) or np.ndim(high) or not low <= high:
        return False
    return dtype.kind != "f" or bool(low and high)


ARITHMETIC: dict[str, Kernel] = {
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "SquaredDifference": squared_difference,
    "Atan2": np.arctan2,
    "NextAfter": np.nextafter,
}
IN_PLACE: dict[str, Kernel | str] = {
    "AddV2": "+=",
    "Sub": "-=",
    "Mul": "*=",
    "Div": "/=",
    "RealDiv": "/=",
    "Maximum": binary_in_place(np.maximum),
    "Minimum": binary_in_place(np.minimum),
}
CLIP_TYPES = tuple(t for t in NUMBER_TYPES if t not in (DataType.UINT32, DataType.UINT64))
# Quotients of floating-point and complex numbers, with the types that TensorFlow registers.
QUOTIENTS: dict[str, tuple[Kernel, tuple[DataType, ...]]] = {
    "Div": (np.divide, FLOAT_TYPES + COMPLEX_TYPES),
    "RealDiv": (np.divide, FLOAT_TYPES + COMPLEX_TYPES),
    "FloorDiv": (floor_quotient, FLOAT_TYPES),
    "TruncateDiv": (truncated_quotient, FLOAT_TYPES),
    "FloorMod": (np.remainder, FLOAT_TYPES),
    "TruncateMod": (np.fmod, SINGLE_AND_DOUBLE),
    "Mod": (np.fmod, SINGLE_AND_DOUBLE),
    "Pow": (np.power, FLOAT_TYPES + COMPLEX_TYPES),
}
INTEGER_QUOTIENTS: dict[str, tuple[Kernel, Callable[[], OpError]]] = {
    "Div": (truncate_divide, _division_by_zero),
    "FloorDiv": (np.floor_divide, _division_by_zero),
    "FloorMod": (np.remainder, _division_by_zero),
    "Mod": (np.fmod, _division_by_zero),
    "TruncateDiv": (truncate_divide, _truncate_division_by_zero),
    "TruncateMod": (np.fmod, _truncate_division_by_zero),
}
GUARDED: dict[str, Kernel] = {
    "DivNoNan": div_no_nan,
    "MulNoNan": mul_no_nan,
    "Xdivy": xdivy,
    "Xlogy": xlogy,
    "Xlog1py": xlog1py,
}
# As in TensorFlow, the logarithm of a half type is rounded before it is multiplied.
HALF_GUARDED: dict[str, Kernel] = {"Xlogy": xlogy, "Xlog1py": xlog1py}

KERNELS: tuple[KernelDef, ...] = (
    *(
        KernelDef(op, binary(function), fresh=True, in_place=IN_PLACE.get(op))
        for op, function in ARITHMETIC.items()
    ),
    KernelDef("Add", binary(np.add), {"T": NUMBER_TYPES}, fresh=True, in_place="+="),
    KernelDef("Add", add_strings, {"T": (DataType.STRING,)}),
    *(
        KernelDef(op, binary(function), {"T": types}, fresh=True, in_place=IN_PLACE.get(op))
        for op, (function, types) in QUOTIENTS.items()
    ),
    *(
        KernelDef(op, _checked_division(function, error), {"T": INTEGRAL_TYPES})
        for op, (function, error) in INTEGER_QUOTIENTS.items()
    ),
    KernelDef("Pow", binary(integer_power), {"T": INTEGRAL_TYPES}),
    *(
        KernelDef(op, binary(function), {"T": SINGLE_AND_DOUBLE + COMPLEX_TYPES})
        for op, function in GUARDED.items()
    ),
    *(
        KernelDef(op, binary(HALF_GUARDED.get(op, in_float32(function))), {"T": HALF_TYPES})
        for op, function in GUARDED.items()
    ),
    KernelDef("AddN", add_n, {"T": NUMBER_TYPES}),
    KernelDef("AccumulateNV2", add_n, {"T": NUMBER_TYPES}),
    KernelDef("ClipByValue", clip_by_value, {"T": CLIP_TYPES}),
)
