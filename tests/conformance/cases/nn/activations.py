"""Activations: Relu and its variants, Softplus, Softsign, Softmax."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import case

VALUES = np.array(
    [-np.inf, -100, -7.5, -1, -0.25, -0.0, 0, 0.5, 1, 5.9, 6, 8, 100, np.inf, np.nan], np.float32
)
FINITE = np.array([-100, -7.5, -1, -1e-5, 0, 1e-4, 0.5, 1, 5.9, 6, 8, 100], np.float32)
ROWS = np.random.default_rng(4).normal(size=(2, 3, 5)).astype(np.float32) * 4
UNUSUAL = np.array(
    [[1, np.inf, 0], [-np.inf, 1, 2], [-np.inf] * 3, [np.nan, 1, 2], [1e30, -1e30, 0]], np.float32
)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = (
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64,
)  # fmt: skip

CASES = (
    *(
        case(op, values.astype(dtype))
        for op in ("Elu", "LeakyRelu", "Relu", "Relu6", "Selu", "Softplus", "Softsign")
        for values in (VALUES, FINITE)
        for dtype in FLOATS
    ),
    *(
        case(op, np.array([-100, -1, 0, 1, 5, 6, 7, 100]).astype(dtype))
        for op in ("Relu", "Relu6", "LeakyRelu")
        for dtype in INTEGERS
        if op != "LeakyRelu"
    ),
    *(case("LeakyRelu", FINITE, alpha=alpha) for alpha in (0.0, 0.5, 1.5, -1.0)),
    *(
        case(op, value)
        for op in ("Relu", "Softplus", "Elu")
        for value in (np.float32(-2), np.zeros((0, 3), np.float32))
    ),
    *(
        case(op, value, message=True)
        for op in ("Softmax", "LogSoftmax")
        for value in (
            *(ROWS.astype(dtype) for dtype in FLOATS),
            ROWS[0, 0], ROWS[:0], ROWS[..., :0], UNUSUAL, np.float32(1),
        )
    ),
)  # fmt: skip
