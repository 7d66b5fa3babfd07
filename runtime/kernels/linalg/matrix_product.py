"""Products of matrices and of stacks of matrices, computed on several threads if they are large.

There are as many threads as the intra-op width of the step. Each computes other rows or columns of
the product. Every element is still one sum over the whole inner dimension, in the order of BLAS.

TF: tensorflow/core/kernels/matmul_op_impl.h
"""

from __future__ import annotations

import math
from types import EllipsisType

import numpy as np

from runtime.foundation.blas_threads import is_blas_single
from runtime.foundation.intra_op_pool import shard, thread_width

_NANOSECONDS = {"f": 0.013, "d": 0.026, "F": 0.05, "D": 0.1}  # per multiply-add, BLAS, one thread
_NANOSECONDS_OTHERWISE = 1.0  # per multiply-add of integers, in loops of numpy
_LARGE = 1 << 23  # multiply-adds; smaller products finish before a second thread starts
_LARGE_OF_INTEGERS = 1 << 16  # multiply-adds; above, it pays off to search the largest number
_EXACT_IN_FLOAT64 = 1 << 53
_ALIGNMENT = 16  # block size of BLAS; the first row or column of a thread is a multiple of it


def matrix_product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the product of `left` `[m, k]` and `right` `[k, n]`."""
    rows, inner = left.shape
    columns = right.shape[1]
    if left.dtype.kind == "i" and rows * inner * columns > _LARGE_OF_INTEGERS:
        exact = _integer_product(left, right)
        if exact is not None:
            return exact
    if rows * inner * columns <= _LARGE or not _is_split(left):
        product: np.ndarray = np.dot(left, right)
        return product
    out = np.empty((rows, columns), left.dtype)
    matrix_product_into(left, right, out)
    return out


def _integer_product(left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """Return the product of integers, computed in float64, which is ten times faster.

    Returns None if the result might be rounded.
    """
    bounds = [max(abs(int(each.min())), abs(int(each.max()))) for each in (left, right)]
    if bounds[0] * bounds[1] * left.shape[1] >= _EXACT_IN_FLOAT64:
        return None
    product = matrix_product(left.astype(np.float64), right.astype(np.float64))
    return product.astype(np.int64).astype(left.dtype, copy=False)


def matrix_product_into(left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
    """Write the product of `left` `[m, k]` and `right` `[k, n]` into `out`.

    `out` may be a view with gaps between the rows.
    """
    rows, inner = left.shape
    columns = right.shape[1]
    if rows == 1 or rows * inner * columns <= _LARGE or not _is_split(left):
        np.matmul(left, right, out=out)
        return
    cost = inner * _cost_of(left)
    if rows >= columns:
        shard(
            rows,
            columns * cost,
            lambda start, limit: np.matmul(left[start:limit], right, out=out[start:limit]),
            _ALIGNMENT,
        )
    else:
        shard(
            columns,
            rows * cost,
            lambda start, limit: np.matmul(left, right[:, start:limit], out=out[:, start:limit]),
            _ALIGNMENT,
        )


def stacked_product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the products of `left` `[…, m, k]` and `right` `[…, k, n]`.

    The leading dimensions broadcast.
    """
    product: np.ndarray
    inner, columns = right.shape[-2:]
    if left.size * columns <= _LARGE or not _is_split(left):
        product = np.matmul(left, right)
        return product
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    product = np.empty((*batch, left.shape[-2], columns), left.dtype)
    largest = max(batch, default=1)
    if largest == 1:
        flat = product.reshape(product.shape[-2:])
        matrix_product_into(left.reshape(left.shape[-2:]), right.reshape(right.shape[-2:]), flat)
        return product
    axis = batch.index(largest) - len(batch) - 2
    cost = math.prod(product.shape) // largest * inner * _cost_of(left)

    def work(start: int, limit: int) -> None:
        part = slice(start, limit)
        np.matmul(
            _stack_slice(left, axis, part),
            _stack_slice(right, axis, part),
            out=_stack_slice(product, axis, part),
        )

    shard(largest, cost, work)
    return product


def _stack_slice(stack: np.ndarray, axis: int, part: slice) -> np.ndarray:
    """Return the slice `part` of `stack` along `axis` (negative).

    If `stack` broadcasts along `axis`, return all of it.
    """
    if stack.ndim < -axis or stack.shape[axis] == 1:
        return stack
    index: tuple[slice | EllipsisType, ...] = (..., part, *(slice(None),) * (-axis - 1))
    return stack[index]


def _cost_of(left: np.ndarray) -> float:
    return _NANOSECONDS.get(left.dtype.char, _NANOSECONDS_OTHERWISE)


def _is_split(left: np.ndarray) -> bool:
    if thread_width() == 1:
        return False
    return left.dtype.char not in _NANOSECONDS or is_blas_single()
