"""Cumsum, Cumprod, CumulativeLogsumexp."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = (
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
COMPLEXES = (np.complex64, np.complex128)
DTYPES = {
    "Cumsum": (*FLOATS, *INTEGERS, *COMPLEXES),
    "Cumprod": (*FLOATS, *INTEGERS, *COMPLEXES),
    "CumulativeLogsumexp": FLOATS,
}
VALUES = np.array([[[1, 2, 3], [2, 1, 1]], [[2, 2, 1], [1, 3, 2]]])
NAN, INF = np.nan, np.inf

CASES: tuple[Case, ...] = (
    *(
        case(op, VALUES.astype(t), np.int32(1), name=f"{op}_{np.dtype(t)}")
        for op, dtypes in DTYPES.items()
        for t in dtypes
    ),
    *(
        case(
            op,
            VALUES.astype(np.float32),
            np.int64(axis),
            exclusive=exclusive,
            reverse=reverse,
            name=f"{op}_{axis}_{exclusive}_{reverse}",
        )
        for op in DTYPES
        for axis in (0, 1, -1)
        for exclusive in (False, True)
        for reverse in (False, True)
    ),
    *(
        case(op, np.zeros(shape, np.float32), np.int32(0), exclusive=exclusive)
        for op in DTYPES
        for shape in ((0, 2), (2, 0), (1,))
        for exclusive in (False, True)
    ),
    *(
        case(op, np.array([1, -INF, 3, NAN, 1, INF], np.float32), np.int32(0))
        for op in ("Cumsum", "Cumprod")
    ),
    case("CumulativeLogsumexp", np.array([1, -INF, 3, INF, 1], np.float32), np.int32(0)),
    *(case(op, np.array([-INF, -INF, 2], np.float32), np.int32(0)) for op in DTYPES),
    *(case(op, np.array([100, 100, 3], np.int8), np.int32(0)) for op in ("Cumsum", "Cumprod")),
    *(
        case(op, np.ones(shape, np.float32), np.int32(axis), message=True)
        for op in DTYPES
        for shape, axis in (((2,), 1), ((2,), -2), ((), 0))
    ),
    *(case(op, np.ones(2, np.float32), [0], message=True) for op in DTYPES),
    *(case(op, np.full(500, 0.1, np.float32), np.int32(0)) for op in DTYPES),
    *(
        case(
            "CumulativeLogsumexp",
            np.array([x, x], t),
            np.int32(-1),
            name=f"odd_{t.__name__}_{n}_{reverse}",
            reverse=reverse,
            exclusive=reverse,
        )
        for t in (np.float32, np.float64)
        for n, x in enumerate(
            ([1, np.nan, 2, np.nan, -INF, 1], [np.nan, -1, 3, 1], [INF, 1, INF, 2], [INF, np.nan])
        )
        for reverse in (False, True)
    ),
)
