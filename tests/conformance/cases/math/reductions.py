"""Reductions and ArgMax: dtypes, axes, keep_dims, empty tensors, NaN, bad axes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

HALVES = (np.float16, ml_dtypes.bfloat16)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
REAL = (*HALVES, np.float32, np.float64, *SIGNED, *UNSIGNED)
COMPLEXES = (np.complex64, np.complex128)
DTYPES = {
    "Sum": (*REAL, *COMPLEXES),
    "Prod": (*REAL, *COMPLEXES),
    "Mean": (*REAL, *COMPLEXES),
    "EuclideanNorm": (*REAL, *COMPLEXES),
    "Max": REAL,
    "Min": REAL,
}
VALUES = np.array([[[1, 2, 3], [3, 2, 5]], [[2, 2, 1], [1, 0, 4]]])
AXES = ([], 0, [0], [-1], [0, 2], [2, 1], [1], [0, 1, 2], [[0], [1]])
BAD_AXES = ([3], [-4], [0, 0], [0, -3])
NAN, INF = np.nan, np.inf
SPECIAL = np.array([[1, NAN, 2], [INF, 1, -INF], [-INF, -INF, -INF]], np.float32)
ARGS = np.array(
    [
        [1, 3, 3],
        [4, 4, 1],
        [1, NAN, 3],
        [NAN, 4, NAN],
        [NAN, NAN, NAN],
        [-INF, NAN, -INF],
        [INF, NAN, 0],
    ],
    np.float32,
)


def axes(values: object) -> np.ndarray:
    return np.array(values, np.int32)


def args() -> list[Case]:
    numbers = np.array([[1, 3, 3], [4, 4, 1]])
    cases = []
    for op in ("ArgMax", "ArgMin"):
        cases += [
            case(op, numbers.astype(t), np.int32(1), name=f"{op}_{np.dtype(t)}") for t in REAL
        ]
        cases += [
            case(op, ARGS, np.int32(1), name=f"{op}_special"),
            case(op, ARGS, np.int64(-2), name=f"{op}_columns"),
            case(op, ARGS.astype(ml_dtypes.bfloat16), np.int32(1), name=f"{op}_special_bfloat16"),
            case(op, np.array([[True, False], [False, False]]), np.int32(1), name=f"{op}_bool"),
            case(op, numbers, np.int32(0), output_type=DataType.INT32, name=f"{op}_to_int32"),
            case(op, np.zeros((3, 0), np.float32), np.int32(0), name=f"{op}_empty_result"),
            case(op, np.zeros((0, 3), np.float32), np.int32(0), name=f"{op}_empty", message=True),
            case(op, np.float32(1), np.int32(0), name=f"{op}_scalar", message=True),
            case(op, np.ones(2, np.float32), np.int32(1), name=f"{op}_far", message=True),
            case(op, np.ones(2, np.float32), np.int32(-2), name=f"{op}_negative", message=True),
            case(op, np.zeros((1,) * 8, np.float32), np.int32(0), name=f"{op}_rank8", message=True),
        ]
    return [
        *cases,
        case("ArgMax", numbers, np.int32(0), output_type=DataType.INT16),
    ]


CASES: tuple[Case, ...] = (
    *(
        case(op, VALUES.astype(t), axes([0, 2]), name=f"{op}_{np.dtype(t)}")
        for op, dtypes in DTYPES.items()
        for t in dtypes
    ),
    *(
        case(op, VALUES.astype(np.float32), axes(each), keep_dims=keep, name=f"{op}_{each}_{keep}")
        for op in DTYPES
        for each in AXES
        for keep in (False, True)
    ),
    *(
        case(op, VALUES.astype(np.float32), axes(each), name=f"{op}_bad_{each}", message=True)
        for op in DTYPES
        for each in BAD_AXES
    ),
    *(case(op, np.float32(3), axes([]), name=f"{op}_scalar") for op in DTYPES),
    *(case(op, np.float32(3), axes([0]), name=f"{op}_scalar_axis", message=True) for op in DTYPES),
    *(case(op, SPECIAL, axes([1]), name=f"{op}_special") for op in DTYPES),
    *(case(op, SPECIAL, np.array([1], np.int64), name=f"{op}_int64_axes") for op in DTYPES),
    *(
        case(op, np.zeros(shape, t), axes([0]), name=f"{op}_{np.dtype(t)}_{shape}")
        for op in DTYPES
        for t in (np.float32, np.float16, np.int32, np.uint8, ml_dtypes.bfloat16)
        for shape in ((0, 2), (2, 0))
    ),
    *(case(op, np.zeros((0, 2), np.complex64), axes([0])) for op in ("Sum", "Prod", "Mean")),
    *(case(op, np.array([100, 100, 101], np.int8), axes([0])) for op in DTYPES),
    *(case(op, np.array([200, 200, 201], np.uint8), axes([0])) for op in DTYPES),
    *(case(op, np.array([-7, 2, 2], np.int32), axes([0])) for op in DTYPES),
    case("Mean", np.array([2**31 - 1, 2**31 - 1], np.int32), axes([0])),
    case("Mean", np.array([-7, 0], np.int8), axes([0])),
    *(
        case("Sum", np.full(shape, 0.1, t), axes([axis]), name=f"Sum_many_{np.dtype(t)}_{axis}")
        for t in (*HALVES, np.float32)
        for shape, axis in (((3000, 1), 0), ((1, 3000), 1))
    ),
    *(
        case(op, np.array(values, bool), axes([axis]), keep_dims=keep)
        for op in ("All", "Any")
        for values in ([[True, False], [True, True]],)
        for axis in (0, 1)
        for keep in (False, True)
    ),
    *(case(op, np.zeros((0,), bool), axes([0])) for op in ("All", "Any")),
    *(case(op, np.array([True, False]), axes([])) for op in ("All", "Any")),
    *(case(op, np.array([True]), axes([1]), message=True) for op in ("All", "Any")),
    *(
        case("L2Loss", np.array([[1, 2], [3, 0.5]], t), name=f"L2Loss_{np.dtype(t)}")
        for t in (*HALVES, np.float32, np.float64)
    ),
    case("L2Loss", np.zeros(0, np.float32)),
    case("L2Loss", np.float32(3)),
    *args(),
)
