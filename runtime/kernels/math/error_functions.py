"""The error function, its complement and its inverse.

erf and erfc use polynomials: truncated Chebyshev expansions, computed with 60 digits and converted
to sums of powers. They are accurate to the last digits of float32 and float64. The relative error
of erfc stays small even if erfc(x) is tiny, which exact GELU requires.

TF: tensorflow/core/kernels/cwise_op_{erf,erfc,erfinv,ndtri}.cc
"""

from __future__ import annotations

import numpy as np

from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import HALF_TYPES, SINGLE_AND_DOUBLE
from runtime.kernels.math.broadcasting import in_float32
from runtime.kernels.math.element_blocks import choose, in_blocks

WINITZKI = 0.147  # the constant in Winitzki's approximation of the inverse
HALLEY_STEPS = 3
ERF_IS_ONE = 4.0  # erf of this or a larger number is 1 in float32
ERFC_VANISHES = 30.0  # erfc of this or a larger number is 0 even in float64

# Coefficients, lowest power first, of log(erfc(x) · exp(x²) / t) in powers of s = 2t − 1, where
# t = 1 / (1 + x/2) and x ≥ 0.
ERFC_FLOAT = (
    -0.6717940760543342, 0.6726422171554879, 0.047343106290901014, -0.04687488817886134,
    -0.009873768747331391, 0.008703812035218802, 0.0017765646350106849, -0.002048734760496568,
    -0.00020790912059481792, 0.0003337358939086114,
)  # fmt: skip
ERFC_DOUBLE = (
    -0.6717940840566922, 0.6726432239776583, 0.047343306841863525, -0.04689561023132891,
    -0.009872689364099277, 0.008824938561312135, 0.0017589335074039106, -0.0023458125529934874,
    -0.0001462462874325405, 0.000673679135240037, -9.373894760946704e-05, -0.0001743041297975124,
    7.141810408084614e-05, 3.174693522785943e-05, -3.023783991344303e-05, 1.3989405237823811e-07,
    8.66253436697276e-06, -2.9634846327428587e-06, -1.4094448753625363e-06, 1.2833952060570238e-06,
    -4.146930202403043e-08, -2.895627762879495e-07, 7.745602415134083e-08, 2.980515496147381e-08,
    -1.2776137963085916e-08,
)  # fmt: skip
# Coefficients of −log(erfc(x)) / x for 0 ≤ x ≤ 4 in powers of s = 1 − x/2, lowest first.
ERF_FLOAT = (
    2.682470629, -1.735690414, 0.1118117092, 0.04595607185, 0.01738298788, 0.005636614696,
    0.001343211641, 8.613252979e-05, -0.0002448202608, -0.0002710944535, -0.0001018499158,
)  # fmt: skip
# Coefficients of erf(x) / x for |x| ≤ 1 in powers of s = 2x² − 1, lowest first.
ERF_DOUBLE = (
    0.9654687386698674, -0.14053608902271714, 0.019852496688983708, -0.0022854855611441132,
    0.00021751715604160108, -1.7537169441124826e-05, 1.223382738352401e-06,
    -7.51156928660089e-08, 4.115800597664959e-09, -2.035228404899467e-10, 9.167606746069445e-12,
    -3.8078827395263415e-13, 1.454817075960679e-14,
)  # fmt: skip

# Coefficients for w = −log(1 − x²), accurate in float32. If w ≤ 5 (INVERSE_NEAR), of
# erfinv(x) / x in powers of 2w/5 − 1. If w > 5 (INVERSE_FAR), of erfinv(x) / √w in powers of s,
# where s is √w mapped linearly from √5 … 10.3 to −1 … 1.
INVERSE_NEAR_ENDS, INVERSE_FAR_ENDS = 5.0, 10.3
INVERSE_NEAR = (
    1.501409352, 0.6166007235, -0.02610828076, -0.01957419401, 0.008525934498, -0.0004843499508,
    -0.0008364687387, 0.000284075153, 2.515743593e-05, -3.333980935e-05, 4.149577192e-06,
)  # fmt: skip
INVERSE_FAR = (
    0.9780558107, 0.02012701255, -0.01424316197, 0.008894188136, -0.005033372689, 0.002847357748,
    -0.001536393645, -0.0006539502941, 0.001479969568, 0.001836055277, -0.002430226776,
    -0.002233802025, 0.002742933886, 0.0004674319292, -0.000769496089,
)  # fmt: skip


