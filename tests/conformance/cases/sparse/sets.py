"""Set operations."""

import numpy as np

from tests.conformance.case import case

ONE = np.int32([[1, 2, 2], [3, 4, 5]])
TWO = np.int32([[2, 9], [7, 3]])
WORDS = np.array([[b"a", b"b"], [b"", b"d"]], object)
INDICES, VALUES, SHAPE = np.int64([[0, 0], [0, 2], [1, 1]]), np.int32([2, 1, 3]), np.int64([2, 3])
OPERATIONS = ("a-b", "b-a", "intersection", "union")
TYPES = (np.int8, np.int16, np.int64, np.uint8, np.uint16)

# (indices, values, shape) that are rejected with `validate_indices`.
WRONG_INDICES = (
    ([[1, 0], [0, 0], [1, 1]], [1, 2, 3], [2, 3]),
    ([[0, 0], [0, 0]], [1, 2], [2, 3]),
    ([[0, 2], [0, 0]], [1, 2], [2, 3]),
    ([[0, 0], [0, 5]], [1, 2], [2, 3]),
    ([[-1, 0], [5, 0]], [1, 2], [2, 3]),
)
# (indices, values, shape) that are always rejected.
WRONG_SHAPES = (
    ([[0, 0]], [1], [2, 3, 4]),
    ([[0, 0]], [1, 2], [2, 3]),
    ([[0]], [1], [3]),
    ([0, 1], [1, 2], [2, 3]),
    ([[0, 0]], [[1]], [2, 3]),
    ([[0, 0]], [1], [[2, 3]]),
    ([[0, 0]], [1], [-2, 3]),
    ([[0, 0]], [1], [2**40, 2**40]),
)
# Groups outside the shape or out of order: without validation, elements before them are used.
ODD_GROUPS = (
    ([[2, 2], [0, 1], [1, 1]], [7, 8, 9], [2, 3]),
    ([[0, 1], [1, 1], [0, 0], [1, 2]], [6, 7, 8, 9], [2, 3]),
    ([[0, 1], [-1, 1], [1, 0]], [7, 8, 9], [2, 3]),
    ([[0, -4], [0, -9], [1, 0]], [7, 8, 9], [2, 3]),
)
OUTSIDE = (([[0, 5], [1, 0]], [1, 2], [2, 3]), ([[0, 0], [5, 0]], [1, 2], [2, 3]))


def sparse_set(given: tuple[list, list, list]) -> tuple[np.ndarray, ...]:
    return np.int64(given[0]), np.int32(given[1]), np.int64(given[2])


CASES = (
    *(
        case("DenseToDenseSetOperation", one, two, set_operation=operation, message=True)
        for operation in OPERATIONS
        for one, two in (
            (ONE, TWO), (WORDS, WORDS[::-1]), (ONE[None], TWO[None]), (ONE, TWO[:, :0]),
            (ONE[:, :0], TWO[:, :0]), (ONE, TWO[:1]), (ONE[0], TWO[0]),
        )
    ),
    *(case("DenseToDenseSetOperation", ONE.astype(t), TWO.astype(t), set_operation="union")
      for t in TYPES),
    *(
        case("DenseToSparseSetOperation", one, indices, values, SHAPE, set_operation=operation)
        for operation in OPERATIONS
        for one, indices, values in (
            (ONE, INDICES, VALUES), (ONE, INDICES[:0], VALUES[:0]),
            (WORDS, INDICES[:1], WORDS[0, 1:]),
            (ONE, INDICES + 2, VALUES),
        )
    ),
    *(
        case("SparseToSparseSetOperation", INDICES, VALUES, SHAPE, indices, values, shape,
             set_operation=operation)
        for operation in OPERATIONS
        for indices, values, shape in (
            (INDICES, VALUES[::-1], SHAPE), (INDICES[1:], VALUES[1:], np.int64([2, 5])),
            (INDICES[:0], VALUES[:0], SHAPE), (INDICES, VALUES, np.int64([3, 3])),
        )
    ),
    *(
        case("SetSize", indices, values, shape)
        for indices, values, shape in (
            (INDICES, VALUES, SHAPE), (INDICES, np.int32([1, 1, 1]), np.int64([3, 4])),
            (INDICES[:0], VALUES[:0], SHAPE), (INDICES[:1], WORDS[0, :1], SHAPE),
            (INDICES[1:], VALUES[1:], np.int64([1, 1])),
        )
    ),
    *(case("SetSize", *sparse_set(given), message=True) for given in WRONG_INDICES + WRONG_SHAPES),
    *(
        case("SetSize", *sparse_set(given), validate_indices=False, message=True)
        for given in WRONG_SHAPES + OUTSIDE
    ),
    *(
        case("DenseToSparseSetOperation", ONE, *sparse_set(given), set_operation="a-b",
             message=True)
        for given in WRONG_INDICES + WRONG_SHAPES
    ),
    *(
        case("DenseToSparseSetOperation", ONE, *sparse_set(given), set_operation="union",
             validate_indices=False)
        for given in (*WRONG_INDICES, *WRONG_SHAPES, *OUTSIDE, *ODD_GROUPS)
    ),
    *(
        case("SparseToSparseSetOperation", INDICES, VALUES, SHAPE, *sparse_set(given),
             set_operation="union", message=True)
        for given in WRONG_INDICES + WRONG_SHAPES
    ),
)  # fmt: skip
