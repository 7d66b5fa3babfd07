"""TFText>RoundRobinTrim and TFText>RoundRobinGenerateMasks: rows that share a length.

Each of N segments has a row of values for each example. Their rows of an example take turns to
keep a value, until they have as many together as the length allows.

TF: tensorflow_text/core/kernels/round_robin_trimmer.h
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.op_packages.text.token_rows import check_splits, check_vector

_TYPES = (
    DataType.STRING, DataType.BOOL, DataType.FLOAT, DataType.DOUBLE, DataType.INT8, DataType.INT16,
    DataType.INT32, DataType.INT64, DataType.UINT8, DataType.UINT16, DataType.UINT32,
    DataType.UINT64,
)  # fmt: skip

_NOT_TRIMMED = (np.uint16, np.uint32)  # the kernel is registered for them, and refuses them


def _kept(sizes: np.ndarray, length: int) -> np.ndarray:
    """Return how many values each row keeps, `[segments, examples]`, from the rows' sizes."""
    segments = len(sizes)
    left = np.full(sizes.shape[1], max(length, 0), np.int64)
    kept = np.zeros_like(sizes)
    order = np.argsort(sizes, axis=0, kind="stable")
    ordered = np.take_along_axis(sizes, order, axis=0)
    share = left.copy()  # of each row that is too long to be kept whole
    is_whole = np.ones(sizes.shape[1], np.bool_)
    for place in range(segments):
        share = np.where(is_whole, left // (segments - place), share)
        is_whole = is_whole & (ordered[place] <= share)
        values = np.where(is_whole, ordered[place], share)
        np.put_along_axis(kept, order[place : place + 1], values[None], axis=0)
        left -= values
    for segment in range(segments):
        more = (left > 0) & (kept[segment] < sizes[segment])
        kept[segment] += more
        left -= more
    return kept


def _sizes(row_splits: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sizes of the rows, `[segments, examples]`."""
    lengths = {len(each) for each in row_splits}
    if len(lengths) > 1 or not min(lengths):
        raise InvalidArgumentError(
            f"Expected row splits of equal length, at least 1, got lengths {sorted(lengths)}"
        )
    return np.stack([np.diff(np.asarray(each, np.int64)) for each in row_splits])


def _segments(
    inputs: Sequence[np.ndarray],
) -> tuple[int, Sequence[np.ndarray], Sequence[np.ndarray]]:
    """Return (the length, the values, the row splits) of the inputs of both ops."""
    if np.size(inputs[0]) != 1:
        raise InvalidArgumentError("max_sequence_length must be a scalar")
    count = (len(inputs) - 1) // 2
    values, row_splits = inputs[1 : 1 + count], inputs[1 + count :]
    for each, splits in zip(values, row_splits, strict=True):
        check_vector(each, "input_values")
        check_splits(splits, len(each))
    return int(np.asarray(inputs[0]).item()), values, row_splits


def _is_kept(sizes: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return for each value of a segment whether its row keeps it."""
    ends = np.cumsum(sizes)
    place = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
    is_kept: np.ndarray = place < np.repeat(kept, sizes)
    return is_kept


def round_robin_trim(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """TFText>RoundRobinTrim: return the values that rows keep, and the row splits of these.

    The inputs are max_sequence_length, N vectors of values, and N vectors of row splits. Raises
    InvalidArgumentError if the segments have not the same number of rows, and UnimplementedError
    for uint16 and uint32, of which RoundRobinGenerateMasks makes masks.
    """
    length, values, row_splits = _segments(inputs)
    if values[0].dtype in _NOT_TRIMMED:
        raise UnimplementedError(f"Unsupported data type: {values[0].dtype}")
    sizes = _sizes(row_splits)
    kept = _kept(sizes, length)
    trimmed: list[np.ndarray] = []
    new_splits: list[np.ndarray] = []
    for segment, (each, splits) in enumerate(zip(values, row_splits, strict=True)):
        part = each[int(splits[0]) : int(splits[-1])]
        trimmed.append(part[_is_kept(sizes[segment], kept[segment])])
        new_splits.append(np.concatenate([[0], np.cumsum(kept[segment])]).astype(splits.dtype))
    return (*trimmed, *new_splits)


def round_robin_generate_masks(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """TFText>RoundRobinGenerateMasks: return for each value whether RoundRobinTrim keeps it.

    The inputs are those of RoundRobinTrim; there are N vectors of bool.
    """
    length, _, row_splits = _segments(inputs)
    sizes = _sizes(row_splits)
    kept = _kept(sizes, length)
    return tuple(_is_kept(sizes[segment], kept[segment]) for segment in range(len(sizes)))


# bytes for a byte of the inputs: of int32 row splits, the sizes and ranks of their rows as int64;
# of int8 values, their places as int64, twice
_MULTIPLE = 48

KERNELS = (
    KernelDef("TFText>RoundRobinTrim", round_robin_trim, {"T": _TYPES}, memory=_MULTIPLE),
    KernelDef(
        "TFText>RoundRobinGenerateMasks",
        round_robin_generate_masks,
        {"T": _TYPES},
        memory=_MULTIPLE,
    ),
)
