"""Non-maximum suppression in all its versions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(10)
BOXES = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 11.1, 0, 10.1],
     [0, 100, 1, 101], [0, 0, 0, 5]],
    np.float32,
)  # fmt: skip
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3, 0.75], np.float32)
CORNERS = RNG.uniform(size=(40, 2)).astype(np.float32)
MANY = np.concatenate([CORNERS, CORNERS + RNG.uniform(size=(40, 2)) * 0.5], axis=1)
MANY = MANY.astype(np.float32)
MANY_SCORES = RNG.uniform(size=40).astype(np.float32)
HALF = np.float32(0.5)
LIST = [0.5]

SIZES = (0, 1, 3, 10)
REFUSED: tuple[tuple[Any, ...], ...] = (
    (BOXES[0], SCORES, 3, HALF), (BOXES[:, :3], SCORES, 3, HALF), (BOXES, SCORES[:3], 3, HALF),
    (BOXES, SCORES[None], 3, HALF), (BOXES, SCORES, [3], HALF), (BOXES, SCORES, -1, HALF),
    (BOXES, SCORES, 3, np.float32(1.5)), (BOXES, SCORES, 3, np.float32(-0.5)),
)  # fmt: skip


def suppress(version: str, *inputs: Any, **attrs: Any) -> Case:
    # TensorFlow's message for a non-scalar size or threshold differs from version to version.
    is_worded_alike = version != "V3" or not np.ndim(inputs[2]) + np.ndim(inputs[3])
    return case(f"NonMaxSuppression{version}", *inputs, message=is_worded_alike, **attrs)


B4 = np.stack([BOXES[:, None], BOXES[::-1, None]])
S3 = np.stack([SCORES, SCORES[::-1]], axis=-1)
S3 = np.stack([S3, S3 * 0.8])
COMBINED: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((B4, S3, 3, 5, 0.5, 0.4), {}),
    ((np.repeat(B4, 2, 2), S3, 3, 5, 0.5, 0.4), {"clip_boxes": False}),
    ((B4, S3, 2, 9, 0.5, 0.4), {"pad_per_class": True}),
    ((B4, S3, 2, 9, 0.5, 0.4), {}),
    ((B4, S3, 2, 9, 0.5, 2.0), {}),
    ((np.repeat(B4, 3, 2), S3, 3, 5, 0.5, 0.4), {}),
    ((B4[0], S3, 3, 5, 0.5, 0.4), {}),
    ((B4, S3[0], 3, 5, 0.5, 0.4), {}),
    ((B4[:, :3], S3, 3, 5, 0.5, 0.4), {}),
    ((B4, S3, 0, 5, 0.5, 0.4), {}),
    ((B4, S3, 3, 0, 0.5, 0.4), {}),
    ((B4, S3, 3, 5, 2.0, 0.4), {}),
    ((B4[:1], S3, 3, 5, 0.5, 0.4), {}),
    ((B4[..., :3], S3, 3, 5, 0.5, 0.4), {}),
    ((B4, S3, [3], 5, 0.5, 0.4), {}),
)
EYE = np.eye(7, dtype=np.float32)
OVERLAPS = np.maximum(EYE, EYE[::-1] * np.float32(0.6))
PREDICTIONS = np.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.3], [np.nan, 1, 2], [np.inf, 0, 1]])
PREDICTIONS = PREDICTIONS.astype(np.float32)
TOP: tuple[tuple[Any, Any, int], ...] = (
    (PREDICTIONS, [1, 2, 1, 0], 2), (PREDICTIONS, [0, 0, 0, 1], 1), (PREDICTIONS, [5, -1, 2, 2], 1),
    (PREDICTIONS, [0, 0, 0, 0], 0), (PREDICTIONS, [0, 0, 0, 0], -1), (PREDICTIONS, [0] * 4, 10),
    (PREDICTIONS[0], [0, 0, 0, 0], 1), (PREDICTIONS, [0, 0], 1), (PREDICTIONS, [[0, 0]], 1),
)  # fmt: skip

CASES = (
    *(suppress("", BOXES, SCORES, size) for size in SIZES),
    *(suppress("", MANY, MANY_SCORES, 12, iou_threshold=limit) for limit in (0.0, 0.3, 1.0)),
    suppress("", BOXES[:0], SCORES[:0], 3),
    *(suppress("", *inputs[:3]) for inputs in REFUSED[:6]),
    *(suppress("V2", *inputs) for inputs in REFUSED),
    *(suppress("V2", BOXES, SCORES, size, HALF) for size in SIZES),
    *(suppress("V3", BOXES, SCORES, size, HALF, np.float32(0.4)) for size in SIZES),
    *(suppress("V3", *inputs, np.float32(0.4)) for inputs in REFUSED),
    suppress("V3", BOXES, SCORES, 3, HALF, np.float32(LIST)),
    suppress("V3", BOXES, SCORES, 3, np.float32(LIST), HALF),
    suppress("V3", BOXES, SCORES, 3, HALF, np.float32(-np.inf)),
    suppress("V3", BOXES, SCORES * np.nan, 3, HALF, HALF),
    suppress("V3", BOXES, np.ones_like(SCORES), 7, np.float32(1), np.float32(0)),
    suppress(
        "V3", BOXES.astype(np.float16), SCORES.astype(np.float16), 5, np.float16(0.5),
        np.float16(0.4),
    ),
    *(
        suppress(
            "V4", BOXES, SCORES, size, HALF, np.float32(0.4), pad_to_max_output_size=pad
        )
        for size in SIZES
        for pad in (False, True)
    ),
    *(
        suppress(
            "V5", BOXES, SCORES, size, HALF, np.float32(0.1), np.float32(sigma),
            pad_to_max_output_size=pad,
        )
        for size in SIZES
        for sigma in (0, 0.5, -1)
        for pad in (False, True)
    ),
    *(
        suppress("V5", MANY, MANY_SCORES, 15, limit, np.float32(0.05), np.float32(0.3))
        for limit in (HALF, np.float32(1))
    ),
    *(
        suppress("WithOverlaps", overlaps, scores, size, threshold, np.float32(0.4))
        for overlaps, scores, size, threshold in (
            (EYE, SCORES, 3, HALF), (OVERLAPS, SCORES, 7, HALF), (OVERLAPS, SCORES, 7, 0.7),
            (EYE[:5], SCORES, 3, HALF), (EYE, SCORES[:5], 3, HALF), (EYE[0], SCORES, 3, HALF),
            (EYE, SCORES, -3, HALF), (EYE, SCORES, 3, np.float32(LIST)),
        )
    ),
    *(
        case("CombinedNonMaxSuppression", *inputs, message=True, **attrs)
        for inputs, attrs in COMBINED
    ),
    *(case("InTopK", p, targets, k=k, message=True) for p, targets, k in TOP),
    *(case("InTopKV2", p, np.int64(targets), np.int64(k), message=True) for p, targets, k in TOP),
    case("InTopKV2", PREDICTIONS, [0, 0, 0, 0], [1], message=True),
)  # fmt: skip
