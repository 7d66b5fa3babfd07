"""Whether the target class is among the k best predictions.

TF: tensorflow/core/kernels/in_topk_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text


def in_top_k(predictions: np.ndarray, targets: np.ndarray, *, k: int) -> np.ndarray:
    """InTopK: whether fewer than `k` classes have a greater prediction than the target.

    Predictions are `[batch, classes]`, targets `[batch]`, the result bool `[batch]`; false for a
    row with a prediction that is not finite.
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
    # A finite sum implies finite elements; where it is not finite, it may only have overflowed.
    finite = np.isfinite(predictions.sum(axis=1))
    doubtful = np.flatnonzero(~finite)
    finite[doubtful] = np.isfinite(predictions[doubtful]).all(axis=1)
    return known & finite & (better < k)


def in_top_k_v2(predictions: np.ndarray, targets: np.ndarray, k: np.ndarray) -> np.ndarray:
    """InTopKV2: InTopK with `k` as a tensor."""
    if np.ndim(k):
        raise InvalidArgumentError(f"k must be 0-D, got shape {shape_text(np.shape(k))}")
    return in_top_k(predictions, targets, k=int(k))


KERNELS = (
    KernelDef("InTopK", in_top_k),
    KernelDef("InTopKV2", in_top_k_v2),
)
