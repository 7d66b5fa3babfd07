"""The rounding modes of quantization.

TF: Eigen's round, tensorflow/core/kernels/cwise_ops.h (scalar_round_half_to_even_op, round_up)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def round_half_away(value: np.ndarray) -> np.ndarray:
    """Round to the nearest integer; a half is rounded away from zero."""
    whole = np.trunc(value)
    return np.asarray(whole + np.copysign(np.abs(value - whole) >= 0.5, value), value.dtype)


def round_half_up(value: np.ndarray) -> np.ndarray:
    """Round to the nearest integer; a half is rounded up."""
    return np.floor(value + value.dtype.type(0.5))


def round_half_even(value: np.ndarray) -> np.ndarray:
    """Round to the nearest integer; a half is rounded to the even one."""
    return np.rint(value)


ROUND_MODES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "HALF_AWAY_FROM_ZERO": round_half_away,
    "HALF_TO_EVEN": round_half_even,
    "HALF_UP": round_half_up,
}
