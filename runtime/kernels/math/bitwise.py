"""Bitwise logic, shifts and bit counts of integers.

TF: tensorflow/core/kernels/{cwise_ops.h,population_count_op.cc}
"""

from __future__ import annotations

import numpy as np

from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.kernels.math.broadcasting import binary


def _clipped_shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the shift amounts `y`, clipped to 0 … (number of bits in the dtype of `x`) − 1."""
    return np.clip(y, 0, x.dtype.itemsize * 8 - 1)


def left_shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """LeftShift: return x · 2**y; bits beyond the width of the dtype are lost."""
    return np.left_shift(x, _clipped_shift(x, y))


def right_shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """RightShift: return x / 2**y, rounded down."""
    return np.right_shift(x, _clipped_shift(x, y))


BINARY: dict[str, Kernel] = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "LeftShift": left_shift,
    "RightShift": right_shift,
}


def population_count(x: np.ndarray) -> np.ndarray:
    """PopulationCount: return how many bits are 1 in the two's complement of each element."""
    array = np.asarray(x)
    # `bitwise_count` of a signed array would count the bits of the absolute value.
    return np.bitwise_count(array.view(f"u{array.dtype.itemsize}"))


KERNELS: tuple[KernelDef, ...] = (
    *(KernelDef(op, binary(function)) for op, function in BINARY.items()),
    KernelDef("Invert", np.invert),
    KernelDef("PopulationCount", population_count),
)
