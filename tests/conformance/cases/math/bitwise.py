"""Bitwise logic, shifts (also too far), PopulationCount."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case, case

INTEGERS = (
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
BINARY = ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift")
UNARY = ("Invert", "PopulationCount")
LEFT, RIGHT = np.array([[1, 100, 5, 127, 0]]), np.array([[3], [2]])

CASES: tuple[Case, ...] = (
    *(
        case(op, LEFT.astype(t), RIGHT.astype(t), name=f"{op}_{np.dtype(t)}")
        for op in BINARY
        for t in INTEGERS
    ),
    *(case(op, LEFT.astype(t), name=f"{op}_{np.dtype(t)}") for op in UNARY for t in INTEGERS),
    *(case(op, -LEFT, name=f"{op}_negative") for op in UNARY),
    *(case(op, np.int32(5), name=f"{op}_scalar") for op in UNARY),
    *(
        case(op, np.array([1, -8, 5, 100], np.int8), np.array([-1, 33, 7, 8], np.int8))
        for op in ("LeftShift", "RightShift")
    ),
    *(
        case(op, np.array([1, 255], np.uint8), np.array([200, 8], np.uint8))
        for op in ("LeftShift", "RightShift")
    ),
    *(case(op, [1, 2], [1, 2, 3], name=f"{op}_shapes", message=True) for op in BINARY),
)
