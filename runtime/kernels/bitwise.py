"""Bit patterns of integers.

TF: tensorflow/core/kernels/{cwise_ops.h,population_count_op.cc}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.kernels.broadcasting import binary


def _amount(x: Any, y: Any) -> Any:
    """A shift amount held within the type: 0 to its bits − 1."""
    return np.clip(y, 0, x.dtype.itemsize * 8 - 1)


def left_shift(x: Any, y: Any) -> Any:
    """x · 2**y without the bits that fall out."""
    return np.left_shift(x, _amount(x, y))


def right_shift(x: Any, y: Any) -> Any:
    """x / 2**y rounded down."""
    return np.right_shift(x, _amount(x, y))


BINARY: dict[str, Kernel] = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "LeftShift": left_shift,
    "RightShift": right_shift,
}


def population_count(x: Any) -> Any:
    """How many bits of each number's two's complement are 1."""
    array = np.asarray(x)
    # numpy counts the bits of the absolute value.
    return np.bitwise_count(array.view(f"u{array.dtype.itemsize}"))


KERNELS: tuple[KernelDef, ...] = (
    *(KernelDef(op, binary(function)) for op, function in BINARY.items()),
    KernelDef("Invert", np.invert),
    KernelDef("PopulationCount", population_count),
)
