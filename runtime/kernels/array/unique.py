"""Kernels that find distinct or nonzero elements, subtract vectors, and unravel indices.

TF: tensorflow/core/kernels/{unique_op,listdiff_op,where_op,unravel_index_op}.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text

TABLE_SIZE = 4  # a table over a range of integers has fewer entries than this times the elements


def unique(value: np.ndarray, *, out_idx: DataType) -> tuple[np.ndarray, np.ndarray]:
    """Unique: return the distinct elements, and for each element of `value` its index among these.

    The distinct elements are in the order of their first occurrence.
    """
    result, numbers, _ = _unique(value, _vector_axis(value), out_idx)
    return result, numbers


def unique_v2(
    value: np.ndarray, axis: np.ndarray, *, out_idx: DataType
) -> tuple[np.ndarray, np.ndarray]:
    """UniqueV2: return the distinct slices along `axis`, and for each slice its index among these.

    `axis` has the shape [1]. If it is empty, `value` must be a vector.
    """
    result, numbers, _ = _unique(value, _unique_axis(value, axis), out_idx)
    return result, numbers


def unique_with_counts(
    value: np.ndarray, *, out_idx: DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """UniqueWithCounts: return the results of Unique, and the count of each distinct element."""
    return _unique(value, _vector_axis(value), out_idx)


def unique_with_counts_v2(
    value: np.ndarray, axis: np.ndarray, *, out_idx: DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """UniqueWithCountsV2: return the results of UniqueV2, and the count of each distinct slice."""
    return _unique(value, _unique_axis(value, axis), out_idx)


def _vector_axis(value: np.ndarray) -> int:
    if value.ndim != 1:
        raise InvalidArgumentError("unique expects a 1D vector.")
    return 0


def _unique_axis(value: np.ndarray, axis: np.ndarray) -> int:
    if axis.ndim != 1:
        raise InvalidArgumentError("axis expects a 1D vector.")
    if axis.size > 1:
        raise InvalidArgumentError("axis does not support input tensors larger than 1 elements")
    if not axis.size:
        return _vector_axis(value)
    dim = int(axis[0])
    if dim < 0:
        dim += value.ndim
    if not 0 <= dim < value.ndim:
        raise InvalidArgumentError(f"axis has to be between [0, {value.ndim})")
    return dim


def _unique(
    value: np.ndarray, axis: int, out_idx: DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    slices = np.moveaxis(value, axis, 0)
    rows = slices.reshape(len(slices), math.prod(slices.shape[1:]))
    first, numbers, counts = _first_occurrences(rows)
    result = np.moveaxis(slices[first], 0, axis)
    return result, numbers.astype(out_idx.numpy), counts.astype(out_idx.numpy)


def _first_occurrences(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the distinct rows of `rows` [n, m], in the order of their first occurrence.

    Returns (index of the first occurrence of each distinct row; for each row of `rows`, its index
    among the distinct rows; how often each distinct row occurs).
    """
    if rows.dtype.hasobject:
        return _first_occurrences_of_objects(rows)
    is_half = rows.dtype.kind in "fV" and rows.dtype.itemsize == 2
    if is_half and rows.shape[1] == 1:
        rows = _half_keys(rows)
    elif is_half or rows.dtype.kind == "V":  # np.unique does not sort these dtypes well
        rows = rows.astype(np.float32)
    if not rows.size:
        # Rows without elements are all equal to each other.
        count = min(len(rows), 1)
        return np.arange(count), np.zeros(len(rows), np.int64), np.full(count, len(rows))
    if rows.shape[1] == 1 and rows.dtype.kind in "iub":
        low, high = int(rows.min()), int(rows.max())
        if high - low < TABLE_SIZE * len(rows):
            # Differences of 64-bit integers are the same modulo 2⁶⁴, signed or not.
            places = rows[:, 0].astype(np.uint64) - np.uint64(low % (1 << 64))
            return _first_occurrences_by_table(places.astype(np.int64), high - low + 1)
    keys, axis = (rows[:, 0], None) if rows.shape[1] == 1 else (rows, 0)
    _, first, inverse, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True, axis=axis,
        equal_nan=False,
    )  # fmt: skip
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.ravel()], counts[order]


def _half_keys(rows: np.ndarray) -> np.ndarray:
    """Return integer keys that are equal if TensorFlow finds the 16-bit floats in `rows` equal.

    TensorFlow compares the floats of a vector by their bits, and a NaN differs from every element,
    also from another NaN. It compares slices of several floats as numbers, without these keys.
    """
    keys = rows.view(np.uint16).astype(np.int64)
    is_nan = np.isnan(rows)
    keys[is_nan] = (1 << 16) + np.arange(np.count_nonzero(is_nan))
    return keys


