"""Concatenate the inputs of a batch's tasks, and split the outputs among them.

TF: tensorflow_serving/batching/batching_session.cc, batching_util.cc
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from runtime.api import tensor_limit
from runtime.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError

Inputs = Sequence[np.ndarray]  # of one task, in the order of the signature's aliases
MAX_PADDED_RANK = 6  # TF: batching_util.cc (AddPadding)


def rows_of(inputs: Inputs) -> int:
    """Return the common size of the first dimension.

    Raises InvalidArgumentError with TensorFlow Serving's text if an input has no dimension, or if
    the sizes differ.
    """
    if any(array.ndim == 0 for array in inputs):
        raise InvalidArgumentError("Batching Run() input tensors must have at least one dimension")
    sizes = {len(array) for array in inputs}
    if len(sizes) > 1:
        raise InvalidArgumentError(
            "Batching Run() input tensors must have equal 0th-dimension size"
        )
    return sizes.pop()


def key_of(inputs: Inputs, pads: bool) -> Hashable:
    """Return what the inputs of the tasks of one batch have in common.

    If `pads` is true, only the ranks and the element types must agree, otherwise also every
    dimension but the first.
    """
    if pads and all(array.size and array.ndim <= MAX_PADDED_RANK for array in inputs):
        return tuple((array.dtype, array.ndim) for array in inputs)
    return tuple((array.dtype, array.shape[1:]) for array in inputs)


def merged_bytes(tasks: Sequence[Inputs], rows: int) -> int:
    """Return the bytes of the tensors that `merged` makes; strings count as their references.

    Raises ResourceExhaustedError if one of them would be larger than any tensor may be.
    """
    total = 0
    for arrays in zip(*tasks, strict=True):
        size = arrays[0].dtype.itemsize * rows
        for dimension in _largest(arrays):
            size *= dimension
        if size > tensor_limit():
            raise ResourceExhaustedError(f"A batch would have a tensor of {size} bytes")
        total += size
    return total


def merged(tasks: Sequence[Inputs], rows: int) -> list[np.ndarray]:
    """Return each input of all tasks as one array of `rows` rows.

    Where tasks have different shapes, a task's rows are padded with its first element. Missing rows
    are copies of the first row of the last task.
    """
    return [_concatenated(arrays, rows) for arrays in zip(*tasks, strict=True)]


def _concatenated(arrays: Sequence[np.ndarray], rows: int) -> np.ndarray:
    shape = _largest(arrays)
    whole = np.empty((rows, *shape), arrays[0].dtype)
    begin = 0
    for array in arrays:
        part = whole[begin : begin + len(array)]
        if array.shape[1:] != shape:
            part[...] = array.reshape(-1)[0] if array.size else _nothing(array.dtype)
            part = part[tuple(map(slice, array.shape))]
        part[...] = array
        first, begin = begin, begin + len(array)
    whole[begin:] = whole[first : first + 1]
    return whole


def _nothing(dtype: np.dtype) -> object:
    """Return what pads rows that have no element themselves."""
    return b"" if dtype.hasobject else dtype.type()


def joined(parts: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
    """Return the outputs of a request whose rows ran in several batches.

    These may have been padded to different sizes: then the outputs are padded to the largest, as
    inputs are. Raises FailedPreconditionError if they do not even have the same ranks.
    """
    return [_joined(list(map(np.asarray, arrays))) for arrays in zip(*parts, strict=True)]


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    ranks = {array.ndim for array in arrays}
    if len(ranks) > 1 or 0 in ranks:
        raise FailedPreconditionError(
            f"The outputs of the parts of a request have ranks {sorted(ranks)}"
        )
    if len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    return _concatenated(arrays, sum(map(len, arrays)))


def _largest(arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    return tuple(map(max, zip(*(array.shape[1:] for array in arrays), strict=True)))


def split(outputs: Sequence[object], sizes: Sequence[int], rows: int) -> list[list[np.ndarray]]:
    """Return the outputs of each task, whose numbers of rows are `sizes`, of a batch of `rows`.

    The arrays are views. Raises FailedPreconditionError with TensorFlow Serving's text if an output
    has not one row for each row of the batch.
    """
    arrays = [np.asarray(output) for output in outputs]
    for array in arrays:
        if array.ndim == 0:
            raise FailedPreconditionError("Batched output tensor has 0 dimensions")
        if len(array) != rows:
            raise FailedPreconditionError(
                "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension "
                "sizes of the input tensors"
            )
    parts = []
    begin = 0
    for size in sizes:
        parts.append([array[begin : begin + size] for array in arrays])
        begin += size
    return parts
