"""Kernels that count integers (bincount) in each row and return the counts as sparse tensors.

TF: tensorflow/core/kernels/count_ops.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text

Sparse = tuple[np.ndarray, np.ndarray, np.ndarray]


def _check_weights(weights: np.ndarray, values: np.ndarray, name: str) -> None:
    if np.size(weights) and np.shape(weights) != np.shape(values):
        raise InvalidArgumentError(
            f"Weights and {name} must have the same shape. Weight shape: "
            f"{shape_text(np.shape(weights))}; {name} shape: {shape_text(np.shape(values))}"
        )


def _count(
    rows: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    *,
    num_rows: int,
    minlength: int,
    maxlength: int,
    binary_output: bool,
) -> Sparse:
    """Count each value in each row, or sum up the weights of equal values.

    If `binary_output` is true, every count is 1. Values ≥ `maxlength` are ignored, unless
    `maxlength` is negative.
    """
    if values.size and values.min() < 0:
        raise InvalidArgumentError("Input values must all be non-negative")
    width = max(int(values.max(initial=0)) + 1, minlength) if maxlength < 0 else maxlength
    weights = weights.ravel()
    if maxlength >= 0:
        inside = values < maxlength
        rows, values = rows[inside], values[inside]
        weights = weights[inside] if weights.size else weights
    order = np.lexsort((values, rows))
    rows, values = rows[order], values[order]
    first = np.ones(values.size, bool)
    first[1:] = (rows[1:] != rows[:-1]) | (values[1:] != values[:-1])
    starts = np.flatnonzero(first)
    if binary_output:
        totals = np.ones(starts.size, weights.dtype)
    elif weights.size:
        totals = np.add.reduceat(weights[order], starts, dtype=weights.dtype)
    else:
        totals = np.diff(starts, append=values.size).astype(weights.dtype)
    indices = np.stack([rows[starts], values[starts]], axis=1).astype(np.int64)
    return indices, totals, np.array([num_rows, width], np.int64)


def _as_vector(counts: Sparse) -> Sparse:
    """Drop the row dimension, whose size must be 1."""
    indices, totals, shape = counts
    return indices[:, 1:], totals, shape[1:]


def dense_count_sparse_output(
    values: np.ndarray, weights: np.ndarray, *, minlength: int, maxlength: int, binary_output: bool
) -> Sparse:
    """DenseCountSparseOutput: count the values of a vector, or of each row of a matrix."""
    _check_weights(weights, values, "data")
    if np.ndim(values) not in (1, 2):
        raise InvalidArgumentError(
            f"Input must be a 1 or 2-dimensional tensor. Got: {shape_text(np.shape(values))}"
        )
    matrix = values if values.ndim == 2 else values[np.newaxis]
    if not len(matrix):
        raise InvalidArgumentError("Invalid input: Shapes dimension cannot be 0.")
    counts = _count(
        np.repeat(np.arange(len(matrix)), matrix.shape[1]),
        matrix.ravel(),
        weights,
        num_rows=len(matrix),
        minlength=minlength,
        maxlength=maxlength,
        binary_output=binary_output,
    )
    return counts if values.ndim == 2 else _as_vector(counts)


def _check_sparse(indices: np.ndarray, values: np.ndarray, dense_shape: np.ndarray) -> None:
    for name, given, rank, kind in (
        ("indices", indices, 2, "2-dimensional tensor"),
        ("values", values, 1, "vector"),
        ("shape", dense_shape, 1, "vector"),
    ):
        if np.ndim(given) != rank:
            raise InvalidArgumentError(
                f"Input {name} must be a {kind}. Got: {shape_text(np.shape(given))}"
            )
    if len(values) != len(indices):
        raise InvalidArgumentError(
            "Number of values must match first dimension of indices."
            f"Got {len(values)} values, indices shape: {shape_text(indices.shape)}"
        )
    if dense_shape.size != indices.shape[1]:
        raise InvalidArgumentError(
            "Number of dimensions must match second dimension of indices."
            f"Got {dense_shape.size} dimensions, indices shape: {shape_text(indices.shape)}"
        )
    if not dense_shape.size:
        raise InvalidArgumentError("The shape argument requires at least one element.")
    outside = (indices < 0) | (indices >= dense_shape)
    if outside.any():
        place, axis = np.argwhere(outside)[0].tolist()
        raise InvalidArgumentError(
            f"Invalid index value at {place}: dimension {axis} has value {indices[place, axis]} "
            f"which is not in [0, {dense_shape[axis]}) (as given by dense shape "
            f"Tensor<type: int64 shape: [{dense_shape.size}] values: "
            f"{' '.join(map(str, dense_shape.tolist()))}>"
        )


def sparse_count_sparse_output(
    indices: np.ndarray,
    values: np.ndarray,
    dense_shape: np.ndarray,
    weights: np.ndarray,
    *,
    minlength: int,
    maxlength: int,
    binary_output: bool,
) -> Sparse:
    """SparseCountSparseOutput: count the values of each row of a sparse tensor.

    A row is an index of dimension 0; if the tensor is a vector, all its values are one row.
    """
    _check_sparse(indices, values, dense_shape)
    _check_weights(weights, values, "values")
    is_vector = dense_shape.size == 1
    num_rows = 1 if is_vector else int(dense_shape[0])
    if num_rows < 1:
        raise InvalidArgumentError(
            f"Cannot allocate {num_rows} batches, is the dense shape too wide?"
        )
    counts = _count(
        np.zeros(len(indices), np.int64) if is_vector else indices[:, 0],
        values,
        weights,
        num_rows=num_rows,
        minlength=minlength,
        maxlength=maxlength,
        binary_output=binary_output,
    )
    return _as_vector(counts) if is_vector else counts


def ragged_count_sparse_output(
    splits: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    *,
    minlength: int,
    maxlength: int,
    binary_output: bool,
) -> Sparse:
    """RaggedCountSparseOutput: count the values of each ragged row."""
    _check_weights(weights, values, "values")
    flat_splits, flat_values = np.ravel(splits), np.ravel(values)
    if flat_splits.size < 2:
        raise InvalidArgumentError("Must provide at least 2 elements for the splits argument")
    if flat_splits[0]:
        raise InvalidArgumentError(f"Splits must start with 0, not with {flat_splits[0]}")
    if flat_splits[-1] != flat_values.size:
        raise InvalidArgumentError(
            "Splits must end with the number of values, got "
            f"{flat_splits[-1]} instead of {flat_values.size}"
        )
    ends = np.maximum.accumulate(flat_splits[1:])
    return _count(
        np.searchsorted(ends, np.arange(flat_values.size), side="right"),
        flat_values,
        weights,
        num_rows=flat_splits.size - 1,
        minlength=minlength,
        maxlength=maxlength,
        binary_output=binary_output,
    )


KERNELS = (
    KernelDef("DenseCountSparseOutput", dense_count_sparse_output),
    KernelDef("RaggedCountSparseOutput", ragged_count_sparse_output),
    KernelDef("SparseCountSparseOutput", sparse_count_sparse_output),
)
