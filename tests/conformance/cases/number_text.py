"""AsString and StringToNumber."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import case

REALS = np.array([1.5, -2e10, 1e-9, np.nan, -np.nan, np.inf, -np.inf, -0.0, 1.1])
VALUES = [
    REALS.astype(np.float32),
    REALS,
    np.array([1.1, -2.0], np.float16),
    np.array([1.1, -2.0], ml_dtypes.bfloat16),
    np.array([1 + 2j, -0.5j], np.complex64),
    np.array([1.5 - 2j], np.complex128),
    np.array([[1, -5]], np.int8),
    np.array([3, -5], np.int16),
    np.array(7, np.int32),
    np.array([2**62, -1], np.int64),
    np.array([200], np.uint8),
    np.array([65535], np.uint16),
    np.array([2**32 - 1], np.uint32),
    np.array([2**64 - 1], np.uint64),
    np.array([True, False]),
    np.array(["a", "é"], object),
    np.empty((0, 2), np.float32),
]
FORMATS: list[dict[str, object]] = [
    {},
    {"precision": 3},
    {"scientific": True},
    {"shortest": True},
    {"shortest": True, "precision": 3},
    {"scientific": True, "precision": 2},
    {"scientific": True, "shortest": True},
    {"width": 8},
    *({"width": 8, "fill": fill} for fill in ("0", "-", "+", " ", "x", "ab")),
]

CASES = (
    *(case("AsString", value, message=True, **options) for options in FORMATS for value in VALUES),
)
