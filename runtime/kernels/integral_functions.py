"""The exponential integral and Spence's function.

Series from Abramowitz and Stegun, "Handbook of Mathematical Functions", chapters 5 and 27.

TF: tensorflow/core/kernels/cwise_op_special.cc (Expint, Spence)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.kernels.register_types import SINGLE_AND_DOUBLE

ASYMPTOTIC_FROM = 40.0  # beyond it the asymptotic series of Ei is exact to the last digit
SERIES_TERMS = 160  # enough for arguments up to ASYMPTOTIC_FROM
ASYMPTOTIC_TERMS = 40
DILOGARITHM_TERMS = 56  # of Σ zⁿ / n² for |z| ≤ 1/2


def exponential_integral(x: np.ndarray) -> np.ndarray:
    """Ei(x) for x > 0 (5.1.10, 5.1.51), −infinity at 0, NaN below."""
    near = np.clip(x, 0, ASYMPTOTIC_FROM)
    term, total = np.ones_like(x), np.zeros_like(x)
    for n in range(1, SERIES_TERMS):
        term = term * near / n
        total = total + term / n
    small = np.euler_gamma + np.log(near) + total
    far = np.maximum(x, ASYMPTOTIC_FROM)
    term, total = np.ones_like(x), np.ones_like(x)
    for n in range(1, ASYMPTOTIC_TERMS):
        term = term * n / far
        total = total + term
    large = np.exp(far) / far * total
    result = np.where(x < ASYMPTOTIC_FROM, small, large)
    # TensorFlow's own answer at infinity is NaN.
    return np.where((x < 0) | ~np.isfinite(x), np.nan, result)


def dilogarithm(x: np.ndarray) -> np.ndarray:
    """∫ log t / (1 − t) dt from 1 to x (27.7.2), NaN below 0.

    Arguments are brought to 1/2 … 3/2 by reflection (27.7.3) and inversion (27.7.4).
    """
    inverted = x > 1.5
    y = np.where(inverted, 1 / x, x)
    reflected = y < 0.5
    z = 1 - np.where(reflected, 1 - y, y)
    total = np.zeros_like(x)
    for n in range(DILOGARITHM_TERMS, 0, -1):
        total = (total + 1 / (n * n)) * z
    product = np.where(y > 0, np.log(y) * np.log1p(-y), 0)
    total = np.where(reflected, np.pi**2 / 6 - product - total, total)
    result = np.where(inverted, -0.5 * np.square(np.log(x)) - total, total)
    return np.where((x < 0) | ~np.isfinite(x), np.nan, result)


def _kernel(function: Kernel) -> Kernel:
    def kernel(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(np.asarray(x, np.float64)).astype(x.dtype)

    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("Expint", _kernel(exponential_integral), {"T": SINGLE_AND_DOUBLE}),
    KernelDef("Spence", _kernel(dilogarithm), {"T": SINGLE_AND_DOUBLE}),
)
