"""Projective transforms, and scaling with translation."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import case

RNG = np.random.default_rng(17)
X = RNG.integers(0, 100, size=(2, 5, 6, 2)).astype(np.float32)
TRANSFORMS = np.array(
    [[1, 0, 0, 0, 1, 0, 0, 0], [1, 0, -1.5, 0, 1, 2.25, 0, 0], [0.5, 0.2, 1, -0.3, 0.7, 2, 0, 0],
     [1, 0.1, -7, 0.2, 1.2, -9, 0.05, 0.1], [2.1, 0, 3, 0, 2.2, -4, 0, 0],
     [1, 0, 0, 0, 1, 0, -0.5, 0]],
    np.float32,
)  # fmt: skip
TWO = TRANSFORMS[1:3]
FILLS = ("CONSTANT", "REFLECT", "WRAP", "NEAREST")
METHODS = ("NEAREST", "BILINEAR")
V2: dict[str, Any] = {"interpolation": "BILINEAR"}
SIZE = np.array([4, 7], np.int32)
GRADS = RNG.normal(size=(2, 4, 7, 2)).astype(np.float32)
IDENTITY = TRANSFORMS[:1]
KERNELS = (
    "lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic",
    "mitchellcubic",
)  # fmt: skip
MOVES = (
    ([1.0, 1.0], [0.0, 0.0]),
    ([0.5, 0.4], [0.0, 1.0]),
    ([1.7, 2.0], [-1.5, 0.5]),
    ([0.8, 3.0], [2.0, -7.0]),
)
REFUSED_SCALES: tuple[tuple[Any, ...], ...] = (
    (X[0], SIZE, [1.0, 1.0], [0.0, 0.0]), (X, SIZE[:1], [1.0, 1.0], [0.0, 0.0]),
    (X, SIZE, [1.0], [0.0, 0.0]), (X, SIZE, [1.0, 1.0], [0.0]),
    (X, SIZE * 0, [1.0, 1.0], [0.0, 0.0]),
    (X, SIZE, [0.0, 1.0], [0.0, 0.0]), (X, SIZE, [1.0, -1.0], [0.0, 0.0]),
)  # fmt: skip

CASES = (
    *(
        case(
            "ImageProjectiveTransformV3", X, row[None], SIZE, np.float32(-3.5),
            interpolation=method, fill_mode=fill,
        )
        for row in TRANSFORMS
        for method in METHODS
        for fill in FILLS
    ),
    *(  # fill_value is cast to the images' dtype before the interpolation
        case(
            "ImageProjectiveTransformV3", (X * 0.37).astype(t), TWO, SIZE, np.float32(-3.5),
            interpolation=method, fill_mode=fill,
        )
        for t, method in ((np.int32, "BILINEAR"), (np.int64, "NEAREST"), (np.float64, "NEAREST"))
        for fill in ("CONSTANT", "REFLECT")
    ),
    case("ImageProjectiveTransformV2", X, TWO, SIZE, **V2),
    *(
        case("ImageProjectiveTransformV2", X.astype(t), TWO, SIZE, **V2, tolerance=loose)
        for t, loose in (
            (np.uint8, None), (np.int32, None), (np.int64, None), (np.float16, 0.01),
            (ml_dtypes.bfloat16, 0.1), (np.float64, 1e-6),
        )
    ),
    *(
        case("ImageProjectiveTransformV2", *inputs, message=True, **V2)
        for inputs in (
            (X[0], IDENTITY, SIZE), (X, IDENTITY[0], SIZE), (X[:1], TRANSFORMS[:2], SIZE),
            (X, IDENTITY[:, :6], SIZE), (X, IDENTITY, SIZE[:1]), (X, IDENTITY, SIZE * 0),
        )
    ),
    case("ImageProjectiveTransformV3", X, IDENTITY, SIZE, [1.0], message=True, **V2),
    *(
        case("ScaleAndTranslate", X, SIZE, *move, kernel_type=kernel, antialias=antialias)
        for kernel in KERNELS
        for move in MOVES
        for antialias in (True, False)
    ),
    *(case("ScaleAndTranslate", X.astype(t), SIZE, *MOVES[1]) for t in (np.uint8, np.float64)),
    *(case("ScaleAndTranslate", *inputs, message=True) for inputs in REFUSED_SCALES),
    case("ScaleAndTranslate", X, SIZE, *MOVES[0], kernel_type="foo", message=True),
    *(
        case("ScaleAndTranslateGrad", GRADS, X, *move, kernel_type=kernel, antialias=antialias)
        for kernel in KERNELS
        for move in MOVES
        for antialias in (True, False)
    ),
    *(
        case("ScaleAndTranslateGrad", *inputs, message=True)
        for inputs in (
            (GRADS[0], X, *MOVES[0]),
            (GRADS, X[0], *MOVES[0]),
            (GRADS, X, MOVES[0][0][:1], MOVES[0][1]),
        )
    ),
    case("ScaleAndTranslateGrad", GRADS, X, *MOVES[0], kernel_type="foo", message=True),
)  # fmt: skip
