"""Functions related to gamma: lgamma, digamma, zeta, polygamma, incomplete gamma and beta.

They are computed from power series, continued fractions, and asymptotic series. For an asymptotic
series, small arguments are first shifted to larger ones. Numbers of formulas refer to Abramowitz &
Stegun, "Handbook of Mathematical Functions", chapters 6, 23 and 26.

TF: tensorflow/core/kernels/cwise_op_{lgamma,digamma,zeta,igammas,betainc}.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import SINGLE_AND_DOUBLE
from runtime.framework.shapes import shape_text
from runtime.kernels.math.broadcasting import binary, in_float32
from runtime.kernels.math.element_blocks import in_blocks

SHIFT = 10  # smaller arguments are raised by this, which makes asymptotic series accurate
MAX_TERMS = 2000  # limit for a power series or continued fraction
EPSILON = 2.0**-53
TINY = 1e-300  # stands in for a zero denominator in Lentz's method
# The Bernoulli numbers of even index: B₂, B₄, …
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
HALF_LOG_TWO_PI = 0.9189385332046727
EULER = 0.5772156649015329
NEAR = 0.0625  # closer to 1 and 2, the zeros of lgamma, a separate series is used
# The values ζ(2) − 1, ζ(3) − 1, … of the Riemann zeta function
ZETA_LESS_ONE = (
    0.6449340668482264, 0.2020569031595943, 0.08232323371113819, 0.03692775514336993,
    0.01734306198444914, 0.008349277381922827, 0.004077356197944339, 0.002008392826082214,
    0.0009945751278180853, 0.0004941886041194646, 0.0002460865533080483,
)  # fmt: skip


def _wide(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float64)


def log_gamma(x: np.ndarray) -> np.ndarray:
    """Return log |Γ(x)| in float64.

    Uses Stirling's series (Abramowitz & Stegun 6.1.40) after a shift. If x < 0.5, uses reflection
    (6.1.17) as well.
    """
    with np.errstate(all="ignore"):
        positive = np.where(x < 0.5, 1 - x, x)
        small = positive < SHIFT
        z = np.where(small, positive + SHIFT, positive)
        square, series = np.reciprocal(np.square(z)), np.zeros_like(z)
        for n, b in reversed([*enumerate(BERNOULLI, 1)]):
            series = series * square + b / (2 * n * (2 * n - 1))
        series /= z
        result = (z - 0.5) * np.log(z) - z + HALF_LOG_TWO_PI + series
        product = np.array(positive)
        for step in range(1, SHIFT):
            product *= positive + step
        result -= np.log(np.where(small, product, 1.0))
        if (x < 0.5).any():
            # log(π / |sin πx|) − log Γ(1 − x); x − ⌊x⌋ keeps the sine precise if x is large.
            reflected = np.log(np.pi / np.abs(np.sin(np.pi * (x - np.floor(x))))) - result
            result = np.where(x < 0.5, reflected, result)
    result = np.asarray(result)
    near_one, near_two = np.abs(x - 1) < NEAR, np.abs(x - 2) < NEAR
    if near_one.any():
        rest = x[near_one] - 1
        result[near_one] = _log_gamma_two_plus(rest) - np.log1p(rest)
    if near_two.any():
        result[near_two] = _log_gamma_two_plus(x[near_two] - 2)
    result = np.where((x <= 0) & (x == np.floor(x)), np.inf, result)
    return np.where(np.isinf(x), np.inf, result)


def _log_gamma_two_plus(x: np.ndarray) -> np.ndarray:
    """Return log Γ(2 + x) for small x, to full precision (Abramowitz & Stegun 6.1.33).

    The caller obtains log Γ(1 + x) by subtracting log(1 + x).
    """
    series = np.zeros_like(x)
    for n, zeta_less_one in reversed([*enumerate(ZETA_LESS_ONE, 2)]):
        series = series * x + (-1) ** n * zeta_less_one / n
    return (series * x + (1 - EULER)) * x


def psi(x: np.ndarray) -> np.ndarray:
    """Return Γ′(x) / Γ(x) in float64.

    Uses the asymptotic series (Abramowitz & Stegun 6.3.18) after a shift. If x < 0.5, uses
    reflection (6.3.7) as well.
    """
    with np.errstate(all="ignore"):
        positive = np.where(x < 0.5, 1 - x, x)
        small = positive < SHIFT
        z = np.where(small, positive + SHIFT, positive)
        square, series = np.reciprocal(np.square(z)), np.zeros_like(z)
        for n, b in reversed([*enumerate(BERNOULLI, 1)]):
            series = (series + b / (2 * n)) * square
        result = np.log(z) - 0.5 / z - series
        shifted = sum(1 / (positive + step) for step in range(SHIFT))
        result -= np.where(small, shifted, 0.0)
        if (x < 0.5).any():
            reflected = result - np.pi / np.tan(np.pi * (x - np.floor(x)))
            result = np.where(x < 0.5, reflected, result)
    return np.where((x <= 0) & (x == np.floor(x)), np.nan, result)


def hurwitz_zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return Σ (q + k)^−x over k ≥ 0, the Hurwitz zeta function, in float64.

    Adds SHIFT terms, and the rest by the Euler–Maclaurin formula (Abramowitz & Stegun 23.1.30).
    """
    with np.errstate(all="ignore"):
        total = sum(np.power(q + k, -x) for k in range(SHIFT))
        z = q + SHIFT
        total = total + np.power(z, 1 - x) / (x - 1) + 0.5 * np.power(z, -x)
        factor, power = x * np.power(z, -x - 1), 2.0
        for n, b in enumerate(BERNOULLI, 1):
            total = total + b * factor / power
            factor = factor * (x + 2 * n - 1) * (x + 2 * n) / np.square(z)
            power *= (2 * n + 1) * (2 * n + 2)
        pole = (q <= 0) & (q == np.floor(q))
        # At a pole, even powers tend to infinity from both sides; other powers have no limit.
        total = np.where(pole, np.where(x % 2 == 0, np.inf, np.nan), total)
        total = np.where((q <= 0) & (q != np.floor(q)) & (x != np.floor(x)), np.nan, total)
    total = np.where(x == 1, np.inf, total)
    return np.where(x < 1, np.nan, total)


