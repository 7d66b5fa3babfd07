"""Image resizing and its gradients."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(8)
X = RNG.integers(0, 120, size=(2, 4, 5, 2)).astype(np.float32)
METHODS = ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea")
SIZES = ([4, 5], [8, 10], [7, 3], [2, 2], [1, 1], [3, 11], [9, 1])
TYPES = (
    np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.uint8, np.int32, np.int16, np.uint16,
    np.int64,
)  # fmt: skip
REFUSED = (
    (X[0], [2, 3]), (X, [2]), (X, [[2, 3]]), (X, [0, 3]), (X, [2, -3]), (X[:, :0], [2, 3]),
    (X[..., :0], [2, 3]),
)  # fmt: skip
NEITHER = {"align_corners": False, "half_pixel_centers": False}
CORNERS = {"align_corners": True, "half_pixel_centers": False}
CENTERS = {"align_corners": False, "half_pixel_centers": True}


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def resize(op: str, x: np.ndarray, size: Any, attrs: dict[str, Any], **options: Any) -> Case:
    if op == "ResizeArea":
        attrs = {"align_corners": attrs["align_corners"]}
    return case(op, x, np.array(size, np.int32), **attrs, **options)


def modes(op: str) -> tuple[dict[str, Any], ...]:
    return (NEITHER, CORNERS) if op == "ResizeArea" else (NEITHER, CORNERS, CENTERS)


INFINITE = np.where(np.abs(X) > 1.2, np.inf, X).astype(np.float32)
WEIGHTS = {"tolerance": 1e-5}  # weights are float32, also for float64 images
GRADIENTS = ("ResizeBilinearGrad", "ResizeBicubicGrad")

CASES = (
    *(resize(op, X, s, attrs) for op in METHODS for s in SIZES for attrs in modes(op)),
    *(resize(op, X.astype(t), [3, 7], NEITHER) for op in METHODS for t in TYPES),
    *(resize(op, x, s, NEITHER, message=True) for op in METHODS for x, s in REFUSED),
    *(resize(op, X[:0], [2, 3], NEITHER) for op in METHODS),
    *(
        case(op, X, np.int32([2, 3]), align_corners=True, half_pixel_centers=True, message=True)
        for op in METHODS[:3]
    ),
    *(
        case(
            op,
            RNG.normal(size=(2, *size, 2)).astype(np.float32),
            X.astype(dtype),
            **attrs,
            **WEIGHTS,
        )
        for op in GRADIENTS
        for size in SIZES
        for attrs in (NEITHER, CORNERS, CENTERS)
        for dtype in (np.float32, np.float64)
        if attrs != NEITHER or dtype == np.float32
    ),
    *(
        case("ResizeBilinearGrad", X, X[:, 1:, 1:].astype(dtype), **CENTERS)
        for dtype in (np.float16, ml_dtypes.bfloat16)
    ),
    *(
        case(op, grads, original, **NEITHER, message=True)
        for op in GRADIENTS
        for grads, original in ((X[0], X), (X, X[0]))
    ),
    *(
        case("ResizeNearestNeighborGrad", X, np.int32(size), **attrs)
        for size in SIZES
        for attrs in (NEITHER, CORNERS, CENTERS)
    ),
    *(
        case("ResizeNearestNeighborGrad", (X / 4).astype(np.int64).astype(t), [2, 3], **NEITHER)
        for t in TYPES[:6]
    ),
    *(
        case("ResizeNearestNeighborGrad", x, np.int32(size), **NEITHER, message=True)
        for x, size in ((X, [3]), (X[0], [3, 2]), (X, [0, 2]))
    ),
    # The order of operations decides which outputs an infinite input turns infinite or NaN.
    *(
        resize(op, INFINITE, size, attrs, name=f"{op}_infinite_{position}_{number}")
        for op in ("ResizeBilinear", "ResizeArea")
        for position, size in enumerate(SIZES)
        for number, attrs in enumerate(modes(op))
    ),
    *(
        resize("ResizeArea", X[:, :rows, :columns], [3, 5], CORNERS, name=f"area_{rows}_{columns}")
        for rows, columns in ((1, 1), (1, 3), (3, 1))
    ),
)