def _first_occurrences_by_table(
    keys: np.ndarray, span: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `_first_occurrences` of the integers `keys` in [0, `span`).

    A table of `span` entries takes the place of sorting.
    """
    places = np.arange(len(keys))
    table = np.zeros(span, np.int64)
    table[keys[::-1]] = places[::-1]  # a repeated key keeps its first occurrence, written last
    first = np.flatnonzero(table[keys] == places)
    table[keys[first]] = np.arange(len(first))
    numbers = table[keys]
    return first, numbers, np.bincount(numbers, minlength=len(first))


def _first_occurrences_of_objects(
    rows: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if rows.shape[1] == 1:
        keys = rows[:, 0].tolist()
        number_of = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        ordered = np.fromiter(map(number_of.__getitem__, keys), np.int64, len(keys))
        first_of, _, counts = _first_occurrences_by_table(ordered, len(number_of))
        return first_of, ordered, counts
    seen: dict[tuple[object, ...], int] = {}
    first: list[int] = []
    numbers = np.empty(len(rows), np.int64)
    for index, row in enumerate(map(tuple, rows.tolist())):
        check_task()
        number = seen.setdefault(row, len(seen))
        if number == len(first):
            first.append(index)
        numbers[index] = number
    return np.array(first, np.int64), numbers, np.bincount(numbers, minlength=len(first))


def list_diff(
    first: np.ndarray, second: np.ndarray, *, out_idx: DataType
) -> tuple[np.ndarray, np.ndarray]:
    """ListDiff: return the elements of `first` that are not in `second`, and their indices."""
    for name, given in (("x", first), ("y", second)):
        if given.ndim != 1:
            raise InvalidArgumentError(f"{name} should be a 1D vector.")
    if first.dtype.hasobject:
        known = set(second.tolist())
        kept = np.array([item not in known for item in first.tolist()], bool)
    elif first.dtype.kind in "fV" and first.dtype.itemsize == 2:
        known = second[~np.isnan(second)].view(np.uint16)
        kept = np.isnan(first) | ~np.isin(first.view(np.uint16), known)
    elif first.dtype.kind == "V":
        kept = ~np.isin(first.astype(np.float32), second.astype(np.float32))
    else:
        kept = ~np.isin(first, second)
    return first[kept], np.flatnonzero(kept).astype(out_idx.numpy)


def where(condition: np.ndarray) -> np.ndarray:
    """Where: return the indices [n, rank] of the nonzero elements."""
    if condition.ndim < 1 or condition.ndim > 8:
        raise InvalidArgumentError(f"WhereOp : Unhandled input dimensions: {condition.ndim}")
    return np.argwhere(condition).astype(np.int64)


def unravel_index(indices: np.ndarray, dims: np.ndarray) -> np.ndarray:
    """UnravelIndex: convert flat `indices` [n] to coordinates [rank, n].

    `dims` is the shape of the tensor that the indices refer to.
    """
    if indices.ndim > 1:
        raise InvalidArgumentError(
            f'The indices can only be scalar or vector, got "{shape_text(indices.shape)}"'
        )
    if dims.ndim != 1:
        raise InvalidArgumentError(f'The indices can only be 1-D, got "{shape_text(dims.shape)}"')
    sizes = dims.tolist()
    for index, size in enumerate(sizes if indices.size else ()):
        if size < 0:
            raise InvalidArgumentError(
                f"Input dims cannot be negative. Got dim = {size} at index {index}"
            )
        if size == 0:
            raise InvalidArgumentError(
                f"Input dims cannot contain a dim of zero, but dims contains zero at index {index}"
            )
    if not indices.size:
        raise InvalidArgumentError(
            f"received empty tensor indices: Tensor<type: {from_numpy(indices.dtype).tf_name} "
            f"shape: {shape_text(indices.shape)} values: >"
        )
    if math.prod(sizes) > np.iinfo(dims.dtype).max:
        width = len(str(max(sizes)))
        text = " ".join(str(size).rjust(width) for size in sizes)
        raise InvalidArgumentError(f"Input dims product is causing integer overflow: ({text})")
    if (indices >= math.prod(sizes)).any():
        raise InvalidArgumentError("index is out of bound as with dims")
    result = np.empty((len(sizes), *indices.shape), dims.dtype)
    left = np.fmod(indices.astype(np.int64), math.prod(sizes))
    for axis in range(len(sizes)):
        stride = math.prod(sizes[axis + 1 :])
        # As in TensorFlow, negative indices are accepted and quotients rounded toward zero (fmod).
        inner = np.fmod(left, stride)
        result[axis] = (left - inner) // stride
        left = inner
    return result


KERNELS = (
    KernelDef("ListDiff", list_diff),
    KernelDef("Unique", unique),
    KernelDef("UniqueV2", unique_v2),
    KernelDef("UniqueWithCounts", unique_with_counts),
    KernelDef("UniqueWithCountsV2", unique_with_counts_v2),
    KernelDef("UnravelIndex", unravel_index),
    KernelDef("Where", where),
)
