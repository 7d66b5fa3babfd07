"""Gather, GatherV2, GatherNd, OneHot."""

import ml_dtypes
import numpy as np

from tests.conformance.case import case

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
WORDS = np.array([b"a", b"bb", b"ccc"], object)
TYPES = (
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64,
    np.float16, ml_dtypes.bfloat16, np.float64, np.complex64, np.complex128,
)  # fmt: skip
PAIRS = np.int32([[0, 2], [1, 1], [0, 0]])

CASES = (
    *(
        case("GatherV2", params, indices, axis, batch_dims=batch_dims, message=True)
        for params, indices, axis, batch_dims in (
            (CUBE, [1, 0, 1], 0, 0), (CUBE, 1, 1, 0), (CUBE, [[0, 3], [2, 2]], -1, 0),
            (CUBE, np.int64([[1]]), np.int64(1), 0), (WORDS, 2, 0, 0), (WORDS, [[0, 2]], 0, 0),
            (CUBE, np.zeros((0, 2), np.int32), 1, 0), (CUBE[:, :0], np.zeros(0, np.int32), 1, 0),
            (CUBE, PAIRS[:2], 1, 1), (CUBE, PAIRS[:2], 2, 1), (CUBE, PAIRS[:2], -1, -1),
            (CUBE, [2, 0], 1, 1), (CUBE, np.int32([[0, 1, 2], [3, 2, 1]]), 2, 2),
            (CUBE, [0, 3], 1, 0), (CUBE, -1, 0, 0), (CUBE, [[0, 1], [2, 7]], 0, 0),
            (np.float32(1), [0], 0, 0), (CUBE, [0], [0], 0),
            (CUBE, PAIRS, 1, 1), (CUBE, PAIRS[:2], 0, 1), (CUBE, PAIRS[:2], 1, 3),
            (CUBE, np.int32([[0, 5], [1, 1]]), 1, 1), (CUBE[:, :0], [0], 1, 0),
            (CUBE, np.int16([0, 1]), 0, 0),
        )
    ),
    *(case("GatherV2", CUBE.astype(t), [2, 0], 1) for t in TYPES),
    # TensorFlow's shape inference raises first here, with another message.
    *(case("GatherV2", CUBE, [0], axis) for axis in (3, -4)),
    case("OneHot", [0], 2, 1.0, 0.0, axis=-2),
    *(
        case("Gather", params, indices, message=True)
        for params, indices in (
            (CUBE, [1, 0]), (CUBE, 1), (WORDS, [[0], [2]]), (CUBE, [0, 2]), (np.float32(1), 0),
        )
    ),
    *(
        case("GatherNd", params, indices, message=True)
        for params, indices in (
            (CUBE, [[0, 1], [1, 2]]), (CUBE, [1, 2, 3]), (CUBE, [[[1]], [[0]]]),
            (CUBE, np.zeros((2, 0), np.int32)), (WORDS, [[1], [2]]), (WORDS, [1]),
            (CUBE, np.zeros((0, 2), np.int64)), (CUBE, np.int64([[0, 0, 0]])),
            (CUBE, [[0, 1], [1, 3]]), (CUBE, [-1]), (CUBE, 0), (np.float32(1), [0]),
            (CUBE, [[0, 0, 0, 0]]), (CUBE[:0], [[0]]), (CUBE[:0], np.zeros((0, 1), np.int32)),
            (CUBE, np.int32([[[0, 0], [5, 1]]])),
        )
    ),
    *(case("GatherNd", CUBE.astype(t), PAIRS) for t in TYPES),
    *(
        case("OneHot", indices, depth, on, off, axis=axis, message=True)
        for indices, depth, on, off, axis in (
            ([0, 2, -1, 5], 3, 1.0, 0.0, -1), ([[0, 1], [2, 0]], 3, 5, -1, 1), (1, 3, 1.0, 0.0, -1),
            (np.int64([1, 0]), 2, True, False, 0), (np.uint8([1, 255]), 2, "on", "off", -1),
            (np.int8([1, -1]), 4, 1.0, 0.5, 0), ([0], 0, 1.0, 0.0, -1),
            (np.zeros((0, 2), np.int32), 3, 1.0, 0.0, -1), ([0], -1, 1.0, 0.0, -1),
            ([0], [2], 1.0, 0.0, -1), ([0], 2, [1.0], 0.0, -1), ([0], 2, 1.0, [0.0], -1),
            ([0], 2, 1.0, 0.0, 2),
        )
    ),
    *(case("OneHot", [1, 0], 3, t(1), t(0)) for t in TYPES),
)  # fmt: skip
