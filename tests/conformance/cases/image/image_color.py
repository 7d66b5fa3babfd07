"""Colour spaces and adjustments."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import case

RNG = np.random.default_rng(9)
X = RNG.uniform(size=(2, 3, 4, 3)).astype(np.float32)
GREY = np.array(
    [[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32
)
PURE = np.eye(3)
EDGE = np.concatenate([GREY, PURE, 1 - PURE, PURE / 2]).astype(np.float32)

CASES = (
    *(case(op, x) for op in ("RGBToHSV", "HSVToRGB") for x in (X, EDGE, X[0, 0, 0], X[:0])),
    *(
        case(op, X.astype(dtype), tolerance=loose)
        for op in ("RGBToHSV", "HSVToRGB")
        for dtype, loose in ((np.float16, 0.02), (ml_dtypes.bfloat16, 0.1), (np.float64, None))
    ),
    *(
        case(op, x, message=True)
        for op in ("RGBToHSV", "HSVToRGB")
        for x in (np.float32(1), X[..., :2])
    ),
    *(
        case("AdjustContrastv2", x, np.float32(factor))
        for x in (X, X[0], X[None], X[..., :1])
        for factor in (0, 0.5, 2, -1)
    ),
    case("AdjustContrastv2", X[:, :0], np.float32(1.5)),
    *(
        case("AdjustContrastv2", x, np.float32(factor), message=True)
        for x, factor in ((X[0, 0], 1), (X, [1]))
    ),
    *(case("AdjustHue", X, np.float32(d)) for d in (0, 0.1, -0.3, 1, -1, 0.5)),
    *(case("AdjustHue", X - np.float32(0.5), np.float32(d)) for d in (0, 0.3, -42.138172, 977.3)),
    *(case("AdjustSaturation", X, np.float32(s)) for s in (0, 0.5, 1, 3, 10)),
    *(case(op, EDGE[None], np.float32(0.4)) for op in ("AdjustHue", "AdjustSaturation")),
    *(
        case(op, x, np.float32(amount), message=True)
        for op in ("AdjustHue", "AdjustSaturation")
        for x, amount in ((X[0, 0], 1), (X, [1]), (X[..., :2], 1), (X[:0], 1))
    ),
)
