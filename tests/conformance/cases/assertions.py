"""Assert, Print and StringFormat: how tensors are written."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

FLOATS = np.array([1.1, 1e10, 123456789.0, 1e-7, -0.0, np.nan, np.inf, 1e5, 1e8, 0.0001])
VALUES = [
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.array(["a\x01'é\"b\n\t\\", "c"], object),
    2.5,
    np.zeros(0, np.float32),
    np.zeros((2, 0), np.int64),
    True,
    FLOATS.astype(np.float32),
    FLOATS,
    np.zeros((2, 2, 2), np.uint8),
    np.array([1.5, 0.1], np.float16),
    np.array([1 + 2j], np.complex64),
    np.zeros((5, 2), np.int16),
    np.zeros((3, 0, 2), np.float64),
]

CASES = (
    *(
        case("Assert", False, VALUES, summarize=summarize, message=True)
        for summarize in (-1, 1, 3, 4, 5, 100)
    ),
    case("Assert", False, [1], message=True),
    case("Assert", True, [1]),
    case("Assert", [True], [1], message=True),
    *(
        case("StringFormat", [value], template="<{}>", placeholder="{}", summarize=summarize)
        for value in [
            *VALUES,
            np.arange(16, dtype=np.int32).reshape(2, 2, 2, 2),
            np.zeros((7, 2, 7), np.float32),
        ]
        for summarize in (-1, 1, 3)
    ),
    case("StringFormat", [1, 2.5], template="%t and %t", placeholder="%t"),
    case("StringFormat", [1], template="%s %s"),
    case("StringFormat", [1], template="nothing"),
    case("Print", 3, [4, "x"], message="m", first_n=1, summarize=2),
    case("PrintV2", "text", output_stream="stderr"),
)
