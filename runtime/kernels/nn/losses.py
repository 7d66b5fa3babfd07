"""Softmax cross entropy and its gradient, with dense and with sparse labels.

TF: tensorflow/core/kernels/xent_op.cc, sparse_xent_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.math.accumulation import widen


def softmax_cross_entropy_with_logits(
    features: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """SoftmaxCrossEntropyWithLogits: return the loss `[batch]`, and its gradient for the logits.

    `features` are logits, `labels` are probabilities; they broadcast to `[batch, classes]`.
    """
    try:
        shape = np.broadcast_shapes(features.shape, labels.shape)
    except ValueError:
        raise InvalidArgumentError(
            "logits and labels must be broadcastable: "
            f"logits_size={shape_text(features.shape)} labels_size={shape_text(labels.shape)}"
        ) from None
    if len(shape) != 2:
        raise InvalidArgumentError(
            "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional"
        )
    logits = np.broadcast_to(widen(features), shape)
    wanted = np.broadcast_to(widen(labels), shape)
    if shape[1] == 0:
        return np.zeros(shape[0], features.dtype), np.zeros(shape, features.dtype)
    logarithms, probabilities = _log_softmax(logits)
    loss = (wanted * -logarithms).sum(axis=1)
    return loss.astype(features.dtype), (probabilities - wanted).astype(features.dtype)


def _log_softmax(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-probabilities and the probabilities for `logits` `[batch, classes]`."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    total = exponentials.sum(axis=1, keepdims=True)
    return shifted - np.log(total), exponentials / total


def sparse_softmax_cross_entropy_with_logits(
    features: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """SparseSoftmaxCrossEntropyWithLogits: return the loss `[batch]`, and its gradient.

    `features` are logits `[batch, classes]`, `labels` are class numbers `[batch]`. The gradient is
    with respect to `features`.
    """
    if features.ndim != 2:
        raise InvalidArgumentError(
            f"logits must be 2-D, but got shape {shape_text(features.shape)}"
        )
    if labels.ndim != 1:
        raise InvalidArgumentError(f"labels must be 1-D, but got shape {shape_text(labels.shape)}")
    if features.shape[0] != labels.shape[0]:
        raise InvalidArgumentError(
            "logits and labels must have the same first dimension, got logits shape "
            f"{shape_text(features.shape)} and labels shape {shape_text(labels.shape)}"
        )
    rows, classes = features.shape
    if classes <= 0:
        raise InvalidArgumentError(
            f"Must have at least one class, but got logits shape {shape_text(features.shape)}"
        )
    if rows == 0:
        return np.zeros(0, features.dtype), np.zeros((0, classes), features.dtype)
    _check_labels(labels, classes)
    logarithms, probabilities = _log_softmax(widen(features))
    each = np.arange(rows)
    loss = -logarithms[each, labels]
    probabilities[each, labels] -= probabilities.dtype.type(1)
    return loss.astype(features.dtype), probabilities.astype(features.dtype)


def _check_labels(labels: np.ndarray, classes: int) -> None:
    lowest, highest = int(labels.min()), int(labels.max())
    if lowest >= 0 and highest < classes:
        return
    bad = lowest if lowest < 0 else highest
    raise InvalidArgumentError(
        f"Received a label value of {bad} which is outside the valid range of [0, {classes}).  "
        f"Label values: {' '.join(map(str, labels.tolist()))}"
    )


KERNELS = (
    KernelDef(
        "SoftmaxCrossEntropyWithLogits", softmax_cross_entropy_with_logits, {"T": FLOAT_TYPES}
    ),
    KernelDef(
        "SparseSoftmaxCrossEntropyWithLogits",
        sparse_softmax_cross_entropy_with_logits,
        {"T": FLOAT_TYPES},
    ),
)
