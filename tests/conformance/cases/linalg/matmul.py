"""Matrix products: dtypes, transposes, broadcasting batches, empty and incompatible matrices."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType, from_numpy
from tests.conformance.case import Case, case

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
COMPLEXES = (np.complex64, np.complex128)
DTYPES = {
    "MatMul": (*FLOATS, *COMPLEXES, np.int32, np.int64, np.uint8),
    "BatchMatMul": (*FLOATS, *COMPLEXES, np.int32, np.int64),
    "BatchMatMulV2": (*FLOATS, *COMPLEXES, np.int16, np.int32, np.int64, np.uint8),
}
V3_DTYPES = (
    (np.int8, np.int8, np.int32),
    (np.uint8, np.int8, np.int32),
    (np.int8, np.uint8, np.int32),
    (np.uint8, np.uint8, np.int32),
    *((t, t, t) for t in (*FLOATS, *COMPLEXES, np.int16, np.int32, np.int64)),
    (np.int16, np.int16, np.int32),
    (np.float32, ml_dtypes.bfloat16, np.float32),
    *((ml_dtypes.bfloat16, t, ml_dtypes.bfloat16) for t in (np.int8, np.uint8)),
    *((t, ml_dtypes.bfloat16, ml_dtypes.bfloat16) for t in (np.int8, np.uint8)),
)
FLAGS = ((False, False), (False, True), (True, False), (True, True))
MAT_MUL_ERRORS = (
    ((2, 3), (2, 3)),
    ((3,), (2, 3)),
    ((2, 3), (3,)),
    ((3, 2, 1), (2, 3)),
    ((), ()),
    ((2, 2, 2), (2, 2, 2)),
)
BATCH_SHAPES = (
    ((2, 2, 3), (2, 3, 4)),
    ((2, 3), (3, 2)),
    ((0, 2, 3), (0, 3, 2)),
    ((2, 2, 0), (2, 0, 2)),
    ((1, 2, 2, 3), (1, 2, 3, 1)),
)
BROADCAST_SHAPES = (((2, 2, 3), (3, 2)), ((2, 2, 3), (1, 3, 2)), ((5, 1, 2, 3), (4, 3, 2)))
BATCH_ERRORS = (
    ((2, 2, 3), (2, 2, 3)),
    ((3,), (3, 2)),
    ((3, 2), (3,)),
    ((2, 2, 3), (3, 3, 3)),
    ((2, 2, 3), (3, 4, 3)),
)


def ramp(shape: tuple[int, ...], dtype: object = np.float32) -> np.ndarray:
    values = (np.arange(int(np.prod(shape))) * 7 % 11).reshape(shape)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * (values % 3)).astype(dtype)
    return values.astype(dtype)


def transposed(op: str, x: str, y: str) -> list[Case]:
    cases = []
    for dtype in (np.float32, np.complex64):
        for first, second in FLAGS:
            left = ramp((3, 2) if first else (2, 3), dtype)
            right = ramp((4, 3) if second else (3, 4), dtype)
            name = f"{op}_{np.dtype(dtype)}_{first}_{second}"
            cases.append(case(op, left, right, name=name, **{x: first, y: second}))
    return cases


CASES: tuple[Case, ...] = (
    *(
        case(op, ramp((2, 3), t), ramp((3, 4), t), name=f"{op}_{np.dtype(t)}")
        for op, dtypes in DTYPES.items()
        for t in dtypes
    ),
    *(
        case(
            "BatchMatMulV3",
            ramp((2, 3), a),
            ramp((3, 4), b),
            Tout=from_numpy(np.dtype(out)),
            name=f"BatchMatMulV3_{np.dtype(a)}_{np.dtype(b)}_{np.dtype(out)}",
        )
        for a, b, out in V3_DTYPES
    ),
    *transposed("MatMul", "transpose_a", "transpose_b"),
    *transposed("BatchMatMul", "adj_x", "adj_y"),
    *transposed("BatchMatMulV2", "adj_x", "adj_y"),
    *(
        case("MatMul", ramp(x), ramp(y))
        for x, y in (((2, 0), (0, 3)), ((0, 2), (2, 3)), ((1, 3), (3, 1)))
    ),
    *(case("MatMul", ramp(x), ramp(y), message=True) for x, y in MAT_MUL_ERRORS),
    case("MatMul", ramp((2, 3)), ramp((2, 3)), transpose_a=True, transpose_b=True, message=True),
    *(
        case(op, ramp(x), ramp(y))
        for op in ("BatchMatMul", "BatchMatMulV2")
        for x, y in BATCH_SHAPES
    ),
    *(case("BatchMatMulV2", ramp(x), ramp(y)) for x, y in BROADCAST_SHAPES),
    *(case("BatchMatMul", ramp(x), ramp(y), message=True) for x, y in BROADCAST_SHAPES),
    *(
        case(op, ramp(x), ramp(y), message=True)
        for op in ("BatchMatMul", "BatchMatMulV2")
        for x, y in BATCH_ERRORS
    ),
    case(
        "BatchMatMulV3",
        np.array([[-128, 127]], np.int8),
        np.array([[127], [127]], np.int8),
        Tout=DataType.INT32,
    ),
    case("MatMul", np.array([[1 << 30, 1 << 30]], np.int32), np.array([[2], [2]], np.int32)),
)
