"""The kernel of EditDistance: Levenshtein distances between sequences in two sparse tensors.

TF: tensorflow/core/kernels/edit_distance_op.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.sparse.sparse_structure import flat_positions
from runtime.kernels.sparse.sparse_tensor_checks import made_shape


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
    """EditDistance: return the distance of each pair of sequences, float32 `[groups…]`.

    A sequence is the values along the last dimension; a group is an index of the other dimensions.
    If `normalize` is true, a distance is divided by the length of the truth sequence.
    """
    hypothesis = hypothesis_indices, hypothesis_values, hypothesis_shape
    truth = truth_indices, truth_values, truth_shape
    for matrix, vector, shape, name in ((*hypothesis, "hypothesis"), (*truth, "truth")):
        _check_ranks(matrix, vector, shape, name)
    _check_fit(*hypothesis, "hypothesis")
    if truth_shape.size < 2:
        raise InvalidArgumentError(
            "Input SparseTensors must have rank at least 2, but truth_shape rank is: "
            f"{truth_shape.size}"
        )
    _check_fit(*truth, "truth")
    if truth_shape.size != hypothesis_shape.size:
        raise InvalidArgumentError(
            "Expected truth and hypothesis to have matching ranks, but their shapes are: "
            f"{shape_text(truth_shape.shape)} and {shape_text(hypothesis_shape.shape)}"
        )
    made_shape(hypothesis_shape)
    made_shape(truth_shape)
    group_shape = np.maximum(hypothesis_shape, truth_shape)[:-1]
    sizes = group_shape.tolist()
    check_allocation(sizes, np.float32)
    groups = math.prod(sizes)
    values = np.concatenate([hypothesis_values, truth_values])
    numbers = _value_ids(values)
    hypotheses, lengths = _sequences(
        hypothesis_indices, numbers[: len(hypothesis_values)], group_shape, groups
    )
    truths, wanted = _sequences(
        truth_indices, numbers[len(hypothesis_values) :], group_shape, groups
    )
    distances = _distances(hypotheses, lengths, truths, wanted)
    if normalize:
        with np.errstate(all="ignore"):
            distances = np.where((lengths == 0) & (wanted == 0), 0, distances / wanted)
    return distances.astype(np.float32).reshape(sizes)


def _check_ranks(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, name: str) -> None:
    for part, rank, noun, what in (
        (indices, 2, "matrix", "indices"),
        (values, 1, "vector", "values"),
        (shape, 1, "vector", "shape"),
    ):
        if part.ndim != rank:
            raise InvalidArgumentError(
                f"{name}_{what} should be a {noun}, but got shape: {shape_text(part.shape)}"
            )


def _check_fit(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, name: str) -> None:
    for part, what, axis, side in ((values, "values", 0, "rows"), (shape, "shape", 1, "cols")):
        if part.size != indices.shape[axis]:
            raise InvalidArgumentError(
                f"Expected {name}_{what}.NumElements == #{side}({name}_indices), their shapes "
                f"are: {shape_text(part.shape)} and {shape_text(indices.shape)}"
            )


def _value_ids(values: np.ndarray) -> np.ndarray:
    """Map equal values to equal integers, and different values to different integers."""
    if values.dtype.hasobject:
        number_of: dict[object, int] = {}
        return np.array([number_of.setdefault(each, len(number_of)) for each in values], np.int64)
    if values.dtype.kind == "V":  # bfloat16 and the like, which numpy does not sort well with NaN
        values = values.astype(np.float32)
    return np.unique(values, return_inverse=True, equal_nan=False)[1].ravel()


def _sequences(
    indices: np.ndarray, numbers: np.ndarray, group_shape: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (sequences `[groups, longest]`, padded with −1, lengths `[groups]`)."""
    groups = flat_positions(indices[:, :-1], group_shape)
    outside = (groups < 0) | (groups >= count)
    if outside.any():
        raise InternalError(
            f"Got an inner product {groups[outside][0]} which would require writing to outside of "
            f"the buffer for the output tensor (max elements {count})"
        )
    lengths = np.bincount(groups, minlength=count)
    order = np.argsort(groups, kind="stable")
    place = np.arange(len(groups)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    longest = int(lengths.max(initial=0))
    check_allocation((count, longest), np.int64)
    sequences = np.full((count, longest), -1)
    sequences[groups[order], place] = numbers[order]
    return sequences, lengths


def _distances(
    hypotheses: np.ndarray, lengths: np.ndarray, truths: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """Return the Levenshtein distances `[groups]`.

    Each iteration computes one row of the distance table of every group. The assignment row[j] =
    min(row[j], row[j − 1] + 1) for ascending j is a running minimum of row[j] − j.
    """
    columns = np.arange(truths.shape[1] + 1)
    groups = np.arange(len(truths))
    row = np.broadcast_to(columns, (len(truths), len(columns))).copy()
    result = np.array(wanted)
    for number in range(1, hypotheses.shape[1] + 1):
        check_task()
        changed = row[:, :-1] + (hypotheses[:, number - 1 : number] != truths)
        np.minimum(row[:, 1:] + 1, changed, out=row[:, 1:])
        row[:, 0] = number
        row = np.minimum.accumulate(row - columns, axis=1) + columns
        ends = lengths == number
        result[ends] = row[groups[ends], wanted[ends]]
    return result


KERNELS = (KernelDef("EditDistance", edit_distance),)