@in_blocks(300)
def zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Zeta: return the Hurwitz zeta function of `x` and `q`."""
    return hurwitz_zeta(_wide(x), _wide(q)).astype(x.dtype)


def polygamma(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Polygamma: return the derivative of order `a` of digamma; NaN if a is not an integer ≥ 0."""
    n, wide = np.broadcast_arrays(_wide(a), _wide(x))
    sign = np.where(n % 2 == 0, -1.0, 1.0)
    with np.errstate(all="ignore"):
        derivative = sign * np.exp(log_gamma(n + 1)) * hurwitz_zeta(n + 1, wide)
    result = np.where(n == 0, psi(wide), derivative)
    return np.where((n < 0) | (n != np.floor(n)), np.nan, result).astype(x.dtype)


def _lower_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return P(a, x), the lower regularised incomplete gamma function, for x < a + 1.

    The value comes from the power series (Abramowitz & Stegun 6.5.29).
    """
    term = total = 1 / a
    for n in range(1, MAX_TERMS):
        term = term * x / (a + n)
        total = total + term
        if (np.abs(term) <= np.abs(total) * EPSILON).all():
            break
    return total * np.exp(a * np.log(x) - x - log_gamma(a))


def _upper_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return Q(a, x), the upper regularised incomplete gamma function, for x ≥ a + 1.

    The value comes from the continued fraction (Abramowitz & Stegun 6.5.31), by Lentz's method.
    """
    b = x + 1 - a
    c = np.full_like(x, 1 / TINY)
    d = 1 / np.where(b == 0, TINY, b)
    fraction = d
    for n in range(1, MAX_TERMS):
        numerator = -n * (n - a)
        b = b + 2
        d = numerator * d + b
        c = b + numerator / c
        d = 1 / np.where(np.abs(d) < TINY, TINY, d)
        c = np.where(np.abs(c) < TINY, TINY, c)
        change = c * d
        fraction = fraction * change
        if (np.abs(change - 1) <= 4 * EPSILON).all():
            break
    return fraction * np.exp(a * np.log(x) - x - log_gamma(a))


def _incomplete_gamma(a: np.ndarray, x: np.ndarray, upper: bool) -> np.ndarray:
    """Return Q(a, x) if `upper`, otherwise P(a, x), in float64.

    These are the upper and lower regularised incomplete gamma functions; Q = 1 − P.
    """
    a, x = np.broadcast_arrays(_wide(a), _wide(x))
    result = np.full(a.shape, np.nan)
    proper = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    below = proper & (x < a + 1)
    above = proper & ~below
    with np.errstate(all="ignore"):
        if below.any():
            lower = _lower_series(a[below], x[below])
            result[below] = 1 - lower if upper else lower
        if above.any():
            fraction = _upper_fraction(a[above], x[above])
            result[above] = fraction if upper else 1 - fraction
    result[(x == 0) & (a > 0)] = 1.0 if upper else 0.0
    result[(a > 0) & np.isfinite(a) & (x == np.inf)] = 0.0 if upper else 1.0
    result[(a == np.inf) & (x >= 0) & np.isfinite(x)] = 1.0 if upper else 0.0
    result[(a == np.inf) & (x == np.inf)] = 0.0  # TensorFlow gives 0 for both P and Q
    if not upper:
        result[x == 0] = 0.0  # for every a, even NaN
    return result


