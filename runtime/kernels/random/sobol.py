"""SobolSample: points that fill the unit cube evenly, bit for bit the same as TensorFlow's.

Each coordinate has a primitive polynomial over GF(2) and initial direction numbers, which are odd.
Both were chosen by S. Joe and F. Y. Kuo ("Constructing Sobol sequences with better two-dimensional
projections", 2008; their licence terms are in `sobol_directions.txt`). The data file holds the
polynomials in ascending order, each as half of its difference from the one before. It holds the
bits of each direction number except the first and the last bit, which are always 1.

TF: tensorflow/core/kernels/sobol_op.cc
"""

from __future__ import annotations

import functools
import importlib.resources

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import SINGLE_AND_DOUBLE

MAX_DIM = 21200
_BITS = 31  # bits of a coordinate, because TensorFlow stores coordinates as int32
_INT32_MAX = (1 << 31) - 1


@functools.cache
def _directions() -> np.ndarray:
    """Return the direction numbers, uint32 [31, 21200], in units of 2⁻³¹.

    A point is the XOR of the rows whose bits are set in the Gray code of the point's index.
    """
    data = importlib.resources.files("runtime.kernels.random").joinpath("sobol_directions.npz")
    with data.open("rb") as file, np.load(file) as arrays:
        polynomials = 1 + 2 * np.cumsum(arrays["polynomial_steps"], dtype=np.uint32)
        bits = np.unpackbits(arrays["initial_bits"])
    degrees = np.frexp(polynomials.astype(np.float64))[1] - 1
    made = np.empty((_BITS, MAX_DIM), np.uint32)
    made[:, 0] = np.uint32(1) << np.arange(_BITS - 1, -1, -1, dtype=np.uint32)
    used = 0
    for degree in range(1, int(degrees[-1]) + 1):
        of_degree = degrees == degree
        count = int(of_degree.sum())
        rows = np.empty((_BITS, count), np.uint32)
        for digit in range(degree):
            between = bits[used : used + count * digit].reshape(count, digit)
            used += count * digit
            number = 1 + (between @ (1 << np.arange(1, digit + 1))).astype(np.uint32)
            rows[digit] = number << np.uint32(_BITS - 1 - digit)
        _extend(rows, polynomials[of_degree], degree)
        made[:, of_degree] = rows
    return made


def _extend(rows: np.ndarray, polynomials: np.ndarray, degree: int) -> None:
    """Compute `rows[degree:]` from the rows before, by the recurrence of a column's polynomial."""
    terms = (polynomials >> np.arange(degree, dtype=np.uint32)[:, np.newaxis]) & np.uint32(1)
    for digit in range(degree, _BITS):
        before = rows[digit - degree : digit]
        summed = np.bitwise_xor.reduce(before * terms, axis=0)
        rows[digit] = summed ^ (before[0] >> np.uint32(degree))


def _scalar(name: str, value: np.ndarray) -> int:
    if np.ndim(value):
        raise InvalidArgumentError(f"{name} must be a scalar")
    return int(value)


def _check(dim: int, num_results: int, skip: int) -> None:
    for message, met in (
        ("dim must be at least one", dim >= 1),
        (f"dim must be at most {MAX_DIM}", dim <= MAX_DIM),
        ("num_results must be at least one", num_results >= 1),
        ("skip must be non-negative", skip >= 0),
        (f"num_results+skip must be less than {_INT32_MAX}", num_results + skip < _INT32_MAX),
        (f"num_results*dim must be less than {_INT32_MAX}", num_results * dim < _INT32_MAX),
    ):
        if not met:
            raise InvalidArgumentError(message)


def sobol_sample(
    dim: np.ndarray, num_results: np.ndarray, skip: np.ndarray, *, dtype: DataType
) -> np.ndarray:
    """SobolSample: return points `skip + 1`, `skip + 2`, … of the sequence: [num_results, dim]."""
    wanted, count, skipped = (
        _scalar(name, value)
        for name, value in (("dim", dim), ("num_results", num_results), ("skip", skip))
    )
    _check(wanted, count, skipped)
    check_allocation((count, wanted), dtype.numpy)
    directions = _directions()[:, :wanted]
    indices = np.arange(skipped + 1, skipped + 1 + count, dtype=np.int64)
    # The Gray codes of an index and the index before differ in one bit, the lowest 1 of the index.
    points = directions[np.frexp((indices & -indices).astype(np.float64))[1] - 1]
    gray = skipped + 1 ^ skipped + 1 >> 1
    chosen = [digit for digit in range(_BITS) if gray >> digit & 1]
    points[0] = np.bitwise_xor.reduce(directions[chosen], axis=0)
    np.bitwise_xor.accumulate(points, axis=0, out=points)
    # If 31 bits are needed, TensorFlow divides by 1 << 31, which is negative as an int32.
    sign = -1 if skipped + count + 1 >= 1 << (_BITS - 1) else 1
    return points.astype(dtype.numpy) * dtype.numpy.type(sign * 2.0**-_BITS)


KERNELS = (KernelDef("SobolSample", sobol_sample, {"dtype": SINGLE_AND_DOUBLE}),)
