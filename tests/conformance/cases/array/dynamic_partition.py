"""DynamicPartition and DynamicStitch."""

import ml_dtypes
import numpy as np

from tests.conformance.case import case

MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
WORDS = np.array([b"a", b"b", b"c"], object)
TYPES = (
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.float16,
    ml_dtypes.bfloat16, np.float64, np.complex64,
)  # fmt: skip

CASES = (
    *(
        case("DynamicPartition", data, partitions, num_partitions=count, message=True)
        for data, partitions, count in (
            (MATRIX, [1, 0, 1, 1], 2), (MATRIX, [0, 0, 0, 0], 3), (WORDS, [1, 0, 1], 2),
            (MATRIX, np.int32([[0, 1, 0], [1, 1, 1], [0, 0, 0], [2, 0, 1]]), 3),
            (np.float32(1), 1, 2), (MATRIX[:0], np.zeros(0, np.int32), 2),
            (MATRIX, [0, 5, 1, 0], 2), (MATRIX, [0, -1, 1, 0], 2), (MATRIX, [0, 1], 2),
        )
    ),
    *(case("DynamicPartition", MATRIX.astype(t), [1, 0, 1, 0], num_partitions=2) for t in TYPES),
    *(
        case(op, indices, data, message=True)
        for op in ("DynamicStitch", "ParallelDynamicStitch")
        for indices, data in (
            ([[0, 2], [1, 3]], [MATRIX[:2], MATRIX[2:]]),
            ([2, [[0], [1]]], [MATRIX[0], MATRIX[1:3, None]]),
            ([[1, 0], [2]], [WORDS[:2], WORDS[2:]]), ([np.zeros(0, np.int32)], [MATRIX[:0]]),
            ([0, 1], [np.float32(3), np.float32(4)]),
            ([[0, 2], [1]], [MATRIX[:1], MATRIX[:1]]), ([[0, -3], [1]], [MATRIX[:2], MATRIX[:1]]),
            ([[0, 2], [1]], [MATRIX[:2], MATRIX[0, :1]]),
            ([[0, 2], [1]], [MATRIX[:2], MATRIX[:1, :2]]),
        )
    ),
    case("DynamicStitch", [[0, 1], [1]], [np.float32([1, 2]), np.float32([3])]),
    *(case("DynamicStitch", [[1, 0, 3, 2]], [MATRIX.astype(t)]) for t in TYPES),
)  # fmt: skip
