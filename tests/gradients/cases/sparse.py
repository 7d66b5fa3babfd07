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


CASES: dict[str, GradientCase] = {
    "SparseReorder": case(
        lambda values: ops.SparseReorder(INDICES[[2, 0, 3, 1]], values, SHAPE)[1], VALUES
    ),
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
