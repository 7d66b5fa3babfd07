"""Joining strings along dimensions or by segment, and n-grams.

TF: tensorflow/core/kernels/reduce_join_op.cc, unsorted_segment_join_op.cc, string_ngrams_op.cc
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterator, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OutOfRangeError
from runtime.foundation.running_task import BLOCK, check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.attr_value import raw_bytes
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import as_strings, string_blocks, string_tensor

_INT32_MAX = (1 << 31) - 1  # the largest number of tokens in a padded row


def reduce_join(
    inputs: np.ndarray, reduction_indices: np.ndarray, *, keep_dims: bool, separator: str
) -> np.ndarray:
    """ReduceJoin: join the strings along the dimensions `reduction_indices`, in the order given."""
    strings = as_strings(inputs)
    axes: list[int] = []
    for given in np.asarray(reduction_indices).ravel().tolist():
        if not -strings.ndim <= given < strings.ndim:
            raise OutOfRangeError(
                f"Invalid reduction dimension {given} for input with {strings.ndim} dimension(s)"
            )
        axis = given % strings.ndim
        if axis in axes:
            raise InvalidArgumentError(f"Duplicate reduction dimension {given}")
        axes.append(axis)
    if not axes:
        return strings
    kept = [axis for axis in range(strings.ndim) if axis not in axes]
    shape = [strings.shape[axis] for axis in kept]
    # The dimension that is joined first varies fastest.
    rows = strings.transpose(kept + axes[::-1]).reshape(
        math.prod(shape), math.prod(strings.shape[axis] for axis in axes)
    )
    if keep_dims:
        shape = [1 if axis in axes else size for axis, size in enumerate(strings.shape)]
    return string_tensor(_joined_rows(raw_bytes(separator), rows), shape)


def _joined_rows(separator: bytes, rows: np.ndarray) -> Iterator[bytes]:
    """Yield the strings of each row joined."""
    length = rows.shape[1]
    if length <= BLOCK:
        for row in rows:
            yield separator.join(row.tolist())
        return
    for row in rows:
        size = sum(sum(map(len, block)) for block in string_blocks(row))
        check_allocation((size + len(separator) * (length - 1),), np.uint8)
        yield separator.join([separator.join(block) for block in string_blocks(row)])


def unsorted_segment_join(
    inputs: np.ndarray, segment_ids: np.ndarray, num_segments: np.ndarray, *, separator: str
) -> np.ndarray:
    """UnsortedSegmentJoin: join the strings that have the same segment id.

    Returns strings of shape [num_segments, *inputs.shape[segment_ids.ndim:]].
    """
    strings, ids = as_strings(inputs), np.asarray(segment_ids)
    if np.ndim(num_segments):
        raise InvalidArgumentError("Number of segments must be a scalar")
    count = int(num_segments)
    if count < 0:
        raise InvalidArgumentError(f"Number of segments must be non-negative but got {count}")
    if not ids.ndim:
        raise InvalidArgumentError("Segment_id cannot have rank 0")
    if ids.ndim > strings.ndim:
        raise OutOfRangeError(
            f"Invalid segment_id rank {ids.ndim} for input with {strings.ndim} dimension(s)"
        )
    for rank, size in enumerate(ids.shape):
        if strings.shape[rank] != size:
            raise InvalidArgumentError(
                f"Segment dimension is {size} while input dimension is {strings.shape[rank]} "
                f"in rank {rank}"
            )
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < count:
        raise InvalidArgumentError(
            "segment_ids are not allowed to exceed num_segments or to have negative values."
        )
    inner = strings.shape[ids.ndim :]
    check_allocation((count, *inner), object)
    width = math.prod(inner)
    parts: dict[int, list[bytes]] = collections.defaultdict(list)
    rows = strings.reshape(ids.size, width).tolist()
    for segment, row in zip(ids.ravel().tolist(), rows, strict=True):
        check_task()
        for column, item in enumerate(row):
            parts[segment * width + column].append(item)
    joined = np.full(count * width, b"", object)
    for place, part in parts.items():
        joined[place] = raw_bytes(separator).join(part)
    return joined.reshape(count, *inner)


def string_ngrams(
    data: np.ndarray,
    data_splits: np.ndarray,
    *,
    separator: str,
    ngram_widths: Sequence[int],
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """StringNGrams: return the n-grams of each row of tokens, and the row splits of the n-grams.

    `data` has the tokens, `data_splits` divides them into rows. An n-gram of width w joins w
    adjacent tokens of a row; each row has n-grams of every width in `ngram_widths`.
    """
    if any(width <= 0 for width in ngram_widths):
        raise InvalidArgumentError("ngram_widths must contain positive values")
    tokens: list[bytes] = as_strings(data).ravel().tolist()
    shape, splits = np.shape(data_splits), np.ravel(data_splits)
    _check_splits(splits, len(tokens))
    if not tokens or not splits.size:
        # If there are no splits, TensorFlow returns as many empty strings as there are tokens.
        texts = string_tensor([b""] * len(tokens), np.shape(data))
        return texts, np.zeros(shape, splits.dtype)
    longest = int(np.diff(splits).max(initial=0))
    for width in ngram_widths:
        padding = _padding(width, pad_width)
        if padding > (_INT32_MAX - longest) // 2:
            raise InvalidArgumentError(
                f"Pad width could lead to integer overflow, got pad_width = {padding}"
            )
    pads = raw_bytes(left_pad), raw_bytes(right_pad)
    join = raw_bytes(separator).join
    ngrams: list[bytes] = []
    ends = [0]
    for begin, end in zip(splits[:-1].tolist(), splits[1:].tolist(), strict=True):
        check_task()
        row = tokens[begin:end]
        before = len(ngrams)
        for width in ngram_widths:
            ngrams += map(join, _windows(row, width, _padding(width, pad_width), pads))
        if preserve_short_sequences and row and len(ngrams) == before:
            if pad_width < 0:
                raise InvalidArgumentError(
                    "Pad width should be >= 0 when preserve_short_sequences is True and "
                    f"ngram_widths are not provided, got {pad_width}"
                )
            check_allocation((len(row) + 2 * pad_width,), object)
            ngrams.append(join([pads[0]] * pad_width + row + [pads[1]] * pad_width))
        ends.append(len(ngrams))
    return string_tensor(ngrams), np.array(ends, splits.dtype).reshape(shape)


def _padding(width: int, pad_width: int) -> int:
    """Return the number of pads on each side of a row for n-grams of `width`.

    An n-gram contains at least one token, so that it uses at most `width - 1` pads.
    """
    return width - 1 if pad_width < 0 else min(pad_width, width - 1)


def _windows(
    row: list[bytes], width: int, padding: int, pads: tuple[bytes, bytes]
) -> Iterator[list[bytes]]:
    check_allocation((max(len(row) + 2 * padding, 0), width), object)
    padded = [pads[0]] * padding + row + [pads[1]] * padding
    for start in range(len(padded) - width + 1):
        check_task()
        yield padded[start : start + width]


def _check_splits(splits: np.ndarray, size: int) -> None:
    if not splits.size:
        return
    if splits[0] != 0:
        raise InvalidArgumentError(f"First split value must be 0, got {splits[0]}")
    for before, after in zip(splits[:-1].tolist(), splits[1:].tolist(), strict=True):
        check_task()
        if not before <= after <= size:
            raise InvalidArgumentError(
                f"Invalid split value {after}, must be in [{before}, {size}]"
            )
    if splits[-1] != size:
        raise InvalidArgumentError(
            f"Last split value must be data size. Expected {size}, got {splits[-1]}"
        )


KERNELS = (
    KernelDef("ReduceJoin", reduce_join),
    KernelDef("StringNGrams", string_ngrams),
    KernelDef("UnsortedSegmentJoin", unsorted_segment_join),
)
