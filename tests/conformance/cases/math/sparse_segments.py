"""Segment reductions of selected rows, and their gradients."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

KINDS = ("Sum", "Mean", "SqrtN")
X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
GOOD = (([0, 2, 1], [0, 0, 2]), ([0, 2, 1], [1, 1, 1]), ([], []), ([2, 2, 2, 0], [0, 1, 1, 3]))
BAD = (
    ([0, 5, 1], [0, 0, 2]),
    ([0, 2], [0, 0, 2]),
    ([0, 2, 1], [0, 2, 1]),
    ([0, 2, -1], [1, 1, 1]),
    ([0], [-1]),
    ([[0]], [0]),
)
GRAD_GOOD = (([0, 2, 1], [0, 0, 2], 4), ([3, 3, 3], [0, 1, 2], 4), ([0, 1], [0, 2], 2))
GRAD_BAD = (
    ([0, 7, 1], [0, 0, 2], 4),
    ([0, 1, 1], [0, 0, 5], 4),
    ([0, 1, 1], [0, 0, -1], 4),
    ([0, 1], [0, 0, 1], 4),
)


def int32(values: object) -> np.ndarray:
    return np.array(values, np.int32)


UNSORTED = (
    (0, 1, 2, 0), (-1, 0, 1, 1), (0, 0, 0, -1), (0, 1, 2, -1), (0, 2, 1, 1), (3, 2, 1, 0),
    (0, 1, -1, 1), (1, 0, 1, 1), (0, 9, 1, 1),
)  # fmt: skip

CASES: tuple[Case, ...] = (
    *(
        case(f"SparseSegment{kind}", X.astype(t), int32([0, 2, 1]), int32([0, 0, 2]))
        for kind in KINDS
        for t in FLOATS
    ),
    *(
        case("SparseSegmentSum", X.astype(t), int32([0, 2, 1]), np.array([0, 0, 2]))
        for t in (np.int8, np.int32, np.int64, np.uint8)
    ),
    *(
        case(f"SparseSegment{kind}", X, int32(indices), int32(ids))
        for kind in KINDS
        for indices, ids in GOOD
    ),
    *(
        case(f"SparseSegment{kind}", X, int32(indices), int32(ids), message=True)
        for kind in KINDS
        for indices, ids in BAD
    ),
    *(
        case(f"SparseSegment{kind}WithNumSegments", X, int32(indices), int32(ids), int32(5))
        for kind in KINDS
        for indices, ids in GOOD
    ),
    *(
        case(
            f"SparseSegment{kind}WithNumSegments",
            X,
            int32([0, 2, 1]),
            int32([0, 0, 2]),
            int32(count),
            message=True,
        )
        for kind in KINDS
        for count in (2, [5])
    ),
    *(
        case(f"SparseSegment{kind}{suffix}", X.astype(t), int32(indices), int32(ids), int32(rows))
        for kind in KINDS
        for suffix in ("Grad", "GradV2")
        for indices, ids, rows in GRAD_GOOD
        for t in (np.float32, np.float64)
    ),
    *(
        case(f"SparseSegment{kind}", X, int32([1, 2, 0, 1]), int32(ids), message=True)
        for kind in KINDS
        for ids in UNSORTED
    ),
    *(
        case(
            f"SparseSegment{kind}Grad",
            X[:rows],
            int32([1, 2, 0, 1]),
            int32(ids),
            int32(3),
            message=True,
        )
        for kind in KINDS
        for ids in UNSORTED
        for rows in (0, 2)
    ),
    *(
        case(f"SparseSegment{kind}Grad", X, int32(indices), int32(ids), int32(rows), message=True)
        for kind in KINDS
        for indices, ids, rows in GRAD_BAD
    ),
    *(  # without output rows or indices the ids and indices are not checked
        case(
            f"SparseSegment{kind}{suffix}",
            X[:2],
            int32(indices),
            int32(ids),
            int32(rows),
            message=True,
        )
        for kind in KINDS
        for suffix, indices, ids, rows in (
            ("GradV2", [9, 3], [0, 7], 0),
            ("Grad", [9, 3], [0, 7], 0),
            ("GradV2", [], [], 3),
            ("Grad", [1, 2], 0, 0),
            ("GradV2", [1, 2], 0, 0),
            ("GradV2", [[1]], [0], 0),
            ("GradV2", [1, 2], [0, 1], [3]),
            ("Grad", [1, 2], [0, 1], [3]),
            ("GradV2", [1, 2], [0], 3),
            ("Grad", [1, 2], [0], 0),
        )
    ),
)
