"""NgramsStringJoin: neighbouring strings, joined.

TF: tensorflow_text/core/kernels/ngrams_kernel_template.h
"""

from __future__ import annotations

import itertools

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import KernelDef
from runtime.framework.string_tensor import items_of, string_tensor

_STRING = 80  # bytes of a string object and of the pointer to it


def ngrams_string_join(
    input_values: np.ndarray,
    *input_row_splits: np.ndarray,
    width: int,
    axis: int,
    string_separator: str,
) -> tuple[np.ndarray, ...] | np.ndarray:
    """TFText>NgramsStringJoin: join each `width` neighbours of the innermost dimension.

    Of a tensor, returns a tensor; of a ragged tensor, the values and the row splits. As in
    TensorFlow, a width of 0 makes an empty string of each value in a ragged tensor, and one below 0
    nothing. Raises InvalidArgumentError for such widths of a tensor.
    """
    if axis != -1:
        raise InternalError(f"axis != -1: {axis}")
    separator = string_separator.encode("utf-8", "surrogateescape")
    items = items_of(input_values)
    if not input_row_splits:
        if width < 1:
            raise InvalidArgumentError(f"width must be positive, got {width}")
        if not input_values.ndim:
            raise InvalidArgumentError("input_values must have at least one dimension")
        length = input_values.shape[-1]
        ends = [number * length for number in range(len(items) // length + 1)] if length else [0]
        shape = (*input_values.shape[:-1], max(length - width + 1, 0))
        return string_tensor(_joined(items, ends, width, separator)[0], shape)
    splits = input_row_splits[-1]
    ends = splits.tolist()
    if not ends or ends[0] < 0 or ends[-1] > len(items) or (np.diff(splits) < 0).any():
        raise InvalidArgumentError(
            f"row splits must ascend from 0 to at most {len(items)}, got {ends[:20]}"
        )
    found, lengths = _joined(items, ends, width, separator)
    made = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(lengths, np.int64))])
    return (string_tensor(found), *input_row_splits[:-1], made.astype(splits.dtype))


def _joined(
    items: list[bytes], ends: list[int], width: int, separator: bytes
) -> tuple[list[bytes], list[int]]:
    """Return the joined strings of all rows, and how many each row has."""
    found: list[bytes] = []
    lengths = []
    for first, end in itertools.pairwise(ends):
        check_task()
        last = end - max(width, 1) if width >= 0 else first - 1
        row = [separator.join(items[place : place + width]) for place in range(first, last + 1)]
        found += row
        lengths.append(len(row))
    return found, lengths


def _memory(
    input_values: np.ndarray, *splits: np.ndarray, width: int, string_separator: str
) -> int:
    items = items_of(input_values)
    longest = sum(map(len, items)) + len(items) * len(string_separator) * 4
    rows = sum(each.nbytes for each in splits)
    return max(min(width, len(items)), 1) * longest + _STRING * len(items) + 2 * rows


KERNELS = (KernelDef("TFText>NgramsStringJoin", ngrams_string_join, memory=_memory),)
