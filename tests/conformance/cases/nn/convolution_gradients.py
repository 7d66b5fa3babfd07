"""Gradients of convolutions, including the transposed convolution."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(5)
# TensorFlow accumulates in 16 bits where these kernels accumulate in 32.
TYPES = (
    (np.float16, {"tolerance": 0.02}),
    (ml_dtypes.bfloat16, {"tolerance": 0.2}),
    (np.float64, {}),
)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (RNG.normal(size=shape) * 2).astype(dtype)


def backprop_input(
    op: str,
    sizes: Any,
    filter: tuple[int, ...],
    gradient: tuple[int, ...],
    dtype: Any = np.float32,
    **attrs: Any,
) -> Case:
    given = {"strides": [1] * len(gradient), "padding": "SAME", "message": True, **attrs}
    return case(
        op, np.int32(sizes), normal(*filter, dtype=dtype), normal(*gradient, dtype=dtype), **given
    )


def backprop_filter(
    op: str,
    x: tuple[int, ...],
    sizes: Any,
    gradient: tuple[int, ...],
    dtype: Any = np.float32,
    **attrs: Any,
) -> Case:
    given = {"strides": [1] * len(gradient), "padding": "SAME", "message": True, **attrs}
    return case(
        op, normal(*x, dtype=dtype), np.int32(sizes), normal(*gradient, dtype=dtype), **given
    )


X, F, G = (2, 5, 6, 4), (3, 3, 4, 3), (2, 5, 6, 3)
STRIDED = {"strides": [1, 2, 2, 1], "padding": "VALID"}

INPUT_2D = (
    (X, F, G, {}),
    (X, (1, 1, 4, 3), G, {}),
    (X, (3, 3, 4, 3), (2, 3, 4, 3), {"padding": "VALID"}),
    (X, (2, 2, 4, 3), (2, 3, 3, 3), {"strides": [1, 2, 2, 1]}),
    ((1, 11, 9, 4), F, (1, 5, 4, 3), STRIDED),
    ((1, 12, 10, 4), F, (1, 5, 4, 3), STRIDED),
    ((1, 12, 9, 4), (2, 2, 4, 3), (1, 4, 3, 3), {**STRIDED, "strides": [1, 3, 3, 1]}),
    ((5, 6), F, G, {}),
    (X, F, (2, 7, 5, 3), {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 3, 1, 0, 1, 0, 0]}),
    ((0, 5, 6, 4), F, (0, 5, 6, 3), {}),
    (X, (3, 3, 4, 0), (2, 5, 6, 0), {}),
    # rejected
    (X[1:], F, G, {"message": False}),
    ([X], F, G, {}),
    (X, F[1:], G, {}),
    (X, F, G[1:], {"message": False}),
    ((1, 5, 6, 4), F, G, {}),
    ((2, 6, 6, 4), F, G, {}),
    ((2, 5, 6, 3), F, G, {}),
    ((2, 5, 6, 8), F, G, {}),
    (X, F, (2, 5, 6, 5), {}),
    ((2, -5, 6, 4), F, G, {}),
    (X, F, G, {"strides": [2, 1, 1, 1]}),
    (X, F, G, {"strides": [1, 1, 1]}),
)
FILTER_2D = (
    (X, F, G, {}),
    (X, (1, 1, 4, 3), G, {}),
    (X, F, (2, 3, 4, 3), {"padding": "VALID"}),
    (X, (2, 2, 4, 3), (2, 3, 3, 3), {"strides": [1, 2, 2, 1]}),
    ((1, 12, 10, 4), F, (1, 5, 4, 3), STRIDED),
    (X, F, (2, 7, 5, 3), {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 3, 1, 0, 1, 0, 0]}),
    ((0, 5, 6, 4), F, (0, 5, 6, 3), {}),
    # rejected
    (X, [F], G, {}),
    (X, F, (1, 5, 6, 3), {}),
    (X, F, (2, 4, 6, 3), {}),
    (X, F, (2, 5, 6, 5), {}),
    (X, (3, 3, 3, 3), G, {}),
    (X, F, G, {"strides": [2, 1, 1, 1]}),
)
X3, F3, G3 = (2, 4, 5, 6, 3), (2, 3, 3, 3, 2), (2, 4, 5, 6, 2)
BOTH_3D = (
    (X3, F3, G3, {}),
    (X3, F3, (2, 3, 3, 4, 2), {"padding": "VALID"}),
    (X3, F3, (2, 2, 3, 3, 2), {"strides": [1, 2, 2, 2, 1]}),
    (X3, F3, (2, 4, 5, 5, 2), {"message": False}),
    (X3, F3, (1, 4, 5, 6, 2), {"message": False}),
)

D = (3, 3, 4, 1)
DEPTHWISE = (
    (X, D, X, {}),
    (X, (3, 2, 4, 2), (2, 5, 6, 8), {}),
    (X, D, (2, 3, 3, 4), {"strides": [1, 2, 2, 1]}),
    (X, (3, 3, 4, 2), (2, 2, 2, 8), {**STRIDED}),
    (X, D, (2, 7, 5, 4), {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 3, 1, 0, 1, 0, 0]}),
    ((0, 5, 6, 4), D, (0, 5, 6, 4), {}),
    # rejected
    (X, (3, 3, 3, 1), X, {}),
    (X, (3, 3, 4, 2), X, {}),
    (X, D, (1, 5, 6, 4), {}),
    (X, D, (2, 4, 6, 4), {}),
    (X, D, (2, 5, 5, 4), {}),
    (X, D[1:], X, {}),
    (X[1:], D, X, {}),
    (X, D, X[1:], {"strides": [1, 1, 1, 1]}),
    (X, D, X, {"strides": [1, 1, 2, 1]}),
    (X, D, X, {"strides": [2, 1, 1, 1]}),
)

CASES = (
    *(backprop_input("Conv2DBackpropInput", *each[:3], **each[3]) for each in INPUT_2D),
    *(
        backprop_input("Conv2DBackpropInput", X, F, G, dtype=t, **k)
        for t, k in (*TYPES, (np.int32, {}))
    ),
    *(backprop_filter("Conv2DBackpropFilter", *each[:3], **each[3]) for each in FILTER_2D),
    *(backprop_filter("Conv2DBackpropFilter", X, F, G, dtype=t, **k) for t, k in TYPES),
    *(backprop_input("Conv3DBackpropInputV2", *each[:3], **each[3]) for each in BOTH_3D),
    *(backprop_input("Conv3DBackpropInputV2", X3, F3, G3, dtype=t, **k) for t, k in TYPES),
    *(backprop_filter("Conv3DBackpropFilterV2", *each[:3], **each[3]) for each in BOTH_3D),
    *(backprop_filter("Conv3DBackpropFilterV2", X3, F3, G3, dtype=t, **k) for t, k in TYPES),
    *(
        backprop_input("DepthwiseConv2dNativeBackpropInput", *each[:3], **each[3])
        for each in DEPTHWISE
    ),
    *(
        backprop_filter("DepthwiseConv2dNativeBackpropFilter", *each[:3], **each[3])
        for each in DEPTHWISE
        if each[0][0]  # TensorFlow leaves the gradient of an empty batch unset
    ),
    *(
        backprop_input("DepthwiseConv2dNativeBackpropInput", X, D, X, dtype=t, **k)
        for t, k in TYPES
    ),
    *(
        backprop_filter("DepthwiseConv2dNativeBackpropFilter", X, D, X, dtype=t, **k)
        for t, k in TYPES
    ),
)
