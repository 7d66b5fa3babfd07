"""Kernels of set operations.

A set is the values along the last dimension of a tensor; a group is an index of the other
dimensions. An operation combines the two sets of each group.

TF: tensorflow/core/kernels/set_kernels.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.sparse.sparse_tensor_checks import check_sparse_tensor
from runtime.kernels.sparse.sparse_to_dense import check_sorted_indices

Sparse = tuple[np.ndarray, np.ndarray, np.ndarray]  # indices [n, rank], values [n], shape [rank]

_OPERATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "a-b": np.setdiff1d,
    "b-a": lambda one, two: np.setdiff1d(two, one),
    "intersection": np.intersect1d,
    "union": np.union1d,
}


def dense_to_dense(set1: np.ndarray, set2: np.ndarray, *, set_operation: str) -> Sparse:
    """DenseToDenseSetOperation: combine the sets of two dense tensors [G…, n] and [G…, m]."""
    return _set_operation(_from_dense(set1), _from_dense(set2), set_operation)


def dense_to_sparse(
    set1: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    shape: np.ndarray,
    *,
    set_operation: str,
    validate_indices: bool,
) -> Sparse:
    """DenseToSparseSetOperation: combine the sets of a dense and a sparse tensor."""
    if shape.ndim == 1 and not validate_indices and len(indices) == len(values):
        # TensorFlow stops reading at the first element whose group is before the previous one.
        kept = _ascending_groups(indices, shape)
        indices, values = indices[:kept], values[:kept]
    second = _from_sparse(indices, values, shape, validate_indices, set1.shape)
    return _set_operation(_from_dense(set1), second, set_operation)


def _ascending_groups(indices: np.ndarray, shape: np.ndarray) -> int:
    """Return how many leading rows have groups inside the shape and in ascending order."""
    if indices.ndim != 2 or indices.shape[1] != shape.size or shape.size < 2:
        return len(indices)  # _from_sparse raises an error for such indices
    groups = indices[:, :-1]
    odd = np.asarray(((groups < 0) | (groups >= shape[:-1])).any(axis=1))
    steps = groups[1:] - groups[:-1]
    first = (steps != 0).argmax(axis=1)
    odd[1:] |= steps[np.arange(len(steps)), first] < 0
    return int(odd.argmax()) if odd.any() else len(indices)


def sparse_to_sparse(
    indices1: np.ndarray,
    values1: np.ndarray,
    shape1: np.ndarray,
    indices2: np.ndarray,
    values2: np.ndarray,
    shape2: np.ndarray,
    *,
    set_operation: str,
    validate_indices: bool,
) -> Sparse:
    """SparseToSparseSetOperation: combine the sets of two sparse tensors."""
    first = _from_sparse(indices1, values1, shape1, validate_indices)
    second = _from_sparse(indices2, values2, shape2, validate_indices)
    return _set_operation(first, second, set_operation)


# The sets of a tensor: (shape of the groups, group index of each value, values).
Groups = tuple[tuple[int, ...], np.ndarray, np.ndarray]


def _from_dense(dense: np.ndarray) -> Groups:
    if dense.ndim < 2:
        raise InvalidArgumentError(f"Shape {shape_text(dense.shape)} has rank {dense.ndim} < 2")
    groups = np.repeat(np.arange(math.prod(dense.shape[:-1])), dense.shape[-1])
    return dense.shape[:-1], groups, dense.ravel()


def _from_sparse(
    indices: np.ndarray,
    values: np.ndarray,
    shape: np.ndarray,
    validate_indices: bool,
    beside: tuple[int, ...] = (),
) -> Groups:
    """Check a sparse tensor and return its sets.

    Raises InvalidArgumentError or InternalError if the tensor is malformed. `beside` is the shape
    of the dense operand, if there is one. The groups of both operands must be the same; if they
    differ, this error comes before an error for indices out of range.
    """
    if shape.ndim != 1:
        raise InvalidArgumentError("Shape must be a 1D tensor.")
    sizes = tuple(shape.tolist())
    if len(sizes) < 2:
        raise InvalidArgumentError(f"Invalid rank {len(sizes)}.")
    check_sparse_tensor(indices, values, shape)
    check_allocation(sizes[:-1], np.int64)
    if validate_indices:
        check_sorted_indices(indices, sizes)
    if len(beside) > 1:
        _check_same_groups(beside[:-1], sizes[:-1])
    _check_groups(indices, sizes)
    strides = [math.prod(sizes[axis + 1 : -1]) for axis in range(len(sizes) - 1)]
    groups = indices[:, :-1] @ np.array(strides, np.int64)
    return sizes[:-1], groups, values


def _check_groups(indices: np.ndarray, sizes: tuple[int, ...]) -> None:
    for axis, size in enumerate(sizes):
        outside = indices[:, axis] >= size
        if axis + 1 < len(sizes):  # an index that is negative in the last dimension is accepted
            outside |= indices[:, axis] < 0
        if outside.any():
            first = indices[outside.argmax(), axis]  # TensorFlow's message always names index 0
            raise InternalError(f"indices[0, {axis}] expected < {size}, got {first}.")


def _check_same_groups(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    if first != second:
        raise InvalidArgumentError(f"Mismatched shapes {shape_text(first)} vs {shape_text(second)}")


def _set_operation(first: Groups, second: Groups, set_operation: str) -> Sparse:
    """Apply the operation to all groups at once, as sets of pairs (group, value)."""
    _check_same_groups(first[0], second[0])
    distinct, numbers = _value_indices(np.concatenate((first[2], second[2])))
    base = max(len(distinct), 1)
    count = len(first[2])
    pairs1, pairs2 = first[1] * base + numbers[:count], second[1] * base + numbers[count:]
    operation = _OPERATIONS.get(set_operation.lower())
    if operation is None:
        raise InvalidArgumentError(f"Invalid set_operation {set_operation}.")
    return _result(operation(pairs1, pairs2), base, distinct, first[0])


def _value_indices(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (ascending values, index of each element of `values` in them).

    The ascending values contain at least all distinct elements. If the elements are integers in a
    small range, they are the whole range, which needs no sorting.
    """
    if values.size and values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if high - low < values.size:
            places = values - values.dtype.type(low) if low > 0 else values.astype(np.int64) - low
            steps = np.arange(high - low + 1).astype(values.dtype)
            return steps + values.dtype.type(low), places.astype(np.int64)
    distinct, numbers = np.unique(values, return_inverse=True)
    return distinct, numbers


