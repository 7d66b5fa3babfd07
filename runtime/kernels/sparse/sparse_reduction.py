"""Kernels that reduce a sparse tensor over some dimensions to sums or maxima.

TF: tensorflow/core/kernels/sparse_reduce_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.sparse.sparse_structure import Sparse, flat_positions, index_rows
from runtime.kernels.sparse.sparse_tensor_checks import check_bounds, check_sparse_tensor


def sparse_reduce_sum(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, axes: np.ndarray, *, keep_dims: bool
) -> np.ndarray:
    """SparseReduceSum: return the sums over `axes` as a dense tensor; a sum of no elements is 0."""
    return _dense(_reduced(indices, values, shape, axes, keep_dims, np.add), values.dtype)


def sparse_reduce_max(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, axes: np.ndarray, *, keep_dims: bool
) -> np.ndarray:
    """SparseReduceMax: return the maxima over `axes` as a dense tensor.

    The maximum of no elements is 0.
    """
    return _dense(_reduced(indices, values, shape, axes, keep_dims, np.maximum), values.dtype)


def sparse_reduce_sum_sparse(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, axes: np.ndarray, *, keep_dims: bool
) -> Sparse:
    """SparseReduceSumSparse: return the sums over `axes` as a sparse tensor."""
    return _sparse(_reduced(indices, values, shape, axes, keep_dims, np.add))


def sparse_reduce_max_sparse(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, axes: np.ndarray, *, keep_dims: bool
) -> Sparse:
    """SparseReduceMaxSparse: return the maxima over `axes` as a sparse tensor."""
    return _sparse(_reduced(indices, values, shape, axes, keep_dims, np.maximum))


# (ascending row-major positions in the result, values at these positions, sizes of the result)
Reduced = tuple[np.ndarray, np.ndarray, list[int]]


def _reduced(
    indices: np.ndarray,
    values: np.ndarray,
    shape: np.ndarray,
    axes: np.ndarray,
    keep_dims: bool,
    combine: np.ufunc,
) -> Reduced:
    if shape.ndim != 1:
        raise InvalidArgumentError(
            f"Expected input_shape to be a vector; got shape: {shape_text(shape.shape)}"
        )
    check_sparse_tensor(indices, values, shape)
    check_bounds(indices, shape)
    if axes.ndim > 1:
        raise InvalidArgumentError(
            "Expected reduction_axes to be a scalar or a vector; "
            f"got shape: {shape_text(axes.shape)}"
        )
    ranks = shape.size
    for axis in axes.ravel().tolist():
        if not -ranks <= axis < ranks:
            raise InvalidArgumentError(
                f"Invalid reduction dimension {axis}, for input with {ranks} dimensions."
            )
    gone = {axis % ranks for axis in axes.ravel().tolist()}
    kept = [axis for axis in range(ranks) if axis not in gone]
    sizes = [
        1 if axis in gone else int(shape[axis])
        for axis in range(ranks)
        if keep_dims or axis in kept
    ]
    groups = flat_positions(indices[:, kept], shape[kept])
    if not len(values):
        return groups, values, sizes
    order = np.argsort(groups, kind="stable")
    begins = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return groups[order][begins], combine.reduceat(values[order], begins, dtype=values.dtype), sizes


def _dense(reduced: Reduced, dtype: np.dtype) -> np.ndarray:
    positions, values, sizes = reduced
    check_allocation(sizes, dtype)
    result = np.zeros(sizes, dtype)
    result.reshape(-1)[positions] = values
    return result


def _sparse(reduced: Reduced) -> Sparse:
    positions, values, sizes = reduced
    return index_rows(positions, sizes), values, np.array(sizes, np.int64)


KERNELS = (
    KernelDef("SparseReduceMax", sparse_reduce_max),
    KernelDef("SparseReduceMaxSparse", sparse_reduce_max_sparse),
    KernelDef("SparseReduceSum", sparse_reduce_sum),
    KernelDef("SparseReduceSumSparse", sparse_reduce_sum_sparse),
)
