"""Sparse tensors, given as indices, values and shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import GradientCase, case

INDICES = np.array([[0, 1, 0], [0, 2, 1], [1, 0, 0], [1, 0, 1]], np.int64)
SHAPE = np.array([2, 3, 2], np.int64)
VALUES = [1.0, 2.0, 3.0, -0.5]
DENSE = (np.arange(12, dtype=np.float32) / 4 + 0.5).reshape(2, 3, 2)


def _sum(axes: Any, keep: bool) -> Any:
    return lambda values: ops.SparseReduceSum(INDICES, values, SHAPE, axes, keep_dims=keep)


def _elementwise(op: str) -> Any:
    return lambda values, dense: getattr(ops, op)(INDICES, values, SHAPE, dense)


OTHER_INDICES = np.array([[0, 1, 0], [0, 2, 0], [1, 0, 1]], np.int64)


def _softmax(values: Any) -> Any:
    return ops.SparseSoftmax(INDICES, values, SHAPE)


def _to_dense(indices: Any, shape: Any) -> Any:
    return lambda values, default: ops.SparseToDense(indices, np.array(shape), values, default)


def _add(threshold: float) -> Any:
    limit = np.float32(threshold)
    return lambda a, b: ops.SparseAdd(INDICES, a, SHAPE, OTHER_INDICES, b, SHAPE, limit)[1]


def _fill(values: Any, default: Any) -> Any:
    indices, shape = np.array([[0, 1], [2, 0], [2, 3]]), np.array([5, 4])
    return ops.SparseFillEmptyRows(indices, values, shape, default)[1]


CASES: dict[str, GradientCase] = {
    "SparseReorder": case(
        lambda values: ops.SparseReorder(INDICES[[2, 0, 3, 1]], values, SHAPE)[1], VALUES
    ),
    "SparseAdd": case(_add(0.0), VALUES, [3.0, -1.0, 2.0]),
    "SparseAdd_threshold": case(_add(2.0), VALUES, [3.0, -1.0, 2.0]),
    "SparseSlice": case(
        lambda values: ops.SparseSlice(
            INDICES, values, SHAPE, np.array([0, 1, 0]), np.array([2, 2, 2])
        )[1],
        VALUES,
    ),
    "SparseSoftmax": case(_softmax, VALUES),
    "SparseFillEmptyRows": case(_fill, VALUES[:3], 7.0),
    "SparseToDense": case(_to_dense(INDICES, [2, 3, 2]), VALUES, 7.0),
    "SparseReduceSum": case(_sum([0, -1], False), VALUES),
    "SparseReduceSum_kept": case(_sum([1], True), VALUES),
    "SparseTensorDenseAdd": case(
        lambda values, dense: ops.SparseTensorDenseAdd(INDICES, values, SHAPE, dense), VALUES, DENSE
    ),
    **{op: case(_elementwise(op), VALUES, DENSE)
       for op in ("SparseDenseCwiseMul", "SparseDenseCwiseDiv")},
    **{f"{op}_broadcast": case(_elementwise(op), VALUES, DENSE[0, :, :1])
       for op in ("SparseDenseCwiseMul", "SparseDenseCwiseDiv")},
}  # fmt: skip
