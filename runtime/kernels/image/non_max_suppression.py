"""Non-maximum suppression: selection of the best-scored boxes that do not overlap a better one.

TF: tensorflow/core/kernels/image/non_max_suppression_op.cc
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text

# Returns the overlaps [p, q] of p candidates with q other boxes, given the indices of both.
Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]
CHUNK = 128  # number of candidates compared with each other at once

LOWEST = float(np.finfo(np.float32).min)


def intersection_over_union(boxes: np.ndarray) -> Similarity:
    """Return a function that computes the intersection over union of pairs of boxes.

    `boxes` is `[n, 4]`; a box is two opposite corners.
    """
    wide = boxes.astype(np.float32, copy=False)
    low = np.ascontiguousarray(np.minimum(wide[:, :2], wide[:, 2:]).T)
    high = np.ascontiguousarray(np.maximum(wide[:, :2], wide[:, 2:]).T)
    area = (high[0] - low[0]) * (high[1] - low[1])

    def similarity(indices: np.ndarray, others: np.ndarray) -> np.ndarray:
        shared = np.ones((len(indices), len(others)), np.float32)
        for begin, end in zip(low, high, strict=True):
            side = np.minimum(end[indices, None], end[others])
            side -= np.maximum(begin[indices, None], begin[others])
            shared *= np.maximum(side, 0, out=side)
        own, other = area[indices, None], area[others]
        union = own + other - shared
        usable = (own > 0) & (other > 0)
        return np.where(usable, shared / np.where(usable, union, np.float32(1)), np.float32(0))

    return similarity


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """The limits of a selection: number of boxes, overlap and score."""

    max_output_size: int
    threshold: float  # if two boxes overlap more than this, the lower-scored one is dropped
    score_threshold: float = LOWEST
    soft_nms_sigma: float = 0.0

    def select(self, scores: np.ndarray, similarity: Similarity) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices (int32) and scores (float32) of the selected boxes, best first.

        Of boxes with equal scores, the one with the lower index is first.
        """
        wide = scores.astype(np.float32, copy=False)
        candidates = np.flatnonzero(wide > np.float32(self.score_threshold))
        if self.soft_nms_sigma > 0:
            return self._select_softly(wide, candidates, similarity)
        order = candidates[np.argsort(-wide[candidates], kind="stable")]
        threshold = np.float32(self.threshold)
        selected = np.empty(0, np.int64)
        for first in range(0, order.size, CHUNK):
            room = self.max_output_size - len(selected)
            if room <= 0:
                break
            chunk = order[first : first + CHUNK]
            if len(selected):
                chunk = chunk[(similarity(chunk, selected) <= threshold).all(axis=1)]
            near = similarity(chunk, chunk) <= threshold
            is_alive, kept = np.ones(len(chunk), bool), []
            for place in range(len(chunk)):
                check_task()
                if is_alive[place]:
                    kept.append(place)
                    is_alive &= near[place]
            selected = np.concatenate([selected, chunk[kept[:room]]])
        indices = selected.astype(np.int32)
        return indices, wide[indices]

    def _select_softly(
        self, scores: np.ndarray, candidates: np.ndarray, similarity: Similarity
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what `select` returns, but lower the scores of overlapping boxes by a Gaussian.

        Boxes are not dropped for their overlap with a selected box.
        """
        scale = np.float32(-0.5 / self.soft_nms_sigma)
        heap = [(-float(scores[index]), int(index), 0) for index in candidates]
        heapq.heapify(heap)
        selected: list[int] = []
        kept: list[float] = []
        while heap and len(selected) < self.max_output_size:
            check_task()
            negative, index, seen = heapq.heappop(heap)
            overlaps = similarity(np.array([index]), np.array(selected[seen:], np.int64))[0]
            score = float(np.float32(-negative) * np.prod(np.exp(scale * np.square(overlaps))))
            if score == -negative:
                selected.append(index)
                kept.append(score)
            elif score > self.score_threshold:
                heapq.heappush(heap, (-score, index, len(selected)))
        return np.array(selected, np.int32), np.array(kept, np.float32)


def _scalar(name: str, value: np.ndarray | float) -> float:
    if np.ndim(value):
        raise InvalidArgumentError(f"{name} must be 0-D, got shape {shape_text(np.shape(value))}")
    return np.asarray(value).item()


def _output_size(value: np.ndarray) -> int:
    size = int(_scalar("max_output_size", value))
    if size < 0:
        raise InvalidArgumentError("output size must be non-negative")
    return size


def _check_boxes(boxes: np.ndarray, scores: np.ndarray) -> None:
    if boxes.ndim != 2:
        raise InvalidArgumentError(
            f"boxes must be 2-D{shape_text(boxes.shape)} "
            f"(Shape must be rank 2 but is rank {boxes.ndim})"
        )
    if boxes.shape[1] != 4:
        raise InvalidArgumentError(
            f"boxes must have 4 columns (Dimension must be 4 but is {boxes.shape[1]})"
        )
    _check_scores(boxes.shape[0], scores)


def _check_scores(count: int, scores: np.ndarray) -> None:
    if scores.ndim != 1:
        raise InvalidArgumentError(
            f"scores must be 1-D{shape_text(scores.shape)} "
            f"(Shape must be rank 1 but is rank {scores.ndim})"
        )
    if scores.shape[0] != count:
        raise InvalidArgumentError(
            "scores has incompatible shape "
            f"(Dimensions must be equal, but are {count} and {scores.shape[0]})"
        )


def _select(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_size: np.ndarray,
    iou_threshold: np.ndarray | float,
    score_threshold: np.ndarray | float = LOWEST,
    soft_nms_sigma: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    size = _output_size(max_output_size)
    threshold = _scalar("iou_threshold", iou_threshold)
    lowest_score = _scalar("score_threshold", score_threshold)
    sigma = _scalar("soft_nms_sigma", soft_nms_sigma)
    if not 0 <= threshold <= 1:
        raise InvalidArgumentError("iou_threshold must be in [0, 1]")
    if sigma < 0:
        raise InvalidArgumentError("soft_nms_sigma_val must be >= 0")
    _check_boxes(boxes, scores)
    selection = Selection(size, threshold, lowest_score, sigma)
    return selection.select(scores, intersection_over_union(boxes))


def non_max_suppression(
    boxes: np.ndarray, scores: np.ndarray, max_output_size: np.ndarray, *, iou_threshold: float
) -> np.ndarray:
    """NonMaxSuppression: return the indices of the selected boxes, best first.

    `boxes` is `[n, 4]`, `scores` is `[n]`.
    """
    return _select(boxes, scores, max_output_size, iou_threshold)[0]


def non_max_suppression_v2(
    boxes: np.ndarray, scores: np.ndarray, max_output_size: np.ndarray, iou_threshold: np.ndarray
) -> np.ndarray:
    """NonMaxSuppressionV2: compute NonMaxSuppression; `iou_threshold` is a tensor."""
    return _select(boxes, scores, max_output_size, iou_threshold)[0]


def non_max_suppression_v3(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_size: np.ndarray,
    iou_threshold: np.ndarray,
    score_threshold: np.ndarray,
) -> np.ndarray:
    """NonMaxSuppressionV3: compute NonMaxSuppressionV2 of the boxes above `score_threshold`."""
    return _select(boxes, scores, max_output_size, iou_threshold, score_threshold)[0]


def non_max_suppression_v4(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_size: np.ndarray,
    iou_threshold: np.ndarray,
    score_threshold: np.ndarray,
    *,
    pad_to_max_output_size: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """NonMaxSuppressionV4: return the indices of the selected boxes, and their number.

    If `pad_to_max_output_size` is true, zeros are appended to the indices.
    """
    indices, _ = _select(boxes, scores, max_output_size, iou_threshold, score_threshold)
    count = np.array(indices.size, np.int32)
    if pad_to_max_output_size:
        indices = _padded(indices, _output_size(max_output_size))
    return indices, count


def non_max_suppression_v5(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_size: np.ndarray,
    iou_threshold: np.ndarray,
    score_threshold: np.ndarray,
    soft_nms_sigma: np.ndarray,
    *,
    pad_to_max_output_size: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """NonMaxSuppressionV5: return indices, scores and the number of the selected boxes.

    The scores are those after soft suppression. If `pad_to_max_output_size` is true, zeros are
    appended to indices and scores.
    """
    indices, selected_scores = _select(
        boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma
    )
    count = np.array(indices.size, np.int32)
    if pad_to_max_output_size:
        size = _output_size(max_output_size)
        indices, selected_scores = _padded(indices, size), _padded(selected_scores, size)
    return indices, selected_scores.astype(scores.dtype), count


def _padded(vector: np.ndarray, size: int) -> np.ndarray:
    check_allocation((size,), vector.dtype)
    padded = np.zeros(max(size, vector.size), vector.dtype)
    padded[: vector.size] = vector
    return padded


def non_max_suppression_with_overlaps(
    overlaps: np.ndarray,
    scores: np.ndarray,
    max_output_size: np.ndarray,
    overlap_threshold: np.ndarray,
    score_threshold: np.ndarray,
) -> np.ndarray:
    """NonMaxSuppressionWithOverlaps: return the indices of the selected boxes, best first.

    `overlaps` `[n, n]` has the overlap of each pair of boxes.
    """
    size = _output_size(max_output_size)
    threshold = _scalar("overlap_threshold", overlap_threshold)
    lowest_score = _scalar("score_threshold", score_threshold)
    if overlaps.ndim != 2:
        raise InvalidArgumentError(f"overlaps must be 2-D{shape_text(overlaps.shape)}")
    if overlaps.shape[0] != overlaps.shape[1]:
        raise InvalidArgumentError(f"overlaps must be square{shape_text(overlaps.shape)}")
    _check_scores(overlaps.shape[0], scores)
    selection = Selection(size, threshold, lowest_score)
    return selection.select(scores, lambda indices, others: overlaps[others, indices[:, None]])[0]


_SMALL = (DataType.HALF, DataType.FLOAT)
_BOTH = {"T": _SMALL, "T_threshold": _SMALL}

KERNELS = (
    KernelDef("NonMaxSuppression", non_max_suppression),
    KernelDef("NonMaxSuppressionV2", non_max_suppression_v2, _BOTH),
    KernelDef("NonMaxSuppressionV3", non_max_suppression_v3, _BOTH),
    KernelDef("NonMaxSuppressionV4", non_max_suppression_v4, _BOTH),
    KernelDef("NonMaxSuppressionV5", non_max_suppression_v5, {"T": _SMALL}),
    KernelDef("NonMaxSuppressionWithOverlaps", non_max_suppression_with_overlaps),
)
