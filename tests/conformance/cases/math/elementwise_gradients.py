"""Gradients of element-wise functions and of broadcasting."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

OPS = ("ReciprocalGrad", "InvGrad", "RsqrtGrad", "SqrtGrad", "SigmoidGrad", "TanhGrad")
DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128)
RESULT, GRADIENT = np.array([[0.5, 2], [0.25, 1]]), np.array([[1, -2], [3, 0.5]])
SHAPES = (
    ([2, 3], [3]),
    ([2, 1], [1, 3]),
    ([], []),
    ([], [2]),
    ([2, 3], [2, 3]),
    ([1], [1]),
    ([0, 1], [1]),
    ([1, 1], [1]),
    ([4, 1, 5, 1], [3, 1, 2]),
)

CASES: tuple[Case, ...] = (
    *(
        case(op, RESULT.astype(t), GRADIENT.astype(t), name=f"{op}_{np.dtype(t)}")
        for op in OPS
        for t in DTYPES
    ),
    *(
        case(op, np.array([0.5 + 1j, -2j], np.complex64), np.array([1 - 2j, 3], np.complex64))
        for op in OPS
    ),
    *(case(op, np.float32(0.5), np.float32(3), name=f"{op}_scalar") for op in OPS),
    *(case(op, [0.5, 2.0], [1.0, 2.0, 3.0], name=f"{op}_sizes", message=True) for op in OPS),
    *(
        case("BroadcastGradientArgs", np.array(s0, t), np.array(s1, t))
        for t in (np.int32, np.int64)
        for s0, s1 in SHAPES
    ),
    case("BroadcastGradientArgs", [2], [3], message=True),
    case("BroadcastGradientArgs", [[1]], [1], message=True),
)
