"""Kernels for ragged tensors: ranges, gathers, filling of empty rows, conversion to sparse.

A ragged tensor consists of nested row splits, outermost first, and values. Row i of a level
consists of the rows (or values) `splits[i]:splits[i + 1]` of the next level.

TF: tensorflow/core/kernels/ragged_{range_op,gather_op,tensor_to_sparse_kernel}.cc,
fill_empty_rows_functor.h
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.array.gather import check_indices
from runtime.kernels.sparse.sparse_fill_empty_rows import (
    fill_empty_rows,
    sparse_fill_empty_rows_grad,
)

PAST_VALUES = "Final value of ragged splits must match the length the corresponding ragged values."


def splits_of_lengths(lengths: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the row splits `[rows + 1]` of rows that have these lengths."""
    splits = np.zeros(len(lengths) + 1, dtype)
    np.cumsum(lengths, out=splits[1:])
    return splits


def _concatenated_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the concatenation of ranges of integers: start, start + 1, … of each range."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)


def ragged_range(
    starts: np.ndarray,
    limits: np.ndarray,
    deltas: np.ndarray,
    *,
    Tsplits: DataType,  # noqa: N803 # the attribute's name
) -> tuple[np.ndarray, np.ndarray]:
    """RaggedRange: return a ragged tensor (row splits, values) of ranges.

    Row i counts from starts[i] by deltas[i] up to, but not including, limits[i].
    """
    inputs = {"starts": starts, "limits": limits, "deltas": deltas}
    for name, given in inputs.items():
        if given.ndim > 1:
            raise InvalidArgumentError(f"{name} must be a scalar or vector")
    rows = {given.size for given in inputs.values() if given.ndim}
    if len(rows) > 1:
        raise InvalidArgumentError("starts, limits, and deltas must have the same shape")
    count = rows.pop() if rows else 1
    start, limit, delta = (np.broadcast_to(given, (count,)) for given in inputs.values())
    if not delta.all():
        raise InvalidArgumentError("Requires delta != 0")
    lengths = _range_lengths(start, limit, delta, np.iinfo(Tsplits.numpy).max)
    columns = _concatenated_ranges(np.zeros(count, np.int64), lengths)
    values = np.repeat(start, lengths) + columns * np.repeat(delta, lengths)
    return splits_of_lengths(lengths, Tsplits.numpy), values.astype(start.dtype)


