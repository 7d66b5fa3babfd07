"""InTopK: whether the target class is among the k best predictions.

TF: tensorflow/core/kernels/in_topk_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text


def in_top_k(predictions: np.ndarray, targets: np.ndarray, *, k: int) -> np.ndarray:
    """InTopK: return whether fewer than `k` classes have a greater prediction than the target.

    `predictions` is `[batch, classes]`, `targets` is `[batch]`; the result is bool `[batch]`. It is
    false for a row if a prediction is not finite or the target is not a class.
    """
    if predictions.ndim != 2:
        raise InvalidArgumentError("predictions must be 2-dimensional")
    if targets.ndim != 1:
        raise InvalidArgumentError("targets must be 1-dimensional")
    rows, classes = predictions.shape
    if rows != targets.shape[0]:
        raise InvalidArgumentError(
            f"First dimension of predictions {rows} must match length of targets {targets.shape[0]}"
        )
    known = (targets >= 0) & (targets < classes)
    if classes == 0:
        return known
    chosen = np.where(known, targets, 0)
    own = predictions[np.arange(rows), chosen]
    better = np.count_nonzero(predictions > own[:, None], axis=1)
    # If the sum is finite, so are the elements. If it is not, the sum may have overflowed, so that
    # the elements are examined.
    finite = np.isfinite(predictions.sum(axis=1))
    doubtful = np.flatnonzero(~finite)
    finite[doubtful] = np.isfinite(predictions[doubtful]).all(axis=1)
    return known & finite & (better < k)


def in_top_k_v2(predictions: np.ndarray, targets: np.ndarray, k: np.ndarray) -> np.ndarray:
    """InTopKV2: compute InTopK; `k` is a tensor of shape []."""
    if np.ndim(k):
        raise InvalidArgumentError(f"k must be 0-D, got shape {shape_text(np.shape(k))}")
    return in_top_k(predictions, targets, k=int(k))


KERNELS = (
    KernelDef("InTopK", in_top_k),
    KernelDef("InTopKV2", in_top_k_v2),
)
