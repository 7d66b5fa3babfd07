"""EditDistance: Levenshtein distances between sequences in sparse tensors.

TF: tensorflow/core/kernels/edit_distance_op.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.sparse_structure import check_sparse, flat_positions


def edit_distance(
    hypothesis_indices: np.ndarray,
    hypothesis_values: np.ndarray,
    hypothesis_shape: np.ndarray,
    truth_indices: np.ndarray,
    truth_values: np.ndarray,
    truth_shape: np.ndarray,
    *,
    normalize: bool,
) -> np.ndarray:
    """EditDistance: [G…] distances of the sequences along the last dimension, by group."""
    check_sparse(hypothesis_indices, hypothesis_values, hypothesis_shape)
    check_sparse(truth_indices, truth_values, truth_shape)
    if hypothesis_shape.size != truth_shape.size or truth_shape.size < 2:
        raise InvalidArgumentError(
            "Expected hypothesis_shape and truth_shape to have one rank of at least 2, got "
            f"{shape_text(hypothesis_shape.tolist())} and {shape_text(truth_shape.tolist())}"
        )
    group_shape = np.maximum(hypothesis_shape, truth_shape)[:-1]
    sizes = group_shape.tolist()
    check_allocation(sizes, np.float32)
    hypotheses = _sequences(hypothesis_indices, hypothesis_values, group_shape)
    truths = _sequences(truth_indices, truth_values, group_shape)
    result = np.zeros(math.prod(sizes), np.float32)
    for group in hypotheses.keys() | truths.keys():
        result[group] = _distance(hypotheses.get(group, []), truths.get(group, []), normalize)
    return result.reshape(sizes)


def _sequences(
    indices: np.ndarray, values: np.ndarray, group_shape: np.ndarray
) -> dict[int, list[object]]:
    result: dict[int, list[object]] = {}
    groups = flat_positions(indices[:, :-1], group_shape)
    count = math.prod(group_shape.tolist())
    outside = (groups < 0) | (groups >= count)
    if outside.any():
        raise InternalError(
            f"Got an inner product {groups[outside][0]} which would require writing to outside of "
            f"the buffer for the output tensor (max elements {count})"
        )
    for group, value in zip(groups.tolist(), values.tolist(), strict=True):
        result.setdefault(group, []).append(value)
    return result


def _distance(hypothesis: list[object], truth: list[object], normalize: bool) -> float:
    row = list(range(len(truth) + 1))
    for number, item in enumerate(hypothesis, 1):
        diagonal, row[0] = row[0], number
        for column, wanted in enumerate(truth, 1):
            cheapest = min(row[column] + 1, row[column - 1] + 1, diagonal + (item != wanted))
            diagonal, row[column] = row[column], cheapest
    if not normalize:
        return row[-1]
    if truth:
        return row[-1] / len(truth)
    return math.inf if hypothesis else 0.0


KERNELS = (KernelDef("EditDistance", edit_distance),)
