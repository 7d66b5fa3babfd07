"""Boxes in images: cropping, its gradients, drawing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.case import case

RNG = np.random.default_rng(16)
X = RNG.integers(0, 100, size=(2, 5, 6, 2)).astype(np.float32)
BOXES = np.array(
    [[0, 0, 1, 1], [0.2, 0.3, 0.7, 0.9], [0.9, 0.8, 0.1, 0.2], [-0.5, -0.2, 0.5, 1.3],
     [0.5, 0.5, 0.5, 0.5]],
    np.float32,
)  # fmt: skip
OWNERS = np.array([0, 1, 1, 0, 1], np.int32)
SIZES = ([3, 4], [1, 1], [1, 3], [7, 2])
TYPES = (np.float16, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64)

REFUSED: tuple[tuple[Any, ...], ...] = (
    (X[0], BOXES, OWNERS, [2, 3]), (X, BOXES[0], OWNERS, [2, 3]),
    (X, BOXES[:, :3], OWNERS, [2, 3]), (X, BOXES, OWNERS[None], [2, 3]),
    (X, BOXES, OWNERS[:2], [2, 3]), (X, BOXES, OWNERS + 1, [2, 3]),
    (X, BOXES, OWNERS - 1, [2, 3]), (X, BOXES, OWNERS, [2]), (X, BOXES, OWNERS, [0, 3]),
    (X[:, :0], BOXES, OWNERS, [2, 3]), (X, BOXES * np.nan, OWNERS, [2, 3]),
)  # fmt: skip
GRADS = RNG.normal(size=(5, 3, 4, 2)).astype(np.float32)
SHAPE = np.array([2, 5, 6, 2], np.int32)
DEEPER = np.array([2, 5, 6, 3], np.int32)
IMAGES = RNG.uniform(size=(2, 7, 8, 4)).astype(np.float32)
DRAWN = np.stack([BOXES, BOXES[::-1]])
MANY = np.repeat(np.linspace(0, 0.6, 12, dtype=np.float32)[:, None], 4, axis=1) + np.array(
    [0, 0, 0.3, 0.4], np.float32
)
UNBOUNDED = np.float32([[-np.inf, 0.4, 0.8, 1.9], [0.1, np.nan, 0.6, 0.5], [0.3, 0.3, np.inf, 0.6]])

CASES = (
    *(
        case("CropAndResize", X, BOXES, OWNERS, size, method=method, extrapolation_value=-2.5)
        for size in SIZES
        for method in ("bilinear", "nearest")
    ),
    *(case("CropAndResize", X.astype(t), BOXES, OWNERS, [3, 2]) for t in TYPES),
    case("CropAndResize", X, BOXES[:0], OWNERS[:0], [2, 3]),
    *(case("CropAndResize", *inputs, message=True) for inputs in REFUSED),
    *(
        case("CropAndResize", images, boxes, owners, size, message=True,
             name=f"owners_no_vector_{name}")
        for name, images, boxes, owners, size in (
            ("images", X[0], BOXES, OWNERS[None], [2, 3]),
            ("boxes", X, BOXES[0], OWNERS[None], [2, 3]),
            ("size", X, BOXES, OWNERS[None], [2]),
            ("none", X, BOXES[:0], OWNERS[None, :0], [2, 3]),
        )
    ),
    case("CropAndResize", X, BOXES, OWNERS + 9, np.int32([2065374891, 1 << 30])),
    *(
        case("CropAndResizeGradImage", GRADS, BOXES, OWNERS, SHAPE, T=dtype, method=method)
        for method in ("bilinear", "nearest")
        for dtype in (np.float32, np.float16)
    ),
    case(
        "CropAndResizeGradImage", GRADS[:, :1, :1], BOXES, OWNERS, SHAPE, T=np.float32
    ),
    *(
        case("CropAndResizeGradImage", *inputs, T=np.float32, message=True)
        for inputs in (
            (GRADS, BOXES, OWNERS, SHAPE[1:]), (GRADS, BOXES, OWNERS + 1, SHAPE),
            (GRADS[0], BOXES, OWNERS, SHAPE), (GRADS, BOXES, OWNERS, DEEPER),
        )
    ),
    *(
        case("CropAndResizeGradBoxes", grads, X, BOXES, OWNERS)
        for grads in (GRADS, GRADS[:, :1], GRADS[:, :, :1], GRADS[:, :1, :1])
    ),
    *(case("CropAndResizeGradBoxes", GRADS, X.astype(t), BOXES, OWNERS) for t in (np.uint8,)),
    *(
        case("CropAndResizeGradBoxes", *inputs, message=True)
        for inputs in (
            (GRADS[0], X, BOXES, OWNERS), (GRADS, X[0], BOXES, OWNERS),
            (GRADS, X, BOXES, OWNERS + 1),
        )
    ),
    *(case("DrawBoundingBoxes", IMAGES[..., :depth], DRAWN) for depth in (1, 3, 4)),
    case("DrawBoundingBoxes", IMAGES[:1, ..., :3], MANY[None]),
    case("DrawBoundingBoxes", IMAGES.astype(np.float16), DRAWN),
    *(
        case("DrawBoundingBoxes", images, np.float32([[box]]), name=f"boxes_in_no_{name}",
             message=True)
        for name, images, box in (
            ("rows", IMAGES[:1, :0, :, :3], (1.5, 0, 0.2, 1)),
            ("columns", IMAGES[:1, :, :0, :3], (0, 1.5, 1, 0.2)),
        )
    ),
    case("DrawBoundingBoxes", IMAGES[:1, ..., :3], UNBOUNDED[None], name="boxes_without_bounds"),
    *(
        case("DrawBoundingBoxesV2", IMAGES[..., :3], DRAWN, colors)
        for colors in (np.zeros((0, 3), np.float32), IMAGES[0, 0, :2], IMAGES[0, 0, :, :3])
    ),
    *(
        case("DrawBoundingBoxesV2", images, boxes, colors, message=True)
        for images, boxes, colors in (
            (IMAGES[..., :2], DRAWN, IMAGES[0, 0]), (IMAGES[0], DRAWN, IMAGES[0, 0]),
            (IMAGES, BOXES, IMAGES[0, 0]), (IMAGES, DRAWN[..., :3], IMAGES[0, 0]),
            (IMAGES, DRAWN[:1], IMAGES[0, 0]), (IMAGES, DRAWN, IMAGES[0, 0, :, :2]),
            (IMAGES, DRAWN, IMAGES[0, 0, 0]),
        )
    ),
    case(
        "CropAndResize", IMAGES, np.float32([[np.nan, 0, 1, 1]]), np.int32([99]), np.int32([2, 2]),
        message=True, name="box_of_no_image_first",
    ),
    case("CropAndResizeGradImage", GRADS, BOXES, OWNERS, SHAPE, T=np.float64, name="double_crops"),
)  # fmt: skip
