"""IsotonicRegression: the non-increasing sequences nearest to the input's rows.

TF: tensorflow/core/kernels/isotonic_regression_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef


def isotonic_regression(
    input: np.ndarray, *, output_dtype: DataType
) -> tuple[np.ndarray, np.ndarray]:
    """Return the fitted rows `[…, n]` and the number of each element's pool, int32 `[…, n]`.

    Neighbours are pooled until no pool's mean exceeds the mean before it.
    """
    width = input.shape[-1] if np.ndim(input) else 1
    values = np.asarray(input, np.float64).reshape(-1 if width else 0, width)
    result = np.empty(values.shape)
    segments = np.empty(values.shape, np.int32)
    for row, numbers in enumerate(values.tolist()):
        means, lengths = _pooled(numbers)
        result[row] = np.repeat(means, lengths)
        segments[row] = np.repeat(np.arange(len(means)), lengths)
    return result.reshape(input.shape).astype(output_dtype.numpy), segments.reshape(input.shape)


def _pooled(numbers: list[float]) -> tuple[list[float], list[int]]:
    """Return the means and lengths of the pools (the pool-adjacent-violators algorithm)."""
    sums: list[float] = []
    lengths: list[int] = []
    for number in numbers:
        total, length = number, 1
        while sums and total * lengths[-1] > sums[-1] * length:
            total, length = total + sums.pop(), length + lengths.pop()
        sums.append(total)
        lengths.append(length)
    return [total / length for total, length in zip(sums, lengths, strict=True)], lengths


KERNELS = (KernelDef("IsotonicRegression", isotonic_regression),)
