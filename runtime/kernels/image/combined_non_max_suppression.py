"""Non-maximum suppression over batches of images and several classes.

TF: tensorflow/core/kernels/image/non_max_suppression_op.cc (CombinedNonMaxSuppressionOp)
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.image.non_max_suppression import Selection, intersection_over_union


def combined_non_max_suppression(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_size_per_class: np.ndarray,
    max_total_size: np.ndarray,
    iou_threshold: np.ndarray,
    score_threshold: np.ndarray,
    *,
    pad_per_class: bool,
    clip_boxes: bool,
) -> tuple[np.ndarray, ...]:
    """CombinedNonMaxSuppression: return the best-scored boxes of each image, over all classes.

    `boxes` is `[batch, n, 1 or classes, 4]`, `scores` is `[batch, n, classes]`. Returns boxes
    `[batch, k, 4]`, scores and classes `[batch, k]`, padded with zeros, and the number of valid
    entries `[batch]` int32. k is `max_total_size`; if `pad_per_class` is true, k is at most
    `max_output_size_per_class` times the number of classes.
    """
    per_class = int(_scalar("max_size_per_class", max_output_size_per_class))
    total = int(_scalar("max_total_size", max_total_size))
    threshold = float(_scalar("iou_threshold", iou_threshold))
    lowest_score = float(_scalar("score_threshold", score_threshold))
    _check(boxes, scores, per_class, total, threshold)
    batch, _, classes = scores.shape
    size = min(total, per_class * classes) if pad_per_class else total
    check_allocation((batch, size, 4), np.float32)
    out_boxes = np.zeros((batch, size, 4), np.float32)
    out_scores, out_classes = np.zeros((2, batch, size), np.float32)
    valid = np.zeros(batch, np.int32)
    selection = Selection(per_class, threshold, lowest_score)
    for image in range(batch):
        check_task()
        found = _best_of_image(boxes[image], scores[image], selection)
        best = np.argsort(-found[1], kind="stable")[:size]
        count = valid[image] = best.size
        chosen = found[0][best]
        out_boxes[image, :count] = np.clip(chosen, 0, 1) if clip_boxes else chosen
        out_scores[image, :count] = found[1][best]
        out_classes[image, :count] = found[2][best]
    return out_boxes, out_scores, out_classes, valid


def _best_of_image(
    boxes: np.ndarray, scores: np.ndarray, selection: Selection
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the selected boxes of one image, their scores and their classes, ordered by class."""
    found_boxes, found_scores, found_classes = [], [], []
    for each_class in range(scores.shape[1]):
        own = boxes[:, each_class if boxes.shape[1] > 1 else 0]
        indices, kept = selection.select(scores[:, each_class], intersection_over_union(own))
        found_boxes.append(own[indices])
        found_scores.append(kept)
        found_classes.append(np.full(kept.size, each_class, np.float32))
    if not found_boxes:
        return np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.float32)
    return np.concatenate(found_boxes), np.concatenate(found_scores), np.concatenate(found_classes)


def _scalar(name: str, value: np.ndarray) -> float:
    if np.ndim(value):
        raise InvalidArgumentError(f"{name} must be 0-D, got shape {shape_text(np.shape(value))}")
    return np.asarray(value).item()


def _check(
    boxes: np.ndarray, scores: np.ndarray, per_class: int, total: int, threshold: float
) -> None:
    if per_class <= 0:
        raise InvalidArgumentError("max_size_per_class must be positive")
    if total <= 0:
        raise InvalidArgumentError("max_total_size must be > 0")
    if not 0 <= threshold <= 1:
        raise InvalidArgumentError("iou_threshold must be in [0, 1]")
    if boxes.ndim != 4 or scores.ndim != 3 or boxes.shape[0] != scores.shape[0]:
        raise InvalidArgumentError("boxes and scores must have same batch size")
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise InvalidArgumentError("third dimension of boxes must be either 1 or num classes")
    if boxes.shape[3] != 4:
        raise InvalidArgumentError("boxes must have 4 columns")
    if boxes.shape[1] != scores.shape[1]:
        raise InvalidArgumentError("scores has incompatible shape")


KERNELS = (KernelDef("CombinedNonMaxSuppression", combined_non_max_suppression),)
