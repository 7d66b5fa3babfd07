"""Set operations."""

import numpy as np

from tests.conformance.case import case

ONE = np.int32([[1, 2, 2], [3, 4, 5]])
TWO = np.int32([[2, 9], [7, 3]])
WORDS = np.array([[b"a", b"b"], [b"", b"d"]], object)
INDICES, VALUES, SHAPE = np.int64([[0, 0], [0, 2], [1, 1]]), np.int32([2, 1, 3]), np.int64([2, 3])
OPERATIONS = ("a-b", "b-a", "intersection", "union")
TYPES = (np.int8, np.int16, np.int64, np.uint8, np.uint16)

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
)  # fmt: skip
