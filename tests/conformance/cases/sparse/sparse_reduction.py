"""SparseReduceSum and SparseReduceMax."""

import numpy as np

from tests.conformance.case import case

INDICES = np.int64([[0, 0, 1], [0, 1, 0], [0, 1, 2], [1, 0, 1]])
VALUES, SHAPE = np.float32([1, -2, 3, 4]), np.int64([3, 2, 3])
OPS = ("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse")

# (indices, values, shape) that do not fit together.
MISFITS = (
    (np.zeros((1, 3)), np.zeros(3), [1, 2, 3]),
    (np.zeros((3, 3)), np.zeros(3), [1, 2]),
    (np.zeros(3), np.zeros(3), [1, 2]),
    (np.zeros((3, 2)), np.zeros((3, 1)), [1, 2]),
    (np.zeros((3, 2)), np.zeros(3), [[1, 2]]),
    (np.zeros((3, 2)), np.zeros(3), 3),
)


def misfit(given: tuple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.int64(given[0]), np.float32(given[1]), np.int64(given[2])


CASES = (
    *(
        case(op, INDICES, VALUES, SHAPE, axes, keep_dims=keep, message=True)
        for op in OPS
        for axes in ([0], [2], [-1, 0], [0, 1, 2], 1, [3])
        for keep in (False, True)
    ),
    *(
        case(op, INDICES[:0], VALUES[:0], SHAPE, [1])
        for op in ("SparseReduceSum", "SparseReduceMax")
    ),
    *(
        case(op, INDICES, VALUES.astype(t), SHAPE, [1])
        for op in OPS
        for t in (np.int32, np.float64, np.int64)
    ),
    *(
        case(op, *misfit(given), [0], message=True)
        for op in ("SparseReduceSum", "SparseReduceMaxSparse")
        for given in MISFITS
    ),
    *(
        case("SparseReduceSum", INDICES[:1, :2], VALUES[:1], np.int64(shape), [0], message=True)
        for shape in ([2**62, 2**62], [-1, 2])
    ),
)
