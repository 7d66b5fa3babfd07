"""Pooling: AvgPool, MaxPool and their 3-D forms."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(2)
X2, X3 = (2, 6, 7, 4), (2, 4, 5, 6, 3)
INTEGERS = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64,
)  # fmt: skip


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (RNG.normal(size=shape) * 50).astype(np.float64).astype(np.int64).astype(dtype)


def pool(op: str, shape: tuple[int, ...], dtype: Any = np.float32, **attrs: Any) -> Case:
    rank = len(X3) if "3D" in op else len(X2)
    spatial = [2] * (rank - 2)
    given = {
        "ksize": [1, *spatial, 1], "strides": [1, *spatial, 1], "padding": "SAME", "message": True,
    } | attrs  # fmt: skip
    return case(op, normal(*shape, dtype=dtype), **given)


BOTH = (
    (X2, {}),
    (X2, {"padding": "VALID"}),
    (X2, {"ksize": [1, 3, 3, 1], "strides": [1, 1, 1, 1]}),
    (X2, {"ksize": [1, 3, 2, 1], "strides": [1, 2, 3, 1], "padding": "VALID"}),
    (X2, {"ksize": [1, 1, 1, 1], "strides": [1, 3, 3, 1]}),
    (X2, {"ksize": [1, 6, 7, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}),
    (X2, {"ksize": [1, 20, 30, 1], "strides": [1, 1, 1, 1]}),
    (X2, {"ksize": [1, 7, 7, 1], "padding": "VALID"}),
    ((0, 6, 7, 4), {}),
    ((2, 0, 7, 4), {}),
    ((2, 6, 7, 0), {}),
    # errors
    (X2[1:], {}),
    (X2, {"ksize": [1, 8, 8, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}),
    (X2, {"ksize": [2, 2, 2, 1]}),
    (X2, {"strides": [2, 2, 2, 1]}),
    (X2, {"ksize": [1, 2, 2, 2], "strides": [1, 2, 2, 2]}),
    (X2, {"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 3]}),
    (X2, {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 1]}),
    (X2, {"ksize": [1, 0, 2, 1]}),
    (X2, {"ksize": [1, -2, 2, 1]}),
    (X2, {"ksize": [1, 2, 2], "message": False}),
    (X2, {"strides": [1, 2, 2], "message": False}),
)
AVERAGE = ((X2, {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2]}),)
EXPLICIT = {"padding": "EXPLICIT", "strides": [1, 1, 1, 1]}
LARGEST = (
    (X2, {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2]}),
    (X2, {**EXPLICIT, "explicit_paddings": [0, 0, 1, 1, 0, 1, 0, 0]}),
    (X2, {**EXPLICIT, "explicit_paddings": [0, 0, 0, 1, 1, 0, 0, 0], "strides": [1, 2, 2, 1]}),
    (X2, {**EXPLICIT, "explicit_paddings": [0, 0, 2, 1, 0, 1, 0, 0]}),
    (X2, {**EXPLICIT, "explicit_paddings": [0, 0, 1, 1, 0, 1], "message": False}),
)
BOTH_3D = (
    (X3, {}),
    (X3, {"padding": "VALID"}),
    (X3, {"ksize": [1, 3, 2, 1, 1], "strides": [1, 1, 1, 2, 1]}),
    (X3, {"ksize": [1, 4, 5, 6, 1], "padding": "VALID"}),
    ((0, 4, 5, 6, 3), {}),
    (X3[1:], {"message": False}),
    (X3, {"ksize": [1, 5, 5, 5, 1], "strides": [1, 1, 1, 1, 1], "padding": "VALID"}),
    (X3, {"ksize": [2, 2, 2, 2, 1], "message": False}),
)
UNUSUAL = np.array([np.nan, 1, -np.inf, -np.inf, np.inf, 2, np.nan, np.nan], np.float32)
UNUSUAL = UNUSUAL.reshape(1, 1, 8, 1)

CASES = (
    *(pool(op, *each[:1], **each[1]) for op in ("AvgPool", "MaxPool") for each in BOTH),
    *(pool("AvgPool", shape, **attrs) for shape, attrs in AVERAGE),
    *(pool("MaxPool", shape, **attrs) for shape, attrs in LARGEST),
    *(
        pool(op, X2, dtype)
        for op in ("AvgPool", "MaxPool")
        for dtype in (np.float16, ml_dtypes.bfloat16, np.float64)
    ),
    *(pool("MaxPool", X2, dtype) for dtype in INTEGERS),
    *(pool(op, shape, **attrs) for op in ("AvgPool3D", "MaxPool3D") for shape, attrs in BOTH_3D),
    *(pool(op, X3, ml_dtypes.bfloat16) for op in ("AvgPool3D", "MaxPool3D")),
    *(
        case(
            op,
            UNUSUAL.reshape(1, 1, 8, 1),
            ksize=[1, 1, 2, 1],
            strides=[1, 1, 2, 1],
            padding="SAME",
        )
        for op in ("AvgPool", "MaxPool")
    ),
    *(
        case("MaxPoolV2", normal(*X2), ksize, strides, padding="VALID", message=message)
        for ksize, strides, message in (
            ([1, 2, 2, 1], [1, 2, 2, 1], True),
            ([1, 3, 1, 1], [1, 1, 2, 1], True),
            ([1, 2, 2], [1, 2, 2, 1], False),
            ([1, 2, 2, 1], [1, 0, 2, 1], False),
            ([1, 2, 2, 1], [2, 2, 2, 1], True),
        )
    ),
    *(
        case("MaxPoolV2", normal(*X2), ksize, strides, padding="VALID", message=True)
        for ksize, strides in (
            ([1, 2, 2, 1], [2, 0, 2, 1]),
            ([1, 2, 2, 1], [1, 2, 2, 0]),
            ([1, 2, 2, 1], [1, 0, -1, 1]),
            ([1, 2, 2, 1], [1, 2, 2]),
            ([1, 0, 2, 1], [1, 2, 2, 1]),
        )
    ),
    *(
        pool(op, shape, **attrs)
        for op in ("AvgPool3D", "MaxPool3D")
        for shape, attrs in (
            (X3, {"ksize": [0, 2, 2, 2, 1]}),
            (X3, {"ksize": [1, 2, 2, 2, 3]}),
            (X3, {"strides": [1, 2, 2, 2, 3]}),
            (X3[1:], {}),
        )
    ),
    pool("AvgPool", X2, ksize=[0, 2, 2, 1]),
)
