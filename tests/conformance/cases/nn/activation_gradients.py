"""Gradients of activations."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import case

X = np.array([-7.5, -2, -1, -0.25, 0, 0.5, 1, 5.9, 6, 7, np.nan], np.float32)
G = np.linspace(-2, 3, 11).astype(np.float32)
NINE = np.arange(9)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64,
)  # fmt: skip
RECTIFIERS = ("ReluGrad", "Relu6Grad")
OPS = (
    *RECTIFIERS, "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad",
)  # fmt: skip

CASES = (
    *(case(op, G.astype(t), X.astype(t)) for op in OPS for t in FLOATS),
    *(
        case(op, np.arange(9).astype(t), np.arange(9).astype(t))
        for op in RECTIFIERS
        for t in INTEGERS
    ),
    *(case(op, G, X[:1]) for op in OPS),
    *(case(op, G[None], X) for op in OPS),
    *(case(op, G[:0], X[:0]) for op in OPS),
    *(case("LeakyReluGrad", G, X, alpha=alpha) for alpha in (0.0, 0.5, -1.0)),
    case("ReluGrad", G * np.nan, X),
)