def _result(
    pairs: np.ndarray, base: int, distinct: np.ndarray, group_shape: tuple[int, ...]
) -> Sparse:
    groups = pairs // base  # the groups are ascending, and so are the values of each group
    sizes = np.bincount(groups, minlength=1)
    begins = np.cumsum(sizes) - sizes
    columns = np.arange(len(pairs)) - begins[groups]
    places = np.unravel_index(groups, group_shape) if len(pairs) else [groups] * len(group_shape)
    indices = np.stack((*places, columns), -1).astype(np.int64)
    shape = np.array([*group_shape, sizes.max(initial=0)], np.int64)
    return indices, distinct[pairs % base], shape


def set_size(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, *, validate_indices: bool
) -> np.ndarray:
    """SetSize: return the number of distinct values in each group of a sparse tensor."""
    group_shape, groups, elements = _from_sparse(indices, values, shape, validate_indices)
    distinct, numbers = np.unique(elements, return_inverse=True)
    pairs = np.unique(groups * max(len(distinct), 1) + numbers)
    sizes = np.bincount(pairs // max(len(distinct), 1), minlength=math.prod(group_shape))
    return sizes.astype(np.int32).reshape(group_shape)


KERNELS = (
    KernelDef("DenseToDenseSetOperation", dense_to_dense),
    KernelDef("DenseToSparseSetOperation", dense_to_sparse),
    KernelDef("SetSize", set_size),
    KernelDef("SparseToSparseSetOperation", sparse_to_sparse),
)
