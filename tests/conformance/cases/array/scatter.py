"""ScatterNd and the TensorScatter ops."""

import ml_dtypes
import numpy as np

from tests.conformance.case import case

VECTOR = np.float32([1, 2, 3, 4])
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
WORDS = np.array([b"a", b"b", b"c"], object)
NUMBERS = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64, np.float16,
    ml_dtypes.bfloat16, np.float64, np.complex64, np.complex128,
)  # fmt: skip
ARITHMETIC = ("TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin")

CASES = (
    *(
        case("ScatterNd", indices, updates, shape, message=True)
        for indices, updates, shape in (
            ([[1], [3]], VECTOR[:2], [5]), ([[1], [1]], VECTOR[:2], [5]),
            ([[1]], MATRIX[:1], [2, 3]),
            ([[0, 1], [1, 2], [0, 1]], VECTOR[:3], [2, 3]), ([[[0], [1]]], MATRIX[None], [3, 3]),
            (np.int64([[2]]), WORDS[:1], np.int64([3])), ([[1], [1]], WORDS[:2], [2]),
            ([[1], [1]], [True, True], [3]), ([1], np.float32(5), [3]),
            (np.zeros((0, 1), np.int32), VECTOR[:0], [3]),
            (np.zeros((2, 0), np.int32), MATRIX, [3]),
            (np.zeros((0, 1), np.int32), VECTOR[:0], [0]),
            ([[0], [5]], VECTOR[:2], [3]), ([[0], [-1]], VECTOR[:2], [3]),
            ([[0], [1]], VECTOR[:3], [3]), ([[0], [1]], MATRIX[:, :2], [3, 3]),
            ([[0, 1], [1, 0]], MATRIX, [3]), (1, VECTOR, [3]), ([[0]], VECTOR[:1], [0]),
            ([[0]], VECTOR[:1], [-2]), ([[0]], VECTOR[:1], [[2]]),
            ([[[0, 0], [2, 2]]], MATRIX[:1, :2], [2, 3]),
        )
    ),
    *(case("ScatterNd", [[1], [3], [1]], VECTOR[:3].astype(t), [4]) for t in NUMBERS),
    case("ScatterNd", [[1], [9]], VECTOR[:2], [4], bad_indices_policy="IGNORE"),
    *(
        case(op, tensor, indices, updates, message=op.startswith("Tensor"))
        for op in (*ARITHMETIC, "TensorScatterUpdate", "ScatterNdNonAliasingAdd")
        for tensor, indices, updates in (
            (VECTOR, [[0], [2]], np.float32([9, -9])), (VECTOR, [[1], [1]], np.float32([5, 3])),
            (MATRIX, [[1]], MATRIX[:1]), (MATRIX, [[0, 0], [1, 2]], VECTOR[:2]),
            (MATRIX, np.zeros((0, 1), np.int64), MATRIX[:0]), (VECTOR, [2], np.float32(7)),
            (VECTOR, [[0], [7]], VECTOR[:2]), (VECTOR, [[-1]], VECTOR[:1]),
            (VECTOR, [[0], [1]], VECTOR[:3]), (MATRIX, [[0]], MATRIX[:1, :2]),
            (MATRIX, [[0, 0, 0]], VECTOR[:1]), (VECTOR, 0, VECTOR[:1]),
            (np.float32(1), [[0]], MATRIX[:1]),
        )
    ),
    *(
        case(op, MATRIX.astype(t), [[1], [1]], MATRIX.astype(t))
        for op in ARITHMETIC[:2]
        for t in NUMBERS
    ),
    case("TensorScatterMax", VECTOR, [[0], [1], [2]], np.float32([np.nan, np.inf, -1])),
    *(
        case(op, np.array([np.nan, 1, 2], t), [[0], [0], [1], [1], [2]],
             np.array([1, np.nan, np.nan, 0, np.nan], t))
        for op in ARITHMETIC[2:]
        for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
    ),
    *(
        case("TensorScatterUpdate", MATRIX.astype(t), [[0, 1]], np.array([7], t))
        for t in (*NUMBERS, np.bool_)
    ),
    case("TensorScatterUpdate", WORDS, [[1]], WORDS[2:]),
    case("TensorScatterAdd", VECTOR, [[1], [9]], VECTOR[:2], bad_indices_policy="IGNORE"),
    *(
        case(op, np.zeros(shape, np.float32), np.int32([[0, 0]]),
             np.ones((1, *shape[2:]), np.float32), message=True)
        for op in ("ScatterNdNonAliasingAdd", "TensorScatterAdd")
        for shape in ((0, 3, 2), (3, 2, 0), (0,))
    ),
    *(
        case("ScatterNd", np.zeros(indices, np.int32), np.ones(updates, np.float32),
             np.int32(shape), message=True)
        for indices, updates, shape in (
            ((0, 0), (0,), []), ((1, 0), (1,), []), ((1,), (1,), []), ((1,), (2,), [4, 2]),
            ((0, 0), (0, 4), [4]), ((0,), (0, 2), [0, 2]),
        )
    ),
    *(
        case(op, np.ones(tensor, np.float32), np.zeros(indices, np.int32),
             np.ones(updates, np.float32), message=True)
        for op in ("TensorScatterAdd", "ScatterNdNonAliasingAdd")
        for tensor, indices, updates in (
            ((4, 2), (1,), (2,)), ((4, 2), (0,), (4, 2)), ((4, 2), (1, 0), (1, 4, 2)),
            ((4, 2), (0, 0), (0, 4, 2)), ((0, 2), (0,), (0, 2)), ((4, 2), (2, 1, 1), (2, 1, 2)),
        )
    ),
    *(
        case("ScatterNdNonAliasingAdd", VECTOR, np.int32(indices), np.float32(updates),
             message=True)
        for indices, updates in (([2], [7]), ([1, 1], [5, 3]), ([9, 1], [1, 1]), ([1, 2], [7]))
    ),
)  # fmt: skip
