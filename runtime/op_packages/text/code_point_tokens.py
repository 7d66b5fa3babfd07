"""UnicodeScriptTokenizeWithOffsets and WhitespaceTokenizeWithOffsets: tokens of code points.

TF: tensorflow_text/core/kernels/unicode_script_tokenize_kernel.cc, whitespace_tokenize_kernel.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import elements
from runtime.op_packages.text.token_rows import check_splits, check_vector
from runtime.op_packages.text.unicode_characters import WHITE_SPACE
from runtime.op_packages.text.unicode_properties import CODE_POINTS, scripts

_NO_SCRIPT = -1  # of what is no code point
_SPACES = np.array(sorted(WHITE_SPACE), np.int32)
# bytes for a code point: masks, its script, and places as int64
_WORK = 80


def unicode_script_tokenize_with_offsets(
    input_values: np.ndarray,
    input_splits: np.ndarray,
    *,
    Tsplits: DataType,  # noqa: N803 - the attribute's name
    keep_whitespace: bool,
) -> tuple[np.ndarray, ...]:
    """UnicodeScriptTokenizeWithOffsets: a token ends where the script changes.

    White space is in no token, or with `keep_whitespace` in tokens of its own. For the result see
    `_tokens`.
    """
    points, splits = _rows(input_values, input_splits)
    is_space = np.isin(points, _SPACES)
    inside = (points >= 0) & (points < CODE_POINTS)
    script = np.where(inside, scripts()[np.where(inside, points, 0)].astype(np.int16), _NO_SCRIPT)
    changes = np.ones(len(points), bool)
    changes[1:] = script[1:] != script[:-1]
    if keep_whitespace:
        changes[1:] |= is_space[1:] != is_space[:-1]
        return _tokens(points, splits, changes, np.ones(len(points), bool), Tsplits)
    return _tokens(points, splits, changes, ~is_space, Tsplits)


def whitespace_tokenize_with_offsets(
    input_values: np.ndarray,
    input_splits: np.ndarray,
    *,
    Tsplits: DataType,  # noqa: N803
) -> tuple[np.ndarray, ...]:
    """WhitespaceTokenizeWithOffsets: tokens of code points between white space; see `_tokens`."""
    points, splits = _rows(input_values, input_splits)
    is_space = np.isin(points, _SPACES)
    return _tokens(points, splits, is_space, ~is_space, Tsplits)


def _rows(values: np.ndarray, splits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    check_vector(values, "input_values")
    check_splits(splits, len(values))
    check_task()
    return values, splits


def _tokens(
    points: np.ndarray, splits: np.ndarray, ends: np.ndarray, kept: np.ndarray, dtype: DataType
) -> tuple[np.ndarray, ...]:
    """Divide rows of code points into tokens.

    `ends[i]` says that the token before code point i ends there, `kept[i]` that the code point is
    in a token. Returns the code points of the tokens, the row splits of tokens in them, the begins
    and ends int64 of the tokens in their rows (of what is left out within a token, they count
    everything but what is at its end), and the row splits of rows in the tokens.
    """
    outer = np.zeros(len(splits), dtype.numpy)
    if len(splits) < 2 or splits[0] == splits[-1]:
        empty = np.zeros(0, np.int64)
        return points[:0], np.zeros(1, dtype.numpy), empty, empty, outer
    limits = splits.astype(np.int64)
    first, last = limits[0], limits[-1]
    ends = ends[first:last].copy()
    starts_row = limits[:-1][limits[:-1] < last] - first
    ends[starts_row] = True
    places = np.flatnonzero(kept[first:last])
    group = np.cumsum(ends)[places]  # a token has the kept code points of one group
    is_first = np.ones(len(places), bool)
    is_first[1:] = group[1:] != group[:-1]
    check_task()
    heads = np.flatnonzero(is_first)
    row_of = np.searchsorted(limits, places[heads] + first, side="right") - 1
    row_start = limits[row_of] - first
    tails = np.append(heads[1:], len(places))[: len(heads)] - 1
    begins = places[heads] - row_start
    stops = places[tails] + 1 - row_start
    outer[:] = np.searchsorted(places[heads] + first, limits)
    inner = np.append(heads, len(places)).astype(dtype.numpy)
    return points[first:last][places], inner, begins, stops, outer


def _script_memory(input_values: TensorValue, input_splits: TensorValue) -> int:
    return _WORK * elements(input_values) + 40 * elements(input_splits) + 3 * CODE_POINTS


def _space_memory(input_values: TensorValue, input_splits: TensorValue) -> int:
    return _WORK * elements(input_values) + 40 * elements(input_splits)


KERNELS = (
    KernelDef(
        "UnicodeScriptTokenizeWithOffsets",
        unicode_script_tokenize_with_offsets,
        memory=_script_memory,
    ),
    KernelDef(
        "WhitespaceTokenizeWithOffsets", whitespace_tokenize_with_offsets, memory=_space_memory
    ),
)
