"""Kernels that fill the empty rows of sparse tensors with a default value.

TF: tensorflow/core/kernels/sparse_fill_empty_rows_op.cc, fill_empty_rows_functor.h
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text


def sparse_fill_empty_rows(
    indices: np.ndarray, values: np.ndarray, dense_shape: np.ndarray, default_value: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """SparseFillEmptyRows: add `default_value` in column 0 of every row without an element.

    Return (indices, values, whether each row was empty [rows], new index of each element [n]).
    """
    _check_rows(indices, values, dense_shape, default_value)
    return fill_empty_rows(indices, values, int(dense_shape[0]), default_value)


def fill_empty_rows(
    indices: np.ndarray, values: np.ndarray, rows: int, default_value: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Compute the outputs of SparseFillEmptyRows.

    Column 0 of `indices` `[n, rank]` contains the rows of the elements.
    """
    _check_row_indices(indices, rows)
    check_allocation((rows,), np.int64)
    element_rows = indices[:, 0]
    counts = np.bincount(element_rows, minlength=rows)
    empty = counts == 0
    if not empty.any() and (element_rows[1:] >= element_rows[:-1]).all():
        return indices, values, empty, np.arange(len(indices))
    result_rows = np.concatenate((element_rows, np.flatnonzero(empty)))
    order = np.argsort(result_rows, kind="stable")
    filled = np.zeros((int(empty.sum()), indices.shape[1]), np.int64)
    filled[:, 0] = np.flatnonzero(empty)
    padding = np.empty(len(filled), values.dtype)
    padding[...] = default_value
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return (
        np.concatenate((indices, filled))[order],
        np.concatenate((values, padding))[order],
        empty,
        places[: len(indices)],
    )


def _check_rows(
    indices: np.ndarray, values: np.ndarray, dense_shape: np.ndarray, default_value: np.ndarray
) -> None:
    if dense_shape.ndim != 1:
        raise InvalidArgumentError(
            f"dense_shape must be a vector, saw: {shape_text(dense_shape.shape)}"
        )
    if indices.ndim != 2:
        raise InvalidArgumentError(f"indices must be a matrix, saw: {shape_text(indices.shape)}")
    if values.ndim != 1:
        raise InvalidArgumentError(f"values must be a vector, saw: {shape_text(values.shape)}")
    if len(values) != len(indices):
        raise InvalidArgumentError(
            f"The length of `values` ({len(values)}) must match the first dimension of `indices` "
            f"({len(indices)})."
        )
    if dense_shape.size != indices.shape[1]:
        raise InvalidArgumentError(
            f"The length of `dense_shape` ({dense_shape.size}) must match the second dimension of "
            f"`indices` ({indices.shape[1]})."
        )
    if np.ndim(default_value):
        raise InvalidArgumentError(
            f"default_value must be a scalar, saw: {shape_text(default_value.shape)}"
        )
    if not dense_shape.size:
        raise InvalidArgumentError("Dense shape cannot be empty.")


def _check_row_indices(indices: np.ndarray, rows: int) -> None:
    if not rows and len(indices):
        raise InvalidArgumentError(
            f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {len(indices)}"
        )
    outside = (indices[:, 0] < 0) | (indices[:, 0] >= rows)
    if outside.any():
        first = int(outside.argmax())
        raise InvalidArgumentError(f"indices({first}, 0) is invalid: {indices[first, 0]} >= {rows}")


def sparse_fill_empty_rows_grad(
    reverse_index_map: np.ndarray, gradients: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """SparseFillEmptyRowsGrad: return the gradients of SparseFillEmptyRows.

    The first is with respect to the values, the second with respect to the default value.
    """
    for name, given in (("reverse_index_map", reverse_index_map), ("grad_values", gradients)):
        if given.ndim != 1:
            raise InvalidArgumentError(f"{name} must be a vector, saw: {shape_text(given.shape)}")
    outside = (reverse_index_map < 0) | (reverse_index_map >= len(gradients))
    if outside.any():
        raise InvalidArgumentError(
            f"Elements in reverse index must be in [0, {len(gradients)}) but got "
            f"{reverse_index_map[outside.argmax()]}"
        )
    kept = np.zeros(len(gradients), bool)
    kept[reverse_index_map] = True
    return gradients[reverse_index_map], gradients[~kept].sum(dtype=gradients.dtype)


KERNELS = (
    KernelDef("SparseFillEmptyRows", sparse_fill_empty_rows),
    KernelDef("SparseFillEmptyRowsGrad", sparse_fill_empty_rows_grad),
)
