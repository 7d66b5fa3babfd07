"""Segment reductions of selected rows (embedding look-ups), and the gradients of the reductions.

TF: tensorflow/core/kernels/segment_reduction_ops_impl.h (SparseSegmentReductionOpBase)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.math.segment_math import check_ascending, reduce_rows

# For each kind, the function from the number of rows in a sum to the divisor of that sum.
DIVISORS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Sum": np.ones_like,
    "Mean": np.asarray,
    "SqrtN": np.sqrt,
}


def _check_indices(data: np.ndarray, indices: np.ndarray, segment_ids: np.ndarray) -> None:
    if np.ndim(indices) != 1:
        raise InvalidArgumentError("indices should be a vector.")
    if np.ndim(segment_ids) != 1:
        raise InvalidArgumentError("segment_ids should be a vector.")
    if indices.size != segment_ids.size:
        raise InvalidArgumentError("segment_ids and indices should have same size.")
    if np.ndim(data) < 1:
        raise InvalidArgumentError("Shape must be at least rank 1")


def _check_rows(data: np.ndarray, indices: np.ndarray, segment_ids: np.ndarray, count: int) -> None:
    """Raise InvalidArgumentError if `segment_ids` or `indices` are invalid.

    `segment_ids` must ascend within [0, `count`), and `indices` must be rows of `data`.
    """
    check_allocation((count, *data.shape[1:]), data.dtype)
    check_ascending(segment_ids, count)
    outside = (indices < 0) | (indices >= data.shape[0])
    if outside.any():
        first = int(np.argmax(outside))
        raise InvalidArgumentError(
            f"Bad: indices[{first}] == {indices[first]} out of range [0, {data.shape[0]})"
        )


def _reduce(
    kind: str, data: np.ndarray, indices: np.ndarray, segment_ids: np.ndarray, count: int
) -> np.ndarray:
    _check_rows(data, indices, segment_ids, count)
    rows: np.ndarray | None = indices
    wide = data
    if data.dtype.itemsize == 2 and kind != "Sum":
        rows, wide = None, data[indices].astype(np.float32)
    totals = reduce_rows(np.add, wide, segment_ids, count, 0, rows)
    if kind == "Sum":
        return totals
    sizes = np.maximum(np.bincount(segment_ids, minlength=count), 1)
    divisor = DIVISORS[kind](sizes.astype(wide.dtype))
    quotient = totals / divisor.reshape(-1, *(1,) * (data.ndim - 1))
    return quotient.astype(data.dtype, copy=False)


def _sparse_segment(kind: str) -> Kernel:
    def kernel(data: np.ndarray, indices: np.ndarray, segment_ids: np.ndarray) -> np.ndarray:
        _check_indices(data, indices, segment_ids)
        count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
        if segment_ids.size and segment_ids[-1] < 0:
            raise InvalidArgumentError("segment ids must be >= 0")
        return _reduce(kind, data, indices, segment_ids, count)

    return kernel


def _sparse_segment_with_num_segments(kind: str) -> Kernel:
    def kernel(
        data: np.ndarray, indices: np.ndarray, segment_ids: np.ndarray, num_segments: np.ndarray
    ) -> np.ndarray:
        if np.ndim(num_segments):
            raise InvalidArgumentError(
                f"num_segments should be a scalar, not shape {shape_text(num_segments.shape)}"
            )
        if num_segments < 0:
            raise InvalidArgumentError("segment ids must be >= 0")
        _check_indices(data, indices, segment_ids)
        if segment_ids.size and segment_ids[-1] >= num_segments:
            raise InvalidArgumentError("segment ids must be < num_segments")
        return _reduce(kind, data, indices, segment_ids, int(num_segments))

    return kernel


def _scaled_rows(
    kind: str, grad: np.ndarray, indices: np.ndarray, segment_ids: np.ndarray
) -> np.ndarray:
    """Return, for each index, the gradient of its segment divided by the divisor of the segment."""
    _check_indices(grad, indices, segment_ids)
    count = grad.shape[0]
    if segment_ids.size and segment_ids[-1] >= count:
        raise InvalidArgumentError("Invalid number of segments")
    outside = (segment_ids < 0) | (segment_ids >= count)
    if outside.any():
        first = segment_ids[outside][0]
        raise InvalidArgumentError(f"Segment id {first} out of range [0, {count}).")
    wide = np.float32 if grad.dtype.itemsize == 2 else grad.dtype
    sizes = np.maximum(np.bincount(segment_ids, minlength=count), 1).astype(wide)
    divisor = DIVISORS[kind](sizes).reshape(-1, *(1,) * (grad.ndim - 1))
    return (grad.astype(wide, copy=False) / divisor)[segment_ids]


def _check_output_rows(
    name: str, indices: np.ndarray, segment_ids: np.ndarray, size: np.ndarray
) -> int:  # as in TensorFlow, all of this is checked before the values of `indices`
    for each, what in ((indices, "indices"), (segment_ids, "segment_ids")):
        if np.ndim(each) != 1:
            raise InvalidArgumentError(f"{what} should be a vector.")
    if np.ndim(size):
        raise InvalidArgumentError(f"{name} should be a scalar.")
    if indices.size != segment_ids.size:
        raise InvalidArgumentError("segment_ids and indices should have same size.")
    if size < 0:
        raise InvalidArgumentError(f"Expected a non-negative size, got {size}")
    return int(size)


def _check_within(indices: np.ndarray, size: int) -> None:
    outside = (indices < 0) | (indices >= size)
    if outside.any():
        raise InvalidArgumentError(f"Index {indices[outside][0]} out of range [0, {size}).")


def _gradient(kind: str) -> Kernel:
    def kernel(
        grad: np.ndarray, indices: np.ndarray, segment_ids: np.ndarray, output_dim0: np.ndarray
    ) -> np.ndarray:
        size = _check_output_rows("output_dim0", indices, segment_ids, output_dim0)
        check_allocation((size, *grad.shape[1:]), grad.dtype)
        if not size or not indices.size:
            return np.zeros((size, *grad.shape[1:]), grad.dtype)
        rows = _scaled_rows(kind, grad, indices, segment_ids)
        _check_within(indices, size)
        return reduce_rows(np.add, rows, indices, size, 0).astype(grad.dtype, copy=False)

    return kernel


def _gradient_v2(kind: str) -> Kernel:
    def kernel(
        grad: np.ndarray,
        indices: np.ndarray,
        segment_ids: np.ndarray,
        dense_output_dim0: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        size = _check_output_rows("dense_output_dim0", indices, segment_ids, dense_output_dim0)
        if not size or not indices.size:
            return np.zeros((0, *grad.shape[1:]), grad.dtype), indices[:0]
        rows = _scaled_rows(kind, grad, indices, segment_ids)
        _check_within(indices, size)
        unique, places = np.unique(indices, return_inverse=True)
        totals = reduce_rows(np.add, rows, places, unique.size, 0)
        return totals.astype(grad.dtype, copy=False), unique

    return kernel


KERNELS: tuple[KernelDef, ...] = tuple(
    KernelDef(f"SparseSegment{kind}{suffix}", make(kind))
    for kind in DIVISORS
    for suffix, make in (
        ("", _sparse_segment),
        ("WithNumSegments", _sparse_segment_with_num_segments),
        ("Grad", _gradient),
        ("GradV2", _gradient_v2),
    )
)
