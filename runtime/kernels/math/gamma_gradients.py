"""Derivatives by the shape parameter a: of the incomplete gamma function and of gamma samples.

Both follow from the ratio r = −(∂P/∂a) / (∂P/∂x), which is the derivative of a sample x by a. P and
Q are the lower and upper incomplete gamma functions. For x < a + 1, r is computed from the power
series of P, differentiated term by term. For other x it is computed from the continued fraction of
Q, differentiated in each iteration of Lentz's method.

TF: tensorflow/core/kernels/cwise_op_random_grad.cc, cwise_op_igammas.cc
"""

from __future__ import annotations

import numpy as np

from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import SINGLE_AND_DOUBLE
from runtime.kernels.math.broadcasting import binary
from runtime.kernels.math.gamma_functions import EPSILON, MAX_TERMS, TINY, log_gamma, psi


def _series_ratio(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return r from the power series P = density · Σ x·xⁿ / a(a+1)…(a+n).

    The logarithmic derivative by a of (density times term n) is log x − ψ(a + n + 1).
    """
    term = x / a
    slope = np.log(x) - psi(a + 1)
    total = term * slope
    for n in range(1, MAX_TERMS):
        term = term * x / (a + n)
        slope = slope - 1 / (a + n)
        total = total + term * slope
        if (np.abs(term * slope) <= np.abs(total) * EPSILON).all():
            break
    return -total


def _fraction_ratio(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return r from Q = density · x · F, where F is the continued fraction.

    The names db, dc, dd, dn and d_inner are derivatives by a; d alone is Lentz's D.
    """
    b, db = x + 1 - a, -1.0
    b = np.where(b == 0, TINY, b)
    c, dc = np.full_like(x, 1 / TINY), np.zeros_like(x)
    d = 1 / b
    dd = -db * d * d
    fraction, change_of_log = d, dd / d
    for n in range(1, MAX_TERMS):
        numerator, dn = -n * (n - a), float(n)
        b = b + 2
        inner, d_inner = numerator * d + b, dn * d + numerator * dd + db
        c, dc = b + numerator / c, db + dn / c - numerator * dc / (c * c)
        d = 1 / np.where(np.abs(inner) < TINY, TINY, inner)
        dd = -d_inner * d * d
        c = np.where(np.abs(c) < TINY, TINY, c)
        change = c * d
        fraction = fraction * change
        step = dc / c + dd / d
        change_of_log = change_of_log + step
        if (np.abs(change - 1) <= 4 * EPSILON).all() and (np.abs(step) <= 4 * EPSILON).all():
            break
    return x * fraction * (np.log(x) - psi(a) + change_of_log)


def _sample_ratio(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return r for all elements, from the power series or the continued fraction.

    It is 0 if P is constant, and NaN if `a` or `x` is outside the domain of the distribution.
    """
    result = np.full(a.shape, np.nan)
    result[_is_constant(a, x)] = 0
    proper = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    below = proper & (x < a + 1)
    with np.errstate(all="ignore"):
        for chosen, ratio in ((below, _series_ratio), (proper & ~below, _fraction_ratio)):
            if chosen.any():
                result[chosen] = ratio(a[chosen], x[chosen])
    return result


def _is_constant(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return where P is constant: if x is 0, or if both are positive and one is infinite."""
    return (x == 0) | ((a > 0) & (x > 0) & (np.isinf(a) | np.isinf(x)))


def _log_density(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return log(xᵃ e⁻ˣ / Γ(a)), the logarithm of x times the density."""
    return np.asarray(a * np.log(x) - x - log_gamma(a))


def _wide(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wide_a, wide_x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    return wide_a, wide_x


def random_gamma_grad(alpha: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """RandomGammaGrad: return the derivative of a gamma sample by its shape parameter `alpha`."""
    wide_alpha, wide_sample = _wide(alpha, sample)
    with np.errstate(all="ignore"):
        result = _sample_ratio(wide_alpha, wide_sample)
        # TensorFlow multiplies and divides by a density; if this underflows, the result is 0.
        vanishes = _log_density(wide_alpha, wide_sample) < -np.log(np.finfo(alpha.dtype).max)
        return np.where(vanishes & (wide_alpha > 0), 0, result).astype(alpha.dtype)


def igamma_grad_a(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """IgammaGradA: return the derivative of P(a, x) by `a`."""
    wide_a, wide_x = _wide(a, x)
    with np.errstate(all="ignore"):
        density = np.exp(_log_density(wide_a, wide_x)) / wide_x
        result = -_sample_ratio(wide_a, wide_x) * density
    return np.where(_is_constant(wide_a, wide_x), 0, result).astype(a.dtype)


TYPES = {"T": SINGLE_AND_DOUBLE}

KERNELS = (
    KernelDef("IgammaGradA", binary(igamma_grad_a), TYPES),
    KernelDef("RandomGammaGrad", binary(random_gamma_grad), TYPES),
)
