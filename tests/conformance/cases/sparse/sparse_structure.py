"""SparseReshape, SparseReorder, SparseConcat, SparseSplit, SparseSlice, SparseFillEmptyRows."""

import numpy as np

from tests.conformance.case import case

INDICES, SHAPE = np.int64([[0, 1], [0, 2], [2, 0]]), np.int64([3, 4])
VALUES = np.float32([1, 2, 3])
WORDS = np.array([b"a", b"b", b"c"], object)
NOTHING, NO_VALUES = INDICES[:0], VALUES[:0]

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
        case("SparseReshape", indices, shape, np.int64(target), message=True)
        for indices, shape, target in (
            (INDICES, SHAPE, [4, 3]), (INDICES, SHAPE, [-1]), (INDICES, SHAPE, [2, 3, 2]),
            (NOTHING, SHAPE, [6, -1]), (INDICES, SHAPE, [5, -1]), (INDICES, SHAPE, [5]),
            (INDICES, SHAPE, [-1, -1]), (INDICES, SHAPE, [[12]]), (INDICES[0], SHAPE, [12]),
            (NOTHING, np.int64([0, 4]), [2, 0]),
            (INDICES + 9, SHAPE, [3, 4]), (INDICES + 9, SHAPE, [3, -1]),  # out of bounds: unchanged
        )
    ),
    *(
        case("SparseReorder", indices, values, SHAPE)
        for indices, values in (
            (INDICES[::-1], VALUES), (INDICES[[2, 0, 1]], WORDS), (NOTHING, NO_VALUES),
            (INDICES + 9, VALUES), (INDICES, VALUES[:2]), (INDICES[0], VALUES),
        )
    ),
    *(
        case("SparseConcat", [INDICES, INDICES[::2]], [values, values[::2]], shapes, concat_dim=dim,
             message=True)
        for dim, values, shapes in (
            (0, VALUES, [SHAPE, SHAPE]), (1, VALUES, [SHAPE, np.int64([3, 5])]),
            (-1, WORDS, [SHAPE, SHAPE]),
            (1, VALUES, [SHAPE, np.int64([4, 4])]), (2, VALUES, [SHAPE, SHAPE]),
        )
    ),
    *(
        case("SparseSplit", np.int64(dim), INDICES, values, SHAPE, num_split=count, message=True)
        for dim, values, count in (
            (0, VALUES, 3), (1, VALUES, 2), (0, WORDS, 2), (1, VALUES, 3), (-1, VALUES, 4),
            (2, VALUES, 2), (0, VALUES, 4),
        )
    ),
    *(
        case("SparseSlice", INDICES, values, SHAPE, np.int64(start), np.int64(size), message=True)
        for values, start, size in (
            (VALUES, [0, 1], [2, 2]), (WORDS, [0, 0], [9, 9]), (VALUES, [2, 0], [1, 1]),
            (VALUES, [5, 0], [1, 1]), (VALUES, [0], [1, 1]), (VALUES, [0, 0], [1]),
            (VALUES, [-1, 0], [2, 9]), (VALUES, [-1, -3], [9, 9]), (VALUES, [-4, 0], [2, 2]),
            (VALUES, [0, 0], [-1, 2]), (VALUES, [0, 0], [0, 2]), (VALUES, [9, 0], [-1, 2]),
            (VALUES, [[0, 1]], [2, 2]), (VALUES, [0, 1], [[2, 2]]),
        )
    ),
    case("SparseSliceGrad", np.float32([7, 8]), INDICES, np.int64([0, 1]), INDICES[:2] - [0, 1]),
    *(
        case("SparseFillEmptyRows", indices, values, np.int64(shape), default, message=True)
        for indices, values, shape, default in (
            (INDICES, VALUES, [4, 4], 9.0), (INDICES[::-1], VALUES, [3, 4], 9.0),
            (INDICES, WORDS, [5, 4], "none"), (NOTHING, NO_VALUES, [2, 4], 1.0),
            (NOTHING, NO_VALUES, [0, 4], 1.0), (np.int64([[0], [2]]), VALUES[:2], [3], 0.5),
            (INDICES, VALUES, [2, 4], 9.0), (INDICES - 1, VALUES, [3, 4], 9.0),
            (INDICES, VALUES, [0, 4], 9.0), (INDICES, VALUES[:2], [3, 4], 9.0),
            (INDICES, VALUES, [3], 9.0), (INDICES, VALUES, [3, 4], [9.0]),
            (INDICES[0], VALUES, [3, 4], 9.0),
        )
    ),
    *(
        case("SparseFillEmptyRowsGrad", np.int64(places), VALUES, message=True)
        for places in ([0, 2], [2, 0], np.zeros(0), [0, 3], [[0]])
    ),
    *(case("SparseReorder", *misfit(given), message=True) for given in MISFITS),
    *(
        case("SparseSlice", *misfit(given), np.int64([0, 0]), np.int64([1, 1]), message=True)
        for given in MISFITS
    ),
    *(
        case("SparseSplit", np.int64(0), *misfit(given), num_split=1, message=True)
        for given in MISFITS[:2]
    ),
    *(
        case("SparseSplit", np.int64(dim), INDICES, VALUES, SHAPE, num_split=1, message=True)
        for dim in ([0], [0, 1])
    ),
    case("SparseSplit", np.int64(0), INDICES + 5, VALUES, SHAPE, num_split=1, message=True),
    *(
        case("SparseSlice", INDICES[:1], VALUES[:1], np.int64(shape), np.int64([0, 0]),
             np.int64([2**62, 2**62]), message=True)
        for shape in ([2**62, 2**62], [-1, 2])
    ),
)  # fmt: skip
