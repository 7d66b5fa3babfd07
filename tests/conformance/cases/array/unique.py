"""Unique, ListDiff, Where, UnravelIndex."""

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

LIST = np.float32([3, 1, 3, -0.0, 7, 0.0, 1])
ROWS = np.int32([[1, 2, 1], [3, 4, 3], [1, 2, 1]])
WORDS = np.array([b"b", b"a", b"b", b"", b"a"], object)
NONE = np.zeros(0, np.int32)
TYPES = (
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.float16,
    ml_dtypes.bfloat16, np.float64,
)  # fmt: skip

CASES = (
    *(
        case(op, value, out_idx=out, message=True)
        for op in ("Unique", "UniqueWithCounts")
        for value in (LIST, LIST[:0], WORDS, np.float32([np.nan, 1, np.nan]), ROWS)
        for out in (DataType.INT32, DataType.INT64)
    ),
    *(
        case(op, value, axis, message=True)
        for op in ("UniqueV2", "UniqueWithCountsV2")
        for value, axis in (
            (ROWS, [0]), (ROWS, [1]), (ROWS, np.int64([-1])), (LIST, [0]), (LIST, NONE),
            (WORDS, [0]),
            (np.array([[b"a", b"b"], [b"a", b"b"]], object), [0]),
            (ROWS[:0], [0]), (ROWS[:, :0], [1]),
            (np.float32([[0.0, 1], [-0.0, 1], [np.nan, 1], [np.nan, 1]]), [0]),
            (np.arange(8).reshape(2, 2, 2) % 4, [0]),
            (ROWS, NONE), (ROWS, [2]), (ROWS, [0, 1]), (ROWS, 0),
        )
    ),
    *(case("Unique", np.array([1, 0, 1, 1, 0], t)) for t in TYPES),
    *(
        case("ListDiff", one, two, out_idx=out, message=True)
        for out in (DataType.INT32, DataType.INT64)
        for one, two in (
            (LIST, np.float32([3, 0])), (WORDS, WORDS[:1]), (LIST[:0], LIST), (LIST, LIST[:0]),
            (np.float32([np.nan, 1]), np.float32([np.nan])), (ROWS, ROWS[0]), (ROWS[0], ROWS),
        )
    ),
    *(case("ListDiff", np.array([1, 0, 1], t), np.array([1], t)) for t in TYPES[1:]),
    *(
        case("Where", value, message=True)
        for value in (
            ROWS > 1, ROWS % 2, LIST, np.zeros((2, 0), bool), np.zeros((2, 3), np.float32),
            np.float32([np.nan, 0]), np.complex64([0, 1j]), np.arange(8).reshape(2, 2, 2),
            np.float32(3),
        )
    ),
    *(case("Where", np.array([[1, 0], [0, 1]], t)) for t in TYPES if t is not np.float16),
    *(
        case("UnravelIndex", indices, dims, message=True)
        for indices, dims in (
            ([5, 1, 0], [2, 3]), (23, [2, 3, 4]), (np.int64([7]), np.int64([8])), (NONE, [2, 3]),
            ([5, -1], [2, 3]), ([6], [2, 3]), (5, [1 << 28, 1 << 28]),
            (np.int64(5), np.int64([(1 << 63) - 1, 2])),
            ([[5]], [2, 3]), ([5], [[2, 3]]), ([5], [0, 3]), (5, 7),
        )
    ),
)  # fmt: skip
