"""Splitting strings into tokens, returned as sparse tensors.

TF: tensorflow/core/kernels/string_split_op.cc
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, scalar_string, string_tensor

Sparse = tuple[np.ndarray, np.ndarray, np.ndarray]


def string_split(input: np.ndarray, delimiter: np.ndarray, *, skip_empty: bool) -> Sparse:
    """StringSplit: split each string at every byte that is in `delimiter`.

    If `delimiter` is empty, each string is split into its bytes. Empty tokens are omitted if
    `skip_empty` is true.
    """
    strings, delimiter = as_strings(input), as_strings(delimiter)
    if strings.ndim != 1:
        raise InvalidArgumentError(
            f"input must be a vector, got shape: {shape_text(strings.shape)}"
        )
    if delimiter.ndim:
        raise InvalidArgumentError(
            f"delimiter must be a scalar, got shape: {shape_text(delimiter.shape)}"
        )
    separators = scalar_string(delimiter)
    return _sparse([_split_at_any(text, separators, skip_empty) for text in strings.tolist()])


def _split_at_any(text: bytes, separators: bytes, skip_empty: bool) -> list[bytes]:
    if not separators:
        return [text[i : i + 1] for i in range(len(text))]
    if not text:
        return []  # Python's split would return one empty token
    # Every separator is replaced by the first one, so that bytes.split, which is fast, can be used.
    uniform = text.translate(bytes.maketrans(separators, separators[:1] * len(separators)))
    tokens = uniform.split(separators[:1])
    return [token for token in tokens if token] if skip_empty else tokens


def string_split_v2(input: np.ndarray, sep: np.ndarray, *, maxsplit: int) -> Sparse:
    """StringSplitV2: split each string at `sep` at most `maxsplit` times, as `bytes.split` does.

    If `sep` is empty, strings are split at runs of white space.
    """
    strings, sep = as_strings(input), as_strings(sep)
    if strings.ndim != 1:
        raise InvalidArgumentError(
            f"input must be a vector, got shape: {shape_text(strings.shape)}"
        )
    if sep.ndim:
        raise InvalidArgumentError(f"sep must be a scalar, got shape: {shape_text(sep.shape)}")
    split = _splitter(scalar_string(sep), maxsplit)
    return _sparse([split(text) for text in strings.tolist()])


def _splitter(separator: bytes, maxsplit: int) -> Callable[[bytes], list[bytes]]:
    if maxsplit == 0:
        return lambda text: [text]
    if separator:
        return lambda text: text.split(separator, maxsplit)
    if maxsplit < 0:
        return bytes.split

    def split_white_space(text: bytes) -> list[bytes]:
        tokens = text.split(None, maxsplit)
        # TensorFlow appends the rest after the last split even when it is empty.
        return [*tokens, b""] if len(tokens) == maxsplit else tokens

    return split_white_space


def _sparse(rows: Sequence[Sequence[bytes]]) -> Sparse:
    """Return rows of tokens as a sparse tensor: (indices [n, 2], values [n], dense shape [2])."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    row_of = np.repeat(np.arange(len(rows)), lengths)
    column_of = np.arange(len(row_of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    indices = np.stack([row_of, column_of], axis=1).astype(np.int64)
    shape = np.array([len(rows), lengths.max(initial=0)], np.int64)
    return indices, string_tensor(itertools.chain.from_iterable(rows)), shape


KERNELS = (
    KernelDef("StringSplit", string_split),
    KernelDef("StringSplitV2", string_split_v2),
)
