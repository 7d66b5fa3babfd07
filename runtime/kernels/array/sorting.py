"""Kernels that find the largest or the n-th smallest elements along a dimension.

TF: tensorflow/core/kernels/{topk_op,nth_element_op}.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text


def top_k(value: np.ndarray, *, k: int) -> tuple[np.ndarray, np.ndarray]:
    """TopK: return the `k` largest elements and their indices, as TopKV2 does."""
    return _top_k(value, k, DataType.INT32)


def top_k_v2(
    value: np.ndarray, k: np.ndarray, *, index_type: DataType
) -> tuple[np.ndarray, np.ndarray]:
    """TopKV2: return the `k` largest elements of the last dimension, and their indices.

    They are in descending order, equal elements in the order of their indices. NaN is larger than
    any number. If the attribute `sorted` is false, the op may return any order; this kernel returns
    the same order then.
    """
    if k.ndim:
        raise InvalidArgumentError(f"k must be scalar, got shape {shape_text(k.shape)}")
    return _top_k(value, int(k), index_type)


def _top_k(value: np.ndarray, k: int, index_type: DataType) -> tuple[np.ndarray, np.ndarray]:
    if k < 0:
        raise InvalidArgumentError(f"Need k >= 0, got {k}")
    if value.ndim < 1:
        raise InvalidArgumentError(f"input must be >= 1-D, got shape {shape_text(value.shape)}")
    columns = value.shape[-1]
    if columns < k:
        raise InvalidArgumentError(f"input must have at least k columns. Had {columns}, needed {k}")
    rows = value.reshape(math.prod(value.shape[:-1]), columns)
    chosen = _largest(_sortable(rows), k)
    result_shape = (*value.shape[:-1], k)
    values = np.take_along_axis(rows, chosen, -1).reshape(result_shape)
    return values, chosen.reshape(result_shape).astype(index_type.numpy)


def approx_top_k(
    input: np.ndarray,
    *,
    k: int,
    reduction_dimension: int,
    is_max_k: bool,
    **_speed_and_recall: object,
) -> tuple[np.ndarray, np.ndarray]:
    """ApproxTopK: return the `k` largest (or smallest) elements along an axis, and their indices.

    The best element is first. The result is exact, which satisfies any requested recall. There are
    always `k` elements; the attributes for speed and recall have no effect.
    """
    if not -input.ndim <= reduction_dimension < input.ndim:
        raise InvalidArgumentError(
            f"Invalid reduction dimension: {reduction_dimension}. Must be within the range of "
            f"[{-input.ndim}, {input.ndim - 1}]"
        )
    along = np.moveaxis(input, reduction_dimension, -1)
    if not is_max_k:
        along = -along
    found = _top_k(along, k, DataType.INT32)
    values, chosen = (np.moveaxis(each, -1, reduction_dimension) for each in found)
    return (values if is_max_k else -values), chosen


def _sortable(rows: np.ndarray) -> np.ndarray:
    """Return `rows` in a dtype that numpy sorts fast.

    16-bit floats become float32, which does not change their order.
    """
    return rows.astype(np.float32) if rows.dtype.itemsize == 2 and rows.dtype.kind in "fV" else rows


def _largest(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the columns [n, k] of the k largest elements of each row, in descending order."""
    count, columns = rows.shape
    if k == 1 and columns:
        return rows.argmax(-1)[:, None]  # argmax takes NaN as the maximum
    if not 0 < k * 8 < columns or (rows.dtype.kind == "f" and np.isnan(rows).any()):
        return _descending(rows)[:, :k]
    threshold = np.partition(rows, columns - k, -1)[:, columns - k, None]
    above = rows > threshold
    equal = rows == threshold
    wanted = k - above.sum(-1, keepdims=True)
    candidates = np.nonzero(above | (equal & (equal.cumsum(-1) <= wanted)))[1].reshape(count, k)
    order = _descending(np.take_along_axis(rows, candidates, -1))
    return np.take_along_axis(candidates, order, -1)


def _descending(rows: np.ndarray) -> np.ndarray:
    """Return the columns of each row in descending order of the elements; the order is stable.

    It is obtained as the reverse of the ascending order of the reversed row.
    """
    return (rows.shape[-1] - 1) - np.argsort(rows[:, ::-1], -1, kind="stable")[:, ::-1]


def nth_element(value: np.ndarray, n: np.ndarray, *, reverse: bool) -> np.ndarray:
    """NthElement: return the n-th smallest element of the last dimension, counted from 0.

    If `reverse` is set, return the n-th largest element.
    """
    if n.ndim:
        raise InvalidArgumentError(f"N must be scalar but has rank {n.ndim}")
    if n < 0:
        raise InvalidArgumentError(f"n must be non-negative but is {n}")
    if value.ndim < 1:
        raise InvalidArgumentError(f"Input must be at least rank 1 but is rank {value.ndim}")
    columns = value.shape[-1]
    if n >= columns:
        raise InvalidArgumentError(f"Input must have last dimension > n = {n}")
    place = columns - 1 - int(n) if reverse else int(n)
    ordered = np.partition(_sortable(value), place, -1)[..., place]
    return ordered.astype(value.dtype)


KERNELS = (
    KernelDef("ApproxTopK", approx_top_k),
    KernelDef("NthElement", nth_element),
    KernelDef("TopK", top_k),
    KernelDef("TopKV2", top_k_v2),
)
