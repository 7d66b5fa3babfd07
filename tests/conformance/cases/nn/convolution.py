"""Convolutions: Conv2D, Conv3D, DepthwiseConv2dNative."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(1)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float64)

# TensorFlow accumulates in 16 bits where these kernels accumulate in 32.
LOOSE = (
    (np.float16, {"tolerance": 0.02}),
    (ml_dtypes.bfloat16, {"tolerance": 0.2}),
    (np.float64, {}),
)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (RNG.normal(size=shape) * 2).astype(dtype)


def convolution(
    op: str, x: tuple[int, ...], filter: tuple[int, ...], dtype: Any = np.float32, **attrs: Any
) -> Case:
    given = {"strides": [1] * max(len(x), len(filter)), "padding": "SAME", "message": True, **attrs}
    return case(op, normal(*x, dtype=dtype), normal(*filter, dtype=dtype), **given)


X2, F2 = (2, 6, 7, 4), (3, 3, 4, 5)
X3, F3 = (2, 4, 5, 6, 4), (2, 3, 3, 4, 5)
EXPLICIT = {"padding": "EXPLICIT"}

CONV2D = (
    (X2, F2, {}),
    (X2, F2, {"padding": "VALID"}),
    (X2, F2, {"strides": [1, 2, 2, 1]}),
    (X2, F2, {"strides": [1, 3, 2, 1], "padding": "VALID"}),
    (X2, F2, {"dilations": [1, 2, 2, 1]}),
    (X2, F2, {"dilations": [1, 2, 3, 1], "padding": "VALID"}),
    (X2, F2, {"dilations": [1, 1, 2, 1], "strides": [1, 2, 2, 1]}),
    (X2, F2, {**EXPLICIT, "explicit_paddings": [0, 0, 1, 2, 3, 0, 0, 0]}),
    (X2, F2, {**EXPLICIT, "explicit_paddings": [0, 0, 5, 0, 0, 6, 0, 0]}),
    (X2, (1, 1, 4, 5), {}),
    (X2, (1, 1, 4, 5), {"strides": [1, 2, 3, 1]}),
    (X2, (1, 1, 4, 5), {"strides": [1, 8, 9, 1]}),
    (X2, (2, 2, 4, 5), {"strides": [1, 3, 3, 1]}),
    (X2, (6, 7, 4, 3), {"padding": "VALID"}),
    (X2, (9, 8, 4, 3), {}),
    (X2, (3, 2, 2, 6), {}),
    (X2, (3, 2, 1, 8), {"padding": "VALID", "strides": [1, 2, 2, 1]}),
    (X2, (1, 1, 2, 6), {}),
    ((1, 40, 40, 3), (5, 5, 3, 8), {"strides": [1, 2, 2, 1]}),
    ((0, 6, 7, 4), F2, {}),
    ((2, 0, 7, 4), F2, {}),
    (X2, (3, 3, 4, 0), {}),
    (X2, (7, 3, 4, 5), {"padding": "VALID"}),
    # rejected
    (X2, (8, 3, 4, 5), {"padding": "VALID"}),
    (X2, (3, 3, 3, 5), {}),
    (X2, (3, 3, 2, 5), {}),
    (X2, (3, 3, 0, 5), {}),
    (X2, (0, 3, 4, 5), {}),
    (X2[1:], F2, {}),
    (X2, F2[1:], {}),
    (X2, F2, {"strides": [2, 1, 1, 1]}),
    (X2, F2, {"strides": [1, 1, 1, 2]}),
    (X2, F2, {"dilations": [2, 1, 1, 1]}),
    # rejected while the graph is imported: only the error code can be compared
    (X2, F2, {"strides": [1, 0, 1, 1], "message": False}),
    (X2, F2, {"strides": [1, 1, 1], "message": False}),
    (X2, F2, {"dilations": [1, 0, 1, 1], "message": False}),
    (X2, F2, {**EXPLICIT, "explicit_paddings": [0, 0, 1, 1, 1, 1], "message": False}),
    (X2, F2, {**EXPLICIT, "explicit_paddings": [0, 1, 1, 1, 1, 1, 0, 0], "message": False}),
    (X2, F2, {**EXPLICIT, "explicit_paddings": [0, 0, -1, 1, 1, 1, 0, 0], "message": False}),
    (X2, F2, {"explicit_paddings": [0, 0, 1, 1, 1, 1, 0, 0], "message": False}),
)

DEPTHWISE = (
    (X2, (3, 3, 4, 1), {}),
    (X2, (3, 3, 4, 2), {}),
    (X2, (3, 3, 4, 1), {"strides": [1, 2, 2, 1]}),
    (X2, (3, 3, 4, 3), {"strides": [1, 2, 2, 1], "padding": "VALID"}),
    (X2, (5, 2, 4, 1), {"padding": "VALID"}),
    (X2, (1, 1, 4, 2), {}),
    (X2, (3, 3, 4, 1), {**EXPLICIT, "explicit_paddings": [0, 0, 1, 2, 3, 0, 0, 0]}),
    ((1, 40, 40, 32), (3, 3, 32, 1), {}),
    ((0, 6, 7, 4), (3, 3, 4, 1), {}),
    (X2, (3, 3, 4, 0), {}),
    # rejected
    (X2, (3, 3, 3, 1), {}),
    (X2[1:], (3, 3, 4, 1), {}),
    (X2, (3, 3, 4), {}),
    (X2, (8, 3, 4, 1), {"padding": "VALID"}),
    (X2, (3, 3, 4, 1), {"strides": [1, 1, 2, 1]}),
    (X2, (3, 3, 4, 1), {"strides": [2, 1, 1, 1]}),
    (X2, (3, 3, 4, 1), {"strides": [1, 0, 0, 1], "message": False}),
)

CONV3D = (
    (X3, F3, {}),
    (X3, F3, {"padding": "VALID"}),
    (X3, F3, {"strides": [1, 2, 1, 3, 1]}),
    (X3, (1, 1, 1, 4, 3), {}),
    (X3, (1, 1, 1, 4, 3), {"strides": [1, 2, 2, 2, 1]}),
    ((0, 4, 5, 6, 4), F3, {}),
    # rejected
    (X3, (2, 3, 3, 3, 5), {}),
    (X3[1:], F3, {}),
    (X3, F3[1:], {}),
    (X3, (6, 3, 3, 4, 5), {"padding": "VALID"}),
    (X3, F3, {"strides": [2, 1, 1, 1, 1]}),
)

CASES = (
    *(convolution("Conv2D", x, filter, **attrs) for x, filter, attrs in CONV2D),
    *(convolution("Conv2D", X2, F2, dtype=dtype) for dtype in (*FLOATS, np.int32)),
    *(convolution("Conv2D", X2, (3, 3, 2, 6), dtype=dtype) for dtype in FLOATS),
    *(convolution("DepthwiseConv2dNative", x, f, **attrs) for x, f, attrs in DEPTHWISE),
    *(
        convolution("DepthwiseConv2dNative", X2, (3, 3, 4, 2), dtype=dtype, **tolerance)
        for dtype, tolerance in LOOSE
    ),
    *(convolution("Conv3D", x, filter, **attrs) for x, filter, attrs in CONV3D),
    *(convolution("Conv3D", X3, F3, dtype=dtype, **tolerance) for dtype, tolerance in LOOSE),
    *(
        case(
            "DepthwiseConv2dNative",
            np.ones((1, 3, 4, 2), np.float32),
            np.ones(shape, np.float32),
            strides=[1, 1, 1, 1],
            padding="SAME",
            dilations=dilations,
            message=True,
        )
        for shape, dilations in (((0, 0, 2, 2), [1, 1, 1, 1]), ((2, 2, 2, 2), [1, 1, 1, 2]))
    ),
    case(
        "Conv2D",
        np.ones((2, 0, 7, 4), np.float32),
        np.ones((3, 3, 1, 5), np.float32),
        strides=[1, 1, 1, 1],
        padding="SAME",
    ),
    *(
        convolution("Conv3D", x, filter)
        for x, filter in (
            (X3, (2, 3, 3, 4, 0)),
            ((2, 0, 5, 6, 0), F3),
            ((0, 4, 5, 6, 8), F3),
            ((2, 4, 5, 6, 0), F3),
        )
    ),
)
