"""Dilation2D and its gradients."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import case

RNG = np.random.default_rng(7)
TYPES = (
    np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32,
    np.int64, np.uint32, np.uint64,
)  # fmt: skip
X = RNG.integers(0, 50, size=(2, 5, 6, 3)).astype(np.float32)
F = RNG.integers(0, 50, size=(2, 3, 3)).astype(np.float32)
PLAIN: dict[str, Any] = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
ATTRS = (
    ({}, (2, 5, 6, 3)),
    ({"padding": "VALID"}, (2, 4, 4, 3)),
    ({"strides": [1, 2, 3, 1]}, (2, 3, 2, 3)),
    ({"rates": [1, 2, 2, 1]}, (2, 5, 6, 3)),
    ({"rates": [1, 3, 2, 1], "padding": "VALID"}, (2, 2, 2, 3)),
)
REFUSED = (
    (X[0], F, {}), (X, F[0], {}), (X, F[..., :2], {}), (X, F, {"strides": [2, 1, 1, 1]}),
    (X, F, {"rates": [2, 1, 1, 1]}),
)  # fmt: skip
GRADIENTS = ("Dilation2DBackpropInput", "Dilation2DBackpropFilter")

CASES = (
    *(case("Dilation2D", X, F, **PLAIN | attrs) for attrs, _ in ATTRS),
    *(case("Dilation2D", X.astype(t), F.astype(t), **PLAIN) for t in TYPES),
    *(case("Dilation2D", x, f, **PLAIN | attrs, message=True) for x, f, attrs in REFUSED),
    case("Dilation2D", X[:0], F, **PLAIN),
    case("Dilation2D", X * np.nan, F, **PLAIN),
    *(
        case(op, X, F, RNG.normal(size=shape).astype(np.float32), **PLAIN | attrs)
        for op in GRADIENTS
        for attrs, shape in ATTRS
    ),
    *(
        case(op, X.astype(t), F.astype(t), (X / 10).astype(np.int64).astype(t), **PLAIN, **loose)
        for op in GRADIENTS
        for t in TYPES
        for loose in ({"tolerance": 0.02} if t == np.float16 else {},)
    ),
    *(case(op, X, F, bad, **PLAIN, message=True) for op in GRADIENTS for bad in (X[0], X[:, :2])),
    case(
        "Dilation2D",
        X,
        F,
        **PLAIN | {"strides": [1, -1, 1, 1], "rates": [2, 1, 1, 1]},
        message=True,
    ),
)
