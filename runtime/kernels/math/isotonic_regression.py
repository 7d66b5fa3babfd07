"""IsotonicRegression: fit a non-increasing sequence to each row of the input.

TF: tensorflow/core/kernels/isotonic_regression_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef


def isotonic_regression(
    input: np.ndarray, *, output_dtype: DataType
) -> tuple[np.ndarray, np.ndarray]:
    """IsotonicRegression: return the non-increasing sequences nearest to the rows of `input`.

    Returns (fitted rows `[…, n]`, index of the pool of each element, int32 `[…, n]`). Neighbouring
    elements are pooled until no pool has a larger mean than the pool before it.
    """
    width = input.shape[-1] if np.ndim(input) else 1
    values = np.asarray(input, np.float64).reshape(-1 if width else 0, width)
    result = np.empty(values.shape)
    segments = np.empty(values.shape, np.int32)
    for row, numbers in enumerate(values.tolist()):
        check_task()
        means, lengths = _pooled(numbers)
        result[row] = np.repeat(means, lengths)
        segments[row] = np.repeat(np.arange(len(means)), lengths)
    return result.reshape(input.shape).astype(output_dtype.numpy), segments.reshape(input.shape)


def _pooled(numbers: list[float]) -> tuple[list[float], list[int]]:
    """Return the means and lengths of the pools of `numbers`.

    The pools are found by the pool-adjacent-violators algorithm.
    """
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
