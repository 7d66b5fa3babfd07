"""The exponential integral, Spence's function, Dawson's and Fresnel's integrals.

Most series are from Abramowitz & Stegun, "Handbook of Mathematical Functions", chapters 5, 7 and
27. Dawson's integral follows G. B. Rybicki, "Dawson's Integral and the Sampling Theorem" (1989).

TF: tensorflow/core/kernels/cwise_op_special.cc (Dawsn, Expint, FresnelCos, FresnelSin,
Spence)
"""

from __future__ import annotations

import numpy as np

from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import SINGLE_AND_DOUBLE

ASYMPTOTIC_FROM = 40.0  # above this, the asymptotic series of Ei is accurate to float64
SERIES_TERMS = 160  # these terms suffice for arguments up to ASYMPTOTIC_FROM
ASYMPTOTIC_TERMS = 40
DILOGARITHM_TERMS = 56  # the sum Σ zⁿ / n² needs so many terms for |z| ≤ 1/2

DAWSON_STEP = 0.2  # distance d of the samples; the error is exp(-(π / 2d)²)
DAWSON_ASYMPTOTIC_FROM = 8.0
DAWSON_SAMPLES = np.arange(1, 75, 2) * DAWSON_STEP
FRESNEL_SERIES_UP_TO = 1.5
FRESNEL_TERMS = 20
# The distance d of the samples in the trapezoidal rule. The denominator causes an error of
# exp(-2π / (√2 d)), the exponential function an error of exp(-2π / (x d)²).
FRESNEL_STEP = 0.1
FRESNEL_STEP_TIMES_X = 0.4
FRESNEL_SAMPLES = 36


def exponential_integral(x: np.ndarray) -> np.ndarray:
    """Return the exponential integral Ei(x) (Abramowitz & Stegun 5.1.10, 5.1.51).

    The result is −infinity if x is 0, and NaN if x is negative or not finite.
    """
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
    # TensorFlow returns NaN at infinity.
    return np.where((x < 0) | ~np.isfinite(x), np.nan, result)


def dilogarithm(x: np.ndarray) -> np.ndarray:
    """Return ∫ log t / (1 − t) dt from 1 to x (Abramowitz & Stegun 27.7.2).

    Arguments are reduced to 1/2 … 3/2 by reflection (27.7.3) and inversion (27.7.4). The result is
    NaN if x is negative or not finite.
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


def dawson(x: np.ndarray) -> np.ndarray:
    """Return exp(−x²) times the integral of exp(t²) from 0 to x."""
    near = np.clip(x, -DAWSON_ASYMPTOTIC_FROM, DAWSON_ASYMPTOTIC_FROM)
    total = np.zeros_like(x)
    for number, sample in enumerate(DAWSON_SAMPLES.tolist()):
        weight = 2 / np.sqrt(np.pi) * np.exp(-sample * sample) / (2 * number + 1)
        total += weight * np.sinh(2 * near * sample)
    inner = np.exp(-near * near) * total
    far = np.where(np.abs(x) > DAWSON_ASYMPTOTIC_FROM, x, np.inf)
    term = 0.5 / far
    outer = term.copy()
    for n in range(1, ASYMPTOTIC_TERMS // 2):
        term = term * (2 * n - 1) / (2 * far * far)
        outer += term
    return np.where(np.isnan(x) | (np.abs(x) <= DAWSON_ASYMPTOTIC_FROM), inner, outer)


def _fresnel_series(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return C(x) and S(x) for |x| ≤ FRESNEL_SERIES_UP_TO, from power series.

    Source: Abramowitz & Stegun 7.3.11, 7.3.13.
    """
    angle = np.pi / 2 * x * x
    power, cosine, sine = x.copy(), np.zeros_like(x), np.zeros_like(x)
    for n in range(2 * FRESNEL_TERMS):
        sign = -1 if n % 4 >= 2 else 1
        (sine if n % 2 else cosine)[...] += sign * power / (2 * n + 1)
        power = power * angle / (n + 1)
    return cosine, sine


def _fresnel_auxiliary(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the auxiliary functions f(x) and g(x) (Abramowitz & Stegun 7.3.5, 7.3.6).

    They are integrals, computed by the trapezoidal rule; x must be at least FRESNEL_SERIES_UP_TO.
    """
    step = np.minimum(FRESNEL_STEP, FRESNEL_STEP_TIMES_X / x)
    decay = -np.pi / 2 * x * x
    f, g = np.full_like(x, 0.5), np.zeros_like(x)
    for n in range(1, FRESNEL_SAMPLES):
        square = np.square(n * step)
        sample = np.exp(decay * square) / (1 + square * square)
        f += sample
        g += square * sample
    scale = step * np.sqrt(2) / np.pi
    return f * scale, g * scale


def _fresnel(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return C(x) and S(x), the Fresnel integrals, which are odd functions."""
    size = np.abs(x)
    cosine, sine = _fresnel_series(np.minimum(size, FRESNEL_SERIES_UP_TO))
    # Above 1e12 both integrals equal 1/2 in float64, and the angle has no correct digit.
    large = np.clip(size, FRESNEL_SERIES_UP_TO, 1e12)
    f, g = _fresnel_auxiliary(large)
    # Whole turns are removed before the product with π makes the angle inexact.
    angle = np.pi / 2 * np.fmod(large * large, 4)
    far = size > FRESNEL_SERIES_UP_TO
    cosine = np.where(far, 0.5 + f * np.sin(angle) - g * np.cos(angle), cosine)
    sine = np.where(far, 0.5 - f * np.cos(angle) - g * np.sin(angle), sine)
    return np.copysign(cosine, x), np.copysign(sine, x)


def fresnel_cosine(x: np.ndarray) -> np.ndarray:
    """Return the integral of cos(π t² / 2) from 0 to x."""
    return np.where(np.isnan(x), np.nan, _fresnel(x)[0])


def fresnel_sine(x: np.ndarray) -> np.ndarray:
    """Return the integral of sin(π t² / 2) from 0 to x."""
    return np.where(np.isnan(x), np.nan, _fresnel(x)[1])


def _kernel(function: Kernel) -> Kernel:
    def kernel(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(np.asarray(x, np.float64)).astype(x.dtype)

    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("Dawsn", _kernel(dawson), {"T": SINGLE_AND_DOUBLE}),
    KernelDef("Expint", _kernel(exponential_integral), {"T": SINGLE_AND_DOUBLE}),
    KernelDef("FresnelCos", _kernel(fresnel_cosine), {"T": SINGLE_AND_DOUBLE}),
    KernelDef("FresnelSin", _kernel(fresnel_sine), {"T": SINGLE_AND_DOUBLE}),
    KernelDef("Spence", _kernel(dilogarithm), {"T": SINGLE_AND_DOUBLE}),
)