def _polynomial(coefficients: tuple[float, ...], s: np.ndarray) -> np.ndarray:
    """Return the polynomial with `coefficients`, lowest power first, at `s`.

    Horner's rule is computed in one buffer.
    """
    total = np.full_like(s, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total *= s
        total += coefficient
    return total


def _is_double(x: np.ndarray) -> bool:
    return x.dtype == np.float64


def _erfc_block(x: np.ndarray) -> np.ndarray:
    magnitude = np.minimum(np.abs(x), ERFC_VANISHES)
    t = magnitude * 0.5
    t += 1
    np.reciprocal(t, out=t)
    result = _polynomial(ERFC_DOUBLE if _is_double(x) else ERFC_FLOAT, 2 * t - 1)
    magnitude *= magnitude
    result -= magnitude
    np.exp(result, out=result)
    result *= t
    # erfc(−x) = 2 − erfc(x) is computed without a branch.
    sign = np.copysign(x.dtype.type(1), x)
    result *= sign
    np.subtract(1, sign, out=sign)
    result += sign
    return result


def _erf_of_floats(x: np.ndarray) -> np.ndarray:
    """Return erf(x) in float32.

    It is computed as −expm1(log(erfc(x))), which is accurate near 0. From ERF_IS_ONE on it is 1.
    """
    magnitude = np.abs(x)
    np.minimum(magnitude, ERF_IS_ONE, out=magnitude)
    s = magnitude * np.float32(-2 / ERF_IS_ONE)
    s += 1
    result = _polynomial(ERF_FLOAT, s)
    result *= magnitude
    np.negative(result, out=result)
    np.expm1(result, out=result)
    return np.copysign(result, x, out=result)


def _erf_block(x: np.ndarray) -> np.ndarray:
    if not _is_double(x):
        return _erf_of_floats(x)
    inner = np.clip(x, -1, 1)
    ratio = _polynomial(ERF_DOUBLE, 2 * np.square(inner) - 1)
    ratio *= inner
    outside = np.abs(x) > 1
    if outside.any():
        far = x[outside]
        ratio[outside] = np.copysign(1 - _erfc_block(np.abs(far)), far)
    return ratio


erfc = in_blocks(6)(_erfc_block)
erf = in_blocks(6)(_erf_block)


def _inverse(x: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Return the y for which erf(y) = x, in float64.

    `tail` must be 1 − |x|, computed without cancellation. The first value is Winitzki's
    approximation (2008); each of the following iterations of Halley's method triples the number of
    correct digits.
    """
    magnitude = np.abs(x)
    with np.errstate(all="ignore"):
        logarithm = np.log(tail * (1 + magnitude))
        middle = 2 / (np.pi * WINITZKI) + logarithm / 2
        y = np.sqrt(np.sqrt(middle * middle - logarithm / WINITZKI) - middle)
        for _ in range(HALLEY_STEPS):
            excess = choose(magnitude < 0.5, erf(y) - magnitude, tail - erfc(y))
            step = excess * np.exp(y * y) * (np.sqrt(np.pi) / 2)
            y = y - step / (1 + y * step)
    y = np.where(tail == 0, np.inf, y)
    return np.copysign(np.where(tail < 0, np.nan, y), x)


def _inverse_of_floats(x: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Return the y for which erf(y) = x, in float32, from polynomials.

    `tail` must be 1 − |x|.
    """
    w = -np.log(tail * (2 - tail))
    y = _polynomial(INVERSE_NEAR, w * np.float32(2 / INVERSE_NEAR_ENDS) - 1)
    y *= np.abs(x)
    far = np.flatnonzero(w > INVERSE_NEAR_ENDS)
    root, first = np.sqrt(w[far]), np.sqrt(np.float32(INVERSE_NEAR_ENDS))
    place = (root - first) * (2 / (INVERSE_FAR_ENDS - first)) - 1
    y[far] = _polynomial(INVERSE_FAR, place) * root
    y[tail == 0] = np.inf
    return np.copysign(y, x)


@in_blocks(20)
def erfinv(x: np.ndarray) -> np.ndarray:
    """Erfinv: return the inverse of erf: ±infinity if x is ±1, NaN if |x| > 1."""
    if x.dtype == np.float32:
        flat = x.ravel()
        return _inverse_of_floats(flat, 1 - np.abs(flat)).reshape(x.shape)
    wide = np.asarray(x, np.float64)
    return _inverse(wide, 1 - np.abs(wide)).astype(x.dtype)


@in_blocks(20)
def ndtri(x: np.ndarray) -> np.ndarray:
    """Ndtri: return the quantile function of the standard normal distribution."""
    if x.dtype == np.float32:
        flat = x.ravel()
        inverse = _inverse_of_floats(2 * flat - 1, 2 * np.minimum(flat, 1 - flat))
        return (np.float32(np.sqrt(2)) * inverse).reshape(x.shape)
    wide = np.asarray(x, np.float64)
    tail = 2 * np.minimum(wide, 1 - wide)
    quantile = np.sqrt(2) * _inverse(2 * wide - 1, tail)
    return quantile.astype(x.dtype)


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("Erf", erf, {"T": SINGLE_AND_DOUBLE}),
    KernelDef("Erf", in_float32(erf), {"T": HALF_TYPES}),
    KernelDef("Erfc", erfc, {"T": SINGLE_AND_DOUBLE}),
    KernelDef("Erfc", in_float32(erfc), {"T": HALF_TYPES}),
    KernelDef("Erfinv", erfinv, {"T": SINGLE_AND_DOUBLE}),
    KernelDef("Ndtri", ndtri, {"T": SINGLE_AND_DOUBLE}),
)
