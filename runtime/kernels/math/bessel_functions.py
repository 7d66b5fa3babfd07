"""Bessel functions of order 0 and 1: modified (I, K), of the first (J) and second kind (Y).

Each function uses one Chebyshev expansion near zero, and for larger arguments another one, of the
factors in its asymptotic form.

TF: tensorflow/core/kernels/cwise_op_bessel.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import SINGLE_AND_DOUBLE
from runtime.kernels.math import bessel_coefficients as table
from runtime.kernels.math.broadcasting import in_float32
from runtime.kernels.math.element_blocks import in_blocks

Function = Callable[[int, np.ndarray], np.ndarray]  # takes (order, x in float64)

I_BOUND, K_BOUND, J_BOUND = 8.0, 2.0, 8.0  # the expansion near zero is used up to this x
PHASE_BOUND = 2.0  # above it, TensorFlow computes J and Y of float32 as amplitude and phase
I_SMALL, I_LARGE = (table.I0_SMALL, table.I1_SMALL), (table.I0_LARGE, table.I1_LARGE)
K_SMALL, K_LARGE = (table.K0_SMALL, table.K1_SMALL), (table.K0_LARGE, table.K1_LARGE)
J_SMALL, Y_SMALL = (table.J0_SMALL, table.J1_SMALL), (table.Y0_SMALL, table.Y1_SMALL)
P, Q = (table.P0, table.P1), (table.Q0, table.Q1)


def _chebyshev(coefficients: tuple[float, ...], s: np.ndarray) -> np.ndarray:
    """Return Σ cₙ Tₙ(s), the Chebyshev series of `coefficients`, by Clenshaw's recurrence."""
    twice = 2 * s
    following, after_that, total = (np.zeros_like(s) for _ in range(3))
    for coefficient in coefficients[:0:-1]:
        np.multiply(twice, following, out=total)
        total -= after_that
        total += coefficient
        following, after_that, total = total, following, after_that
    return coefficients[0] + s * following - after_that


def scaled_i(order: int, x: np.ndarray) -> np.ndarray:
    """Return exp(−|x|) I(x), where I is the modified Bessel function of the first kind."""
    size = np.abs(x)
    near, far = np.minimum(size, I_BOUND), np.maximum(size, I_BOUND)
    result = _chebyshev(I_SMALL[order], near / 4 - 1) * near**order
    if (size > I_BOUND).any():
        large = _chebyshev(I_LARGE[order], 16 / far - 1) / np.sqrt(far)
        result = np.where(size <= I_BOUND, result, large)
    result = np.where(np.isnan(x), np.nan, result)
    return np.copysign(result, x) if order else result


def plain_i(order: int, x: np.ndarray) -> np.ndarray:
    """Return I(x), the modified Bessel function of the first kind."""
    return scaled_i(order, x) * np.exp(np.abs(x))


def scaled_k(order: int, x: np.ndarray) -> np.ndarray:
    """Return exp(x) K(x), where K is the modified Bessel function of the second kind.

    The result is infinity if x ≤ 0.
    """
    near, far = np.clip(x, 0, K_BOUND), np.maximum(x, K_BOUND)
    logarithm = np.log(near / 2) * plain_i(order, near) * (-1 if order == 0 else 1)
    small = _chebyshev(K_SMALL[order], np.square(near) / 2 - 1) / near**order + logarithm
    large = _chebyshev(K_LARGE[order], 4 / far - 1) / np.sqrt(far)
    result = np.where(x <= K_BOUND, small * np.exp(near), large)
    result = np.where(np.isnan(x), np.nan, result)
    return np.where(x <= 0, np.inf, result)


def plain_k(order: int, x: np.ndarray) -> np.ndarray:
    """Return K(x), the modified Bessel function of the second kind; infinity if x ≤ 0."""
    return np.where(x <= 0, np.inf, scaled_k(order, x) * np.exp(-x))


