"""TopK and NthElement."""

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

ROWS = np.float32([[3, 1, 3, 2, 5, 5], [0, -1, np.inf, 7, -np.inf, 7]])
LONG = (np.arange(200, dtype=np.float32) * 37 % 50).reshape(2, 100)  # many equal elements
TYPES = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.float16, ml_dtypes.bfloat16,
    np.float64,
)  # fmt: skip

CASES = (
    *(
        case("TopKV2", value, k, message=True)
        for value, k in (
            (ROWS, 1), (ROWS, 3), (ROWS, 6), (ROWS, 0), (ROWS[0], 2), (ROWS[None], 2), (LONG, 5),
            (LONG, 1), (LONG, 100), (ROWS[:0], 2), (np.zeros(4, np.float32), 2), (ROWS, 7),
            (ROWS, -1),
            (np.float32(1), 1), (ROWS, [1]), (LONG, np.int64(11)), (LONG, np.int16(4)),
        )
    ),
    *(case("TopKV2", LONG.astype(t), 3) for t in TYPES),
    *(case("TopKV2", ROWS[0].astype(t), 4, index_type=DataType.INT64) for t in TYPES),
    *(
        case("NthElement", value, n, reverse=reverse, message=True)
        for reverse in (False, True)
        for value, n in (
            (ROWS, 0), (ROWS, 3), (ROWS, 5), (LONG, 40), (ROWS, 6), (ROWS, -1), (np.float32(1), 0),
            (ROWS, [1]),
        )
    ),
    *(case("NthElement", LONG.astype(t), 7) for t in TYPES),
)  # fmt: skip
