"""DenseCountSparseOutput, SparseCountSparseOutput, RaggedCountSparseOutput."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.case import Case, case

NO_WEIGHTS = np.zeros(0, np.int64)
ATTRS = {"minlength": -1, "maxlength": -1, "binary_output": False}
LIMITS: tuple[dict[str, Any], ...] = (
    {}, {"minlength": 9}, {"maxlength": 3}, {"maxlength": 0}, {"minlength": 2, "maxlength": 5},
    {"binary_output": True},
)  # fmt: skip


def int64(values: object) -> np.ndarray:
    return np.array(values, np.int64)


def count(op: str, *inputs: Any, weights: np.ndarray = NO_WEIGHTS, **attrs: Any) -> Case:
    return case(op, *inputs, weights, message=True, **{**ATTRS, **attrs})


MATRIX = int64([[3, 1, 1], [0, 7, 1]])
WEIGHTS = np.array([[1, 2, 3], [4, 5, 6]])
SPARSE = (int64([[0, 0], [0, 2], [2, 1]]), int64([1, 1, 5]), int64([4, 3]))
RAGGED = (int64([0, 2, 2, 3]), int64([1, 1, 5]))
DENSE_OP, SPARSE_OP, RAGGED_OP = (
    f"{kind}CountSparseOutput" for kind in ("Dense", "Sparse", "Ragged")
)

CASES = (
    *(count(DENSE_OP, MATRIX, **limits) for limits in LIMITS),
    *(count(DENSE_OP, MATRIX.astype(np.int32), weights=WEIGHTS.astype(t), **limits)
      for limits in LIMITS for t in (np.int32, np.int64, np.float32, np.float64)),
    *(count(DENSE_OP, int64(values))
      for values in ([1, 5, 1], [-1, 2], 3, [[[1]]], [[1, 2], [3, -4]])),
    *(count(DENSE_OP, values, minlength=3) for values in (MATRIX[:0], MATRIX[:, :0])),
    count(DENSE_OP, MATRIX, weights=np.float32([1, 2, 3])),
    *(count(SPARSE_OP, *SPARSE, **limits) for limits in LIMITS),
    *(count(SPARSE_OP, *SPARSE, weights=WEIGHTS[0].astype(np.float32), **limits)
      for limits in LIMITS),
    count(SPARSE_OP, *SPARSE, weights=np.float32([1, 2])),
    *(
        count(SPARSE_OP, int64(indices), int64(values), int64(shape))
        for indices, values, shape in (
            ([[0], [2]], [1, 5], [4]), ([[0, 0], [0, 2], [5, 1]], [1, 1, 5], [4, 3]),
            ([[2, 0], [0, 2], [2, 1]], [1, 1, 5], [4, 3]), ([0, 1], [1, 2], [4]),
            ([[0, 0]], [1, 2], [4, 3]), ([[0, 0]], [1], [4, 3, 2]), ([[0, 0, 0]], [1], [4, 3, 2]),
            ([[0, 0]], [-1], [4, 3]), (np.zeros((0, 2)), [], [4, 3]),
            (np.zeros((0, 2)), [], [0, 3]), ([[0, 0]], [1], [-4, 3]), ([[0, 0]], [[1]], [4, 3]),
            ([[0, 0]], [1], [[4, 3]]), ([[0, 0]], [1], []), ([[-1, 0]], [1], [4, 3]),
        )
    ),
    *(count(RAGGED_OP, *RAGGED, **limits) for limits in LIMITS),
    *(count(RAGGED_OP, *RAGGED, weights=WEIGHTS[0].astype(np.float32), **limits)
      for limits in LIMITS),
    count(RAGGED_OP, *RAGGED, weights=np.float32([1, 2])),
    *(
        count(RAGGED_OP, int64(splits), int64(values))
        for splits, values in (
            ([1, 2, 3], [1, 1, 5]), ([0, 2, 2], [1, 1, 5]), ([], [1]), ([0, 2, 1, 3], [1, 1, 5]),
            ([0, 1], [-1]), ([0], []), ([0, 5], [1]), ([5, 0, 1], [1]), ([0, 0], []),
            ([[0], [2], [2], [3]], [1, 1, 5]), ([[0, 1], [2, 3]], [1, 1, 5]), (0, [1]),
        )
    ),
)  # fmt: skip
