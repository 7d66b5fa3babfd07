"""Fill, Range, LinSpace, ZerosLike, OnesLike."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

HALVES = (np.float16, ml_dtypes.bfloat16)
FLOATS = (*HALVES, np.float32, np.float64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
COMPLEXES = (np.complex64, np.complex128)
ALL = (*FLOATS, *SIGNED, *UNSIGNED, *COMPLEXES, np.bool_)
NAN, INF = np.nan, np.inf
RANGES = (
    (np.int32, (0, 5, 2)),
    (np.int32, (5, 0, -2)),
    (np.int32, (0, 0, 1)),
    (np.int64, (-(1 << 62), 1 << 62, 1 << 62)),
    (np.int32, (-(2**31), 2**31 - 1, 2**31 - 1)),
    (np.float32, (0, 1, 0.1)),
    (np.float32, (10, 1, -2.5)),
    (np.float64, (0.5, 3, 0.3)),
    (np.float16, (0, 1, 0.1)),
    (ml_dtypes.bfloat16, (0, 2, 0.3)),
)
RANGE_ERRORS = (
    (np.int32, (5, 0, 2)),
    (np.int32, (0, 5, -2)),
    (np.int32, (0, 5, 0)),
    (np.float32, (0, 1, 0)),
    (np.float32, (0.5, 1, -0.25)),
    (np.float32, (10, 1, 2.5)),
    (np.float32, (0, INF, 1)),
    (np.float32, (0, NAN, 1)),
)

CASES: tuple[Case, ...] = (
    *(case("Fill", [2, 3], np.array(1, t), name=f"Fill_{np.dtype(t)}") for t in ALL),
    case("Fill", np.zeros(0, np.int32), np.float32(3)),
    case("Fill", np.array([2, 0], np.int64), np.float32(3)),
    case("Fill", np.array(2, np.int64), np.float32(3)),
    case("Fill", [2], [3.0]),
    case("Fill", [2], np.array(b"text", object)),
    case("Fill", [2, -1], np.float32(3), message=True),
    case("Fill", [[2]], np.float32(3), message=True),
    case("Fill", [2], [3.0, 4.0], message=True),
    case("Fill", np.array([1 << 40], np.int64), np.float32(1)),
    case("Fill", np.array([1 << 40, 1 << 40], np.int64), np.float32(1), message=True),
    *(case("Range", *(np.array(each, t) for each in values)) for t, values in RANGES),
    *(
        case("Range", *(np.array(each, t) for each in values), message=True)
        for t, values in RANGE_ERRORS
    ),
    case("Range", [0], np.int32(3), np.int32(1)),
    case("Range", [0, 1], np.int32(3), np.int32(1), message=True),
    case("Range", np.int16(0), np.int16(3), np.int16(1)),
    case("Range", np.int64(0), np.int64(1 << 62), np.int64(1)),
    *(
        case("LinSpace", np.array(start, t), np.array(stop, t), np.array(count, index))
        for t in (np.float32, np.float64)
        for index in (np.int32, np.int64)
        for start, stop, count in ((0, 1, 5), (0, 0.7, 8), (3, -3, 4), (2, 9, 1), (1, 1, 3))
    ),
    case("LinSpace", np.float32(0), np.float32(1), np.int32(0), message=True),
    case("LinSpace", np.float32(0), np.float32(1), np.int32(-1), message=True),
    case("LinSpace", [0.0], np.float32(1), np.int32(2), message=True),
    case("LinSpace", np.float32(0), np.float32(1), [2], message=True),
    *(
        case(op, np.array([[3, 1]]).astype(t), name=f"{op}_{np.dtype(t)}")
        for op in ("ZerosLike", "OnesLike")
        for t in ALL
    ),
    *(case(op, np.float32(3)) for op in ("ZerosLike", "OnesLike")),
    *(case(op, np.zeros((0, 2), np.float32)) for op in ("ZerosLike", "OnesLike")),
    case("ZerosLike", np.array([b"text"], object)),
    case("ZerosLike", np.array(b"text", object)),
)