def _amplitudes(order: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (P, Q, phase) of the asymptotic forms of J and Y; P and Q include sqrt(2 / (π x))."""
    far = np.maximum(x, J_BOUND)
    s = 2 * np.square(8 / far) - 1
    factor = np.sqrt(2 / (np.pi * far))
    phase = far - (2 * order + 1) * np.pi / 4
    return factor * _chebyshev(P[order], s), factor * _chebyshev(Q[order], s) / far, phase


def bessel_j(order: int, x: np.ndarray) -> np.ndarray:
    """Return J(x), the Bessel function of the first kind."""
    size = np.abs(x)
    near = np.minimum(size, J_BOUND)
    small = _chebyshev(J_SMALL[order], np.square(near) / 32 - 1) * near**order
    p, q, phase = _amplitudes(order, size)
    result = np.where(size <= J_BOUND, small, p * np.cos(phase) - q * np.sin(phase))
    result = np.where(np.isfinite(x), result, np.nan)
    return np.where(x < 0, -result, result) if order else result


def bessel_y(order: int, x: np.ndarray) -> np.ndarray:
    """Return Y(x), the Bessel function of the second kind; −infinity if x ≤ 0."""
    near = np.clip(x, 0, J_BOUND)
    regular = _chebyshev(Y_SMALL[order], np.square(near) / 32 - 1) / near**order
    small = regular + 2 / np.pi * np.log(near) * bessel_j(order, near)
    p, q, phase = _amplitudes(order, x)
    result = np.where(x <= J_BOUND, small, p * np.sin(phase) + q * np.cos(phase))
    result = np.where(np.isfinite(x), result, np.nan)
    return np.where(x <= 0, -np.inf, result)


def _in_single_precision(function: Function, order: int, x: np.ndarray) -> np.ndarray:
    """Return J or Y for |x| > 2, computed from amplitude and phase, as TensorFlow does in float32.

    The phase is rounded to float32. If x is large, the phase then has few correct digits, and so
    has the result.
    """
    size = np.abs(x)
    far = np.where((size > PHASE_BOUND) & np.isfinite(x), size, PHASE_BOUND)
    j, y = bessel_j(order, far), bessel_y(order, far)
    shift = np.arctan2(y, j) - far
    shift -= 2 * np.pi * np.rint((shift + (2 * order + 1) * np.pi / 4) / (2 * np.pi))
    phase = (shift.astype(np.float32) + far.astype(np.float32)).astype(np.float64)
    result = np.hypot(j, y) * (np.cos(phase) if function is bessel_j else np.sin(phase))
    odd = function is bessel_j and order
    return np.where(x < 0, -result, result) if odd else result


def _kernel(function: Function, order: int) -> Callable[[np.ndarray], np.ndarray]:
    @in_blocks(40)
    def kernel(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            wide = np.asarray(x, np.float64)
            result = function(order, wide)
            if function in (bessel_j, bessel_y) and x.dtype == np.float32:
                far = np.isfinite(wide) & (np.abs(wide) > PHASE_BOUND)
                if function is bessel_y:
                    far &= wide > 0
                if far.any():
                    result = np.where(far, _in_single_precision(function, order, wide), result)
            result = result.astype(x.dtype)
            if function is bessel_y and order and x.dtype == np.float32:
                # At 0, TensorFlow adds opposite infinities in float32: 1 / x and the logarithm.
                result = np.where(x == 0, x.dtype.type(np.nan), result)
            return result

    return kernel


# The key is the name of the op before and after the order: ("BesselI", "e") for BesselI0e.
FUNCTIONS: dict[tuple[str, str], Function] = {
    ("BesselI", ""): plain_i,
    ("BesselI", "e"): scaled_i,
    ("BesselK", ""): plain_k,
    ("BesselK", "e"): scaled_k,
    ("BesselJ", ""): bessel_j,
    ("BesselY", ""): bessel_y,
}

KERNELS: tuple[KernelDef, ...] = tuple(
    KernelDef(f"{before}{order}{after}", make(_kernel(function, order)), {"T": types})
    for (before, after), function in FUNCTIONS.items()
    for order in (0, 1)
    for make, types in ((lambda kernel: kernel, SINGLE_AND_DOUBLE), (in_float32, (DataType.HALF,)))
)
