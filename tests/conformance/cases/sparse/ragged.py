"""RaggedRange, RaggedGather, RaggedTensorToSparse, RaggedFillEmptyRows."""

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

FLAT = np.float32([1, 2, 3, 4, 5, 6])
WORDS = np.array([b"a", b"b", b"c", b"d", b"e", b"f"], object)
ROWS, OUTER = np.int64([0, 2, 2, 5, 6]), np.int64([0, 1, 4])
NO_ROWS, NO_VALUES = np.int64([]), np.float32([])
FILLED = (  # value_rowids, values, nrows, default_value
    ([0, 0, 2], FLAT[:3], 4, np.float32(-1)),
    ([0, 1, 2], FLAT[:3], 3, np.float32(-1)),
    ([2, 0, 0], WORDS[:3], 4, np.array(b"-", object)),
    (NO_ROWS, NO_VALUES, 3, np.float32(7)),
    (NO_ROWS, NO_VALUES, 0, np.float32(7)),
    ([0, 0, 2], FLAT[:3], 0, np.float32(-1)),
    ([0, 0, 2], FLAT[:3], 2, np.float32(-1)),
    ([-1, 0, 2], FLAT[:3], 4, np.float32(-1)),
    ([0, 0, 2], FLAT[:3], -1, np.float32(-1)),
    ([0, 0, 2], FLAT[:2], 4, np.float32(-1)),
    ([0, 0, 2], FLAT[:3, None], 4, np.float32(-1)),
    ([[0, 0, 2]], FLAT[:3], 4, np.float32(-1)),
    ([0, 0, 2], FLAT[:3], [4], np.float32(-1)),
    ([0, 0, 2], FLAT[:3], 4, np.float32([-1])),
)

CASES = (
    *(
        case("RaggedRange", starts, limits, deltas, Tsplits=splits, message=True)
        for splits in (DataType.INT32, DataType.INT64)
        for starts, limits, deltas in (
            ([0, 5], [3, 1], [1, -2]), (0, 3, 1), ([0, 2], 7, 2), ([3], [1], [1]),
            ([0.0, 1.5], [1.0, 3.0], [0.25, 0.7]), (np.zeros(0, np.int32), 1, 1),
            ([0, 5], [3], 1), ([0, 5], [3, 1], [1, 0]), ([[0]], 1, 1), (0, [[1]], 1),
        )
    ),
    *(
        case("RaggedRange", *(np.array(each, t) for each in ([0, 5], [3, 1], [1, -2])))
        for t in (np.int64, np.float64)
    ),
    case("RaggedRange", [0, 0], [(1 << 31) - 1, 1], [1, 1], Tsplits=DataType.INT32, message=True),
    *(
        case("RaggedGather", nested, values, indices, OUTPUT_RAGGED_RANK=rank, message=True)
        for nested, values, indices, rank in (
            ([ROWS], FLAT, [3, 0, 0], 1), ([OUTER, ROWS], FLAT, [1, 0], 2), ([ROWS], WORDS, [2], 1),
            ([ROWS], FLAT, np.int64([[0, 1], [2, 3]]), 2), ([ROWS], FLAT, 2, 0),
            ([OUTER, ROWS], FLAT, 1, 1),
            ([ROWS], FLAT.reshape(6, 1), [2, 2], 1), ([ROWS], FLAT, np.zeros(0, np.int32), 1),
            ([ROWS.astype(np.int32)], FLAT, [1], 1),
            ([ROWS], FLAT, [1, 5], 1), ([ROWS], FLAT[:3], [1], 1),
            ([np.int64([0, 2, 1])], FLAT, [0], 1),
        )
    ),
    *(
        case("RaggedTensorToSparse", nested, values, message=True)
        for nested, values in (
            ([ROWS], FLAT), ([OUTER, ROWS], FLAT), ([ROWS.astype(np.int32)], WORDS),
            ([ROWS.reshape(5, 1)], FLAT), ([OUTER.reshape(1, 3), ROWS.reshape(1, 5)], FLAT),
            ([OUTER - 1, ROWS], FLAT), ([np.int64([0, 1, 5]), ROWS - 1], FLAT),
            ([np.int64([0, 2, 3])], FLAT.reshape(3, 2)), ([np.int64([0])], FLAT[:0]),
            ([np.int64([0, 0, 0])], FLAT[:0]),
            ([np.int64([0, 2, 4])], FLAT), ([np.int64([1, 2, 6])], FLAT),
            ([np.int64([0, 2, 1, 6])], FLAT), ([np.zeros(0, np.int64)], FLAT),
        )
    ),
    *(
        case("RaggedFillEmptyRows", np.int64(rows), values, np.int64(count), default, message=True)
        for rows, values, count, default in FILLED
    ),
    *(
        case("RaggedFillEmptyRowsGrad", np.int64(places), np.float32(gradients), message=True)
        for places, gradients in (
            ([0, 1, 3], [1, 2, 3, 4]), (np.zeros(0), [1, 2]), ([5], [1, 2]), ([-1], [1, 2]),
            ([[0]], [1]), ([0], [[1]]),
        )
    ),
    *(
        case("RaggedGather", nested, values, indices, OUTPUT_RAGGED_RANK=len(nested), message=True,
             name=f"gather_by_splits_of_other_ranks_{number}")
        for number, (nested, values, indices) in enumerate((
            ([ROWS[:, None]], FLAT, [1, 0]), ([ROWS[None]], FLAT, np.zeros(0, np.int32)),
            ([ROWS[None]], FLAT, [0]), ([OUTER, ROWS[None]], FLAT, [1]),
            ([ROWS[0]], FLAT, [0]), ([OUTER, ROWS[1]], FLAT, [0]),
            ([ROWS[:0]], FLAT, np.zeros(0, np.int32)), ([ROWS], FLAT[0], [0]),
        ))
    ),
)  # fmt: skip