@in_blocks(200)
def igamma(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Igamma: return the lower regularised incomplete gamma function P(a, x)."""
    return _incomplete_gamma(a, x, upper=False).astype(a.dtype)


@in_blocks(200)
def igammac(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Igammac: return the upper regularised incomplete gamma function Q(a, x)."""
    return _incomplete_gamma(a, x, upper=True).astype(a.dtype)


def _beta_fraction(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the continued fraction of I_x(a, b) (Abramowitz & Stegun 26.5.8).

    The fraction is evaluated by Lentz's method.
    """
    c = np.ones_like(x)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < TINY, TINY, d)
    fraction = d
    for m in range(1, MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 + numerator * d
            c = 1 + numerator / c
            d = 1 / np.where(np.abs(d) < TINY, TINY, d)
            c = np.where(np.abs(c) < TINY, TINY, c)
            change = c * d
            fraction = fraction * change
        if (np.abs(change - 1) <= 4 * EPSILON).all():
            break
    return fraction


@in_blocks(500)
def betainc(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Betainc: return the regularised incomplete beta function I_x(a, b); scalars broadcast."""
    for (name, one), (other_name, other) in (
        (("a", a), ("b", b)),
        (("a", a), ("x", x)),
        (("b", b), ("x", x)),
    ):
        if np.ndim(one) and np.ndim(other) and np.shape(one) != np.shape(other):
            raise InvalidArgumentError(
                f"Shapes of {name} and {other_name} are inconsistent: "
                f"{shape_text(np.shape(one))} vs. {shape_text(np.shape(other))}"
            )
    wide_a, wide_b, wide_x = np.broadcast_arrays(_wide(a), _wide(b), _wide(x))
    result = np.full(wide_x.shape, np.nan)
    proper = (wide_a > 0) & (wide_b > 0) & (wide_x > 0) & (wide_x < 1)
    with np.errstate(all="ignore"):
        p, q, t = wide_a[proper], wide_b[proper], wide_x[proper]
        # The fraction converges fast for x below the mean; above, I_x(a, b) = 1 − I_1−x(b, a).
        swap = t > (p + 1) / (p + q + 2)
        p, q, t = np.where(swap, q, p), np.where(swap, p, q), np.where(swap, 1 - t, t)
        scale = p * np.log(t) + q * np.log1p(-t) + log_gamma(p + q) - log_gamma(p) - log_gamma(q)
        value = np.exp(scale) * _beta_fraction(p, q, t) / p if t.size else t
    result[proper] = np.where(swap, 1 - value, value)
    valid = (wide_a > 0) & (wide_b > 0)
    result[valid & (wide_x == 0)] = 0.0
    result[valid & (wide_x == 1)] = 1.0
    return result.astype(x.dtype)


@in_blocks(30)
def lgamma(x: np.ndarray) -> np.ndarray:
    """Lgamma: return log |Γ(x)|."""
    return log_gamma(_wide(x)).astype(x.dtype)


@in_blocks(30)
def digamma(x: np.ndarray) -> np.ndarray:
    """Digamma: return the logarithmic derivative of Γ."""
    return psi(_wide(x)).astype(x.dtype)


UNARY: dict[str, Kernel] = {"Lgamma": lgamma, "Digamma": digamma}
BINARY: dict[str, Kernel] = {
    "Zeta": zeta,
    "Polygamma": polygamma,
    "Igamma": igamma,
    "Igammac": igammac,
}

KERNELS: tuple[KernelDef, ...] = (
    *(KernelDef(op, function, {"T": SINGLE_AND_DOUBLE}) for op, function in UNARY.items()),
    *(
        KernelDef(op, in_float32(function), {"T": (DataType.HALF,)})
        for op, function in UNARY.items()
    ),
    *(KernelDef(op, binary(function), {"T": SINGLE_AND_DOUBLE}) for op, function in BINARY.items()),
    KernelDef("Betainc", betainc),
)
