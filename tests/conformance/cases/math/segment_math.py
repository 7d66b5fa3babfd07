"""Segment reductions over sorted and unsorted ids: dtypes, gaps, bad ids."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

HALVES = (np.float16, ml_dtypes.bfloat16)
REAL = (
    *HALVES, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
NUMBERS = (*REAL, np.complex64, np.complex128)
SORTED = {
    "SegmentSum": NUMBERS,
    "SegmentMean": NUMBERS,
    "SegmentProd": NUMBERS,
    "SegmentMax": REAL,
    "SegmentMin": REAL,
}
UNSORTED = {
    "UnsortedSegmentSum": NUMBERS,
    "UnsortedSegmentProd": NUMBERS,
    "UnsortedSegmentMax": REAL,
    "UnsortedSegmentMin": REAL,
}
ROWS = np.array([[1, 2], [3, 5], [4, 2], [5, 6]])
X = ROWS.astype(np.float32)
IDS = [0, 0, 2, 2]
NAN = np.nan
BAD_SORTED = ([0, 2, 1, 3], [0, 0], [-1, 0, 0, 1], [[0, 0, 1, 1]], 0)
UNSORTED_SHAPES = (
    (X, [2, 0, 2, 1], 4),
    (X, [0, -1, 1, 1], 2),
    (X, [[0, 1], [1, 0], [0, 0], [1, -1]], 3),
    (X, 1, 2),
    (np.float32(3), 0, 2),
    (np.zeros((0, 2), np.float32), np.zeros(0, np.int32), 3),
    (np.array([NAN, 1, 2, NAN], np.float32), [1, 1, 0, 2], 4),
    (X, [-1, -1, -1, -1], 0),
)
BAD_UNSORTED = (
    (X, [0, 5, 1, 0], 2),
    (X, [[0, 1], [1, 0], [0, 7], [0, 0]], 2),
    (X, [0, 0], 2),
    (X, [0, 0, 0, 0], -2),
    (X, [0, 0, 0, 0], [2]),
    (X, [0, 0, 0, 0], 0),
)


TENTHS = np.full(90, 0.1, np.float32)


def ids(values: object) -> np.ndarray:
    return np.array(values, np.int32)


CASES: tuple[Case, ...] = (
    *(
        case(op, ROWS.astype(t), ids(IDS), name=f"{op}_{np.dtype(t)}")
        for op, dtypes in SORTED.items()
        for t in dtypes
    ),
    *(case(op, X, np.array([1, 1, 3, 4], np.int64), name=f"{op}_gaps") for op in SORTED),
    *(case(op, np.zeros((0, 2), np.float32), ids([]), name=f"{op}_empty") for op in SORTED),
    *(case(op, np.zeros((2, 0), np.float32), ids([0, 2]), name=f"{op}_narrow") for op in SORTED),
    *(case(op, [-7, 2, 3, 4], ids([0, 0, 2, 2]), name=f"{op}_negative") for op in SORTED),
    *(case(op, [NAN, 1.0, 2.0], ids([0, 0, 1]), name=f"{op}_nan") for op in SORTED),
    *(
        case(op, X, ids(each), name=f"{op}_bad_{each}", message=True)
        for op in SORTED
        for each in BAD_SORTED
    ),
    *(
        case(op, X, ids(each), name=f"{op}_unsorted_{each}", message=True)
        for op in SORTED
        for each in ([0, 1, 2, 0], [0, 0, 0, -1], [1, 0, 1, 1], [-1, 0, 1, 1], [0, 3, 1, 2])
    ),
    *(case(op, np.float32(1), ids([0]), name=f"{op}_scalar", message=True) for op in SORTED),
    *(
        case(op, ROWS.astype(t), ids([2, 0, -1, 2]), np.int32(4), name=f"{op}_{np.dtype(t)}")
        for op, dtypes in UNSORTED.items()
        for t in dtypes
    ),
    *(
        case(op, data, ids(each), np.int64(count))
        for op in UNSORTED
        for data, each, count in UNSORTED_SHAPES
    ),
    *(
        # More elements than an int64 can count.
        case(op, np.ones((2, 3), np.float32), ids([0, 1]), np.int64(1 << 62))
        for op in UNSORTED
    ),
    *(
        case(op, data, ids(each), ids(count), message=True)
        for op in UNSORTED
        for data, each, count in BAD_UNSORTED
    ),
    # Sums of float32 are rounded after every addition, also if each row is one number.
    case("UnsortedSegmentSum", TENTHS, ids([0, 1, 2] * 30), ids(3), name="rounding", exact=True),
)