def _range_lengths(
    start: np.ndarray, limit: np.ndarray, delta: np.ndarray, most: int
) -> np.ndarray:
    # The lengths are first computed in float64, which does not overflow, to reject a huge range.
    spans = (limit.astype(np.float64) - start) / delta
    if not np.isfinite(spans).all() or spans.max(initial=0) > most:
        raise InvalidArgumentError(f"Requires ((limit - start) / delta) <= {most}")
    total = np.maximum(0, np.ceil(spans)).sum()
    if total > most:
        raise InvalidArgumentError(
            "The total range size overflowed. Consider using int64 instead of int32 for "
            "row_splits_dtype."
        )
    check_allocation((int(total) + 1,), start.dtype)
    if start.dtype.kind == "f":
        return np.maximum(0, np.ceil(spans)).astype(np.int64)
    exact: np.ndarray = -((start.astype(np.int64) - limit) // delta.astype(np.int64))
    return np.maximum(0, exact)


def check_splits(splits: np.ndarray, values: int) -> None:
    """Raise InvalidArgumentError unless `splits` is sorted and within 0 … `values`."""
    if not splits.size:
        raise InvalidArgumentError("Ragged splits may not be empty")
    if splits[0] < 0:
        raise InvalidArgumentError("Ragged splits must be non-negative")
    if (np.diff(splits) < 0).any():
        raise InvalidArgumentError("Ragged splits must be sorted")
    if splits[-1] > values:
        raise InvalidArgumentError("Ragged splits must not point past values")


def check_splits_cover(splits: np.ndarray, values: int | None = None) -> None:
    """Raise InvalidArgumentError unless `splits` is sorted and starts with 0.

    The last element must be `values` if that is not None.
    """
    problem = None
    falls = np.flatnonzero(splits[1:] < splits[:-1]) if splits.ndim == 1 else np.zeros(0)
    if splits.ndim != 1:
        problem = f"ragged splits must be rank 1 but is rank {splits.ndim}"
    elif not splits.size:
        problem = "ragged splits must have at least one splits, but is empty"
    elif splits[0]:
        problem = f"first element of ragged splits  must be 0 but is {splits[0]}"
    elif falls.size:
        at = int(falls[0])
        problem = (
            f"ragged splits must be monotonically increasing, but ragged_splits[{at + 1}]="
            f"{splits[at + 1]} is smaller than row_splits[{at}]={splits[at]}"
        )
    elif values is not None and splits[-1] != values:
        problem = (
            f"last element of ragged splits must be the number of ragged values({values}) "
            f"but is {splits[-1]}"
        )
    if problem:
        raise InvalidArgumentError(f"Invalid ragged splits: {problem}")


def ragged_gather(
    *nested_splits_values_indices: np.ndarray,
    OUTPUT_RAGGED_RANK: int,  # noqa: N803 # the attribute's name
) -> tuple[np.ndarray, ...]:
    """RaggedGather: return the rows of a ragged tensor at `indices` [I…].

    `indices` is the last input. Splits of a higher rank are flattened; the number of rows is the
    first dimension of the first splits, less one.
    """
    *given, values, indices = nested_splits_values_indices
    if not given[0].ndim:
        raise InvalidArgumentError("Split tensors must not be scalars")
    check_indices(indices, len(given[0]) - 1)
    if not values.ndim:
        raise InvalidArgumentError("params.rank must be nonzero")
    nested = [splits.ravel() for splits in given]
    if len(nested) + indices.ndim - 1 != OUTPUT_RAGGED_RANK:
        raise InvalidArgumentError(
            f"OUTPUT_RAGGED_RANK is {OUTPUT_RAGGED_RANK}, but splits and indices give "
            f"{len(nested) + indices.ndim - 1}"
        )
    for splits, following in zip(nested, [*nested[1:], None], strict=True):
        check_splits(splits, len(values) if following is None else len(following) - 1)
    results = [
        np.arange(math.prod(indices.shape[: axis + 1]) + 1, dtype=nested[0].dtype)
        * indices.shape[axis + 1]
        for axis in range(indices.ndim - 1)
    ]
    rows = indices.ravel()
    for splits in nested:
        lengths = splits[rows + 1] - splits[rows]
        results.append(splits_of_lengths(lengths, splits.dtype))
        check_allocation((int(results[-1][-1]),), np.int64)
        rows = _concatenated_ranges(splits[rows], lengths)
    # If the index is a scalar, the result is one row, whose length needs no splits.
    return (*(results if indices.ndim else results[1:]), np.take(values, rows, 0))


def ragged_tensor_to_sparse(
    *nested_splits_and_values: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """RaggedTensorToSparse: return the indices [n, rank], the values [n] and the dense shape."""
    *given, values = nested_splits_and_values
    if any(not each.ndim for each in (*given, values)):
        raise InvalidArgumentError("Ragged splits and values must have rank 1 or more")
    nested = [splits.ravel() for splits in given]
    rows = None
    for splits in nested:
        _check_whole_splits(splits, rows)
        rows = int(splits[-1])
    if len(values) != rows:
        raise InvalidArgumentError(PAST_VALUES)
    sizes = [len(given[0]) - 1]
    columns: list[np.ndarray] = [np.arange(len(nested[0]) - 1)]
    for splits in nested:
        lengths = np.diff(splits)
        columns = [np.repeat(column, lengths) for column in columns]
        columns.append(_concatenated_ranges(np.zeros(len(lengths), np.int64), lengths))
        sizes.append(int(lengths.max(initial=0)))
    inner = values.shape[1:]
    count = math.prod(inner)
    columns = [np.repeat(column, count) for column in columns]
    positions = np.indices(inner).reshape(len(inner), count)
    columns += [np.tile(position, len(values)) for position in positions]
    indices = np.stack(columns, -1).astype(np.int64)
    return indices, values.reshape(-1), np.array([*sizes, *inner], np.int64)


def _check_whole_splits(splits: np.ndarray, rows: int | None) -> None:
    if not splits.size:
        raise InvalidArgumentError("ragged splits may not be empty.")
    if splits[0] != 0:
        raise InvalidArgumentError("First value of ragged splits must be 0.")
    falls = np.diff(splits) < 0
    if falls.any():
        first = int(falls.argmax())
        raise InvalidArgumentError(
            f"Ragged splits should be non decreasing, but we got {splits[first]} followed by "
            f"{splits[first + 1]}"
        )
    if rows is not None and len(splits) != rows + 1:
        raise InvalidArgumentError(PAST_VALUES)


def ragged_fill_empty_rows(
    value_rowids: np.ndarray, values: np.ndarray, nrows: np.ndarray, default_value: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """RaggedFillEmptyRows: add `default_value` to every row without a value.

    Return (row ids, values, whether each row was empty [nrows], new index of each old value [n]).
    """
    for name, vector in (("value_rowids", value_rowids), ("values", values)):
        if vector.ndim != 1:
            raise InvalidArgumentError(f"{name} must be a vector, saw: {shape_text(vector.shape)}")
    if len(values) != len(value_rowids):
        raise InvalidArgumentError(
            f"The length of `values` ({len(values)}) must match the first dimension of "
            f"`value_rowids` ({len(value_rowids)})."
        )
    for name, scalar in (("nrows", nrows), ("default_value", default_value)):
        if np.ndim(scalar):
            raise InvalidArgumentError(f"{name} must be a scalar, saw: {shape_text(scalar.shape)}")
    if nrows < 0:
        raise InvalidArgumentError(f"Expected shape dimensions to be non-negative, got {nrows}")
    rows, filled, empty, places = fill_empty_rows(
        value_rowids[:, None], values, int(nrows), default_value
    )
    # If `nrows` is 0, TensorFlow returns the row ids as a matrix.
    return rows[:, 0] if nrows else rows, filled, empty, places


KERNELS = (
    KernelDef("RaggedFillEmptyRows", ragged_fill_empty_rows),
    KernelDef("RaggedFillEmptyRowsGrad", sparse_fill_empty_rows_grad),
    KernelDef("RaggedGather", ragged_gather),
    KernelDef("RaggedRange", ragged_range),
    KernelDef("RaggedTensorToSparse", ragged_tensor_to_sparse),
)
