"""RougeL: how much of a reference a text has, by their longest common subsequence.

TF: tensorflow_text/core/kernels/rouge_l_kernel.cc
"""

from __future__ import annotations

import itertools

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import KernelDef
from runtime.framework.tensor_value import TensorValue

_SMALL = 1e-12  # a float64, which makes a quotient one until it is rounded


def rouge_l(
    hyp_values: np.ndarray,
    hyp_splits: np.ndarray,
    ref_values: np.ndarray,
    ref_splits: np.ndarray,
    alpha: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """RougeL: return the F-measure, precision and recall of each row, float32 `[rows]`.

    `alpha` weighs recall against precision; below 0, the weights come of their quotient.
    """
    weight = np.float32(np.asarray(alpha).item())
    if weight > 1:
        raise InvalidArgumentError(f"alpha must be <1 but was={weight:g}")
    if hyp_splits.size != ref_splits.size:
        raise InvalidArgumentError(
            f"ref splits len={ref_splits.size}must equal hyp splits len={hyp_splits.size}"
        )
    names = ("hypotheses values", "references values", "hypotheses splits", "references splits")
    for name, each in zip(names, (hyp_values, ref_values, hyp_splits, ref_splits), strict=True):
        if each.ndim != 1:
            raise InvalidArgumentError(f"{name} must be a vector")
    if not ref_splits.size:
        raise InvalidArgumentError("ref splits len=0; must have at least 1 split")
    hypotheses, references = _rows(hyp_values, hyp_splits), _rows(ref_values, ref_splits)
    common = [_common(*pair) for pair in zip(hypotheses, references, strict=True)]
    shared = np.array(common, np.float32)
    precision = _quotient(shared, np.array(list(map(len, hypotheses)), np.float32))
    recall = _quotient(shared, np.array(list(map(len, references)), np.float32))
    return _f_measure(precision, recall, weight), precision, recall


def _rows(values: np.ndarray, splits: np.ndarray) -> list[np.ndarray]:
    ends = splits.tolist()
    if ends[0] < 0 or ends[-1] > len(values) or (np.diff(splits) < 0).any():
        raise InvalidArgumentError(
            f"splits must ascend from at least 0 to at most {len(values)}, got {ends[:20]}"
        )
    return [values[first:end] for first, end in itertools.pairwise(ends)]


def _common(one: np.ndarray, other: np.ndarray) -> int:
    """Return the length of the longest common subsequence."""
    short, long = sorted((one, other), key=len)
    best = np.zeros(len(short) + 1, np.int64)  # of the first n items of the shorter
    for number, item in enumerate(long):
        if number % 1000 == 0:
            check_task()
        extended = best[:-1] + (short == item)
        best[1:] = np.maximum.accumulate(np.maximum(extended, best[1:]))
    return int(best[-1])


def _quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return (above / (below.astype(np.float64) + _SMALL)).astype(np.float32)


def _f_measure(precision: np.ndarray, recall: np.ndarray, weight: np.float32) -> np.ndarray:
    one = np.float32(1)
    with np.errstate(all="ignore"):
        if weight < 0:
            square = np.square(_quotient(precision, recall))
            above, below = (one + square) * recall * precision, recall + square * precision
            return np.where(below > 0, above / below, 0).astype(np.float32)
        below = weight * recall + (one - weight) * precision
        return np.where(below > 0, precision * recall / below, below).astype(np.float32)


def _memory(hyp: np.ndarray, hyp_splits: np.ndarray, ref: np.ndarray, *_: TensorValue) -> int:
    longest = max(np.size(hyp), np.size(ref))
    return 12 * np.size(hyp_splits) + 16 * np.size(hyp_splits) + 40 * longest + 1000


KERNELS = (KernelDef("RougeL", rouge_l, expensive=True, memory=_memory),)
