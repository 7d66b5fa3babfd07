"""Segment reductions: sums, means, products and extremes of all rows with the same segment id.

TF: tensorflow/core/kernels/segment_reduction_ops_impl.h
"""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import NUMBER_TYPES, REAL_NUMBER_TYPES
from runtime.framework.shapes import position_text, shape_text
from runtime.kernels.math.reductions import is_floating
from runtime.kernels.math.row_runs import combine_runs, run_starts, stable_order

finfo: Callable[[np.dtype], np.finfo] = ml_dtypes.finfo  # np.finfo does not support bfloat16


def reduce_rows(
    ufunc: np.ufunc,
    data: np.ndarray,
    ids: np.ndarray,
    count: int,
    initial: np.generic | float,
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """Combine all rows of `data` that have the same id with `ufunc`; return `[count, …]`.

    `ids[i]` is the id of row `rows[i]`, or of row i if `rows` is None. Row n of the result combines
    the rows with id n; it is `initial` if there are none. Ids outside [0, `count`) are ignored.
    """
    inner = data.shape[1:]
    check_allocation((count, *inner), data.dtype)
    result = np.full((count, *inner), initial, data.dtype)
    inside = (ids >= 0) & (ids < count)
    if not inside.all():
        rows = np.flatnonzero(inside) if rows is None else rows[inside]
        ids = ids[inside]
    if not ids.size or not result.size:
        return result
    if ufunc is np.add and data.dtype.char in "fd" and math.prod(inner) == 1:
        numbers = np.ravel(data) if rows is None else np.ravel(data)[rows]
        if data.dtype.char == "d":
            return np.bincount(ids, numbers, count).reshape(result.shape)
        # Added in order and in float32, because graphs subtract squares of sums from other sums.
        np.add.at(np.ravel(result), ids.astype(np.intp, copy=False), numbers)
        return result
    if (ids[1:] < ids[:-1]).any():
        order = stable_order(ids, count)
        ids = ids[order]
        rows = order if rows is None else rows[order]
    starts = run_starts(ids)
    wide = np.float32 if data.dtype.itemsize == 2 and is_floating(data.dtype) else data.dtype
    runs = combine_runs(ufunc, data, rows, starts, np.dtype(wide))
    result[ids[starts]] = runs.astype(data.dtype, copy=False)
    return result


def segment_mean_rows(data: np.ndarray, ids: np.ndarray, count: int) -> np.ndarray:
    """Return the mean of the rows of each id; integers are rounded toward zero.

    The mean is 0 for an id without rows.
    """
    totals = reduce_rows(np.add, data, ids, count, 0)
    sizes = np.maximum(np.bincount(ids, minlength=count), 1).reshape(-1, *(1,) * (data.ndim - 1))
    if data.dtype.kind in "iu":
        # A sum that wrapped may be the lowest integer, whose absolute value does not exist.
        sizes = sizes.astype(data.dtype)
        return (totals - np.fmod(totals, sizes)) // sizes
    return (totals / sizes.astype(data.dtype)).astype(data.dtype)


def check_ascending(ids: np.ndarray, count: int) -> None:
    """Raise InvalidArgumentError if `ids` descend or are not in [0, `count`).

    The first run of equal ids that is wrong determines the message.
    """
    if not ids.size:
        return
    run_ends = np.flatnonzero(ids[1:] != ids[:-1])
    runs = ids[np.append(run_ends, ids.size - 1)]
    falls = np.append(runs[1:] < runs[:-1], False)
    outside = (runs < 0) | (runs >= count)
    wrong = falls | outside
    if not wrong.any():
        return
    first = int(np.argmax(wrong))
    if falls[first]:
        raise InvalidArgumentError("segment ids are not increasing")
    raise InvalidArgumentError(
        f"Segment id {runs[first]} out of range [0, {count}), possibly because 'segment_ids' "
        "input is not sorted."
    )


def check_segment_ids(data: np.ndarray, ids: np.ndarray) -> int:
    """Return the number of segments, which is the last of the sorted `ids` + 1.

    Raises InvalidArgumentError if the ids are not sorted, are negative or do not fit `data`.
    """
    if np.ndim(ids) != 1:
        raise InvalidArgumentError("segment_ids should be a vector.")
    if np.ndim(data) < 1:
        raise InvalidArgumentError("input must be at least rank 1")
    if ids.size != data.shape[0]:
        raise InvalidArgumentError("segment_ids should be the same size as dimension 0 of input.")
    if not ids.size:
        return 0
    if ids[-1] < 0:
        raise InvalidArgumentError("segment ids must be >= 0")
    count = int(ids[-1]) + 1
    check_ascending(ids, count)
    return count


def _segment(ufunc: np.ufunc, default: int) -> Kernel:
    """Return a kernel that combines rows with sorted ids by `ufunc`.

    `default` is the value of a segment without rows.
    """

    def kernel(data: np.ndarray, segment_ids: np.ndarray) -> np.ndarray:
        count = check_segment_ids(data, segment_ids)
        return reduce_rows(ufunc, data, segment_ids, count, default)

    return kernel


def segment_mean(data: np.ndarray, segment_ids: np.ndarray) -> np.ndarray:
    """SegmentMean: return the mean of the rows of each segment; 0 for a segment without rows."""
    return segment_mean_rows(data, segment_ids, check_segment_ids(data, segment_ids))


def _constant(value: int) -> Callable[[np.dtype], np.generic | int]:
    return lambda dtype: value


def _lowest(dtype: np.dtype) -> np.generic | int:
    return _limits(dtype).min


def _highest(dtype: np.dtype) -> np.generic | int:
    return _limits(dtype).max


def _limits(dtype: np.dtype) -> np.finfo | np.iinfo:
    return finfo(dtype) if is_floating(dtype) else np.iinfo(dtype)


def _unsorted(ufunc: np.ufunc, default: Callable[[np.dtype], np.generic | int]) -> Kernel:
    """Return a kernel that combines rows by `ufunc`, with ids of any order and shape.

    Rows with negative ids are ignored. `default(dtype)` is the value of a segment without rows.
    """

    def kernel(data: np.ndarray, segment_ids: np.ndarray, num_segments: np.ndarray) -> np.ndarray:
        count = _segment_count(num_segments)
        rank = np.ndim(segment_ids)
        if np.shape(data)[:rank] != np.shape(segment_ids):
            raise InvalidArgumentError(
                f"data.shape = {shape_text(np.shape(data))} does not start with "
                f"segment_ids.shape = {shape_text(np.shape(segment_ids))}"
            )
        ids = np.ravel(segment_ids)
        too_large = ids >= count
        inner = data.shape[rank:]
        if too_large.any() and math.prod(inner):
            first = int(np.argmax(too_large))
            raise InvalidArgumentError(
                f"segment_ids{position_text(first, np.shape(segment_ids))} = {ids[first]} "
                f"is out of range [0, {count})"
            )
        rows = np.reshape(data, (ids.size, *inner))
        initial = default(data.dtype)
        result = reduce_rows(ufunc, rows, ids, count, initial)
        # TensorFlow starts a maximum or minimum at the finite limit of the dtype. An infinity
        # beyond that limit therefore has no effect; NaN stays.
        if ufunc is np.fmax:
            result[result < initial] = initial
        elif ufunc is np.fmin:
            result[result > initial] = initial
        return result

    return kernel


def _segment_count(num_segments: np.ndarray) -> int:
    if np.ndim(num_segments):
        raise InvalidArgumentError(
            f"num_segments should be a scalar, not shape {shape_text(num_segments.shape)}"
        )
    if num_segments < 0:
        raise InvalidArgumentError(f"Input num_segments == {num_segments} must not be negative.")
    return int(num_segments)


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("SegmentSum", _segment(np.add, 0), {"T": NUMBER_TYPES}),
    KernelDef("SegmentProd", _segment(np.multiply, 1), {"T": NUMBER_TYPES}),
    # fmax and fmin ignore NaN, as TensorFlow's comparisons do.
    KernelDef("SegmentMax", _segment(np.fmax, 0)),
    KernelDef("SegmentMin", _segment(np.fmin, 0)),
    KernelDef("SegmentMean", segment_mean, {"T": NUMBER_TYPES}),
    KernelDef("UnsortedSegmentSum", _unsorted(np.add, _constant(0)), {"T": NUMBER_TYPES}),
    KernelDef("UnsortedSegmentProd", _unsorted(np.multiply, _constant(1)), {"T": NUMBER_TYPES}),
    KernelDef("UnsortedSegmentMax", _unsorted(np.fmax, _lowest), {"T": REAL_NUMBER_TYPES}),
    KernelDef("UnsortedSegmentMin", _unsorted(np.fmin, _highest), {"T": REAL_NUMBER_TYPES}),
)
