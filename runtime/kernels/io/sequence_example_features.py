"""Convert feature lists of tf.SequenceExample messages to dense, sparse or ragged tensors.

A feature list of one example is a sequence of frames, each of which is a list of values. A dense
feature list becomes [batch, longest, *shape], padded with zeros; a sparse feature list becomes a
sparse tensor [batch, frames, values].

TF: tensorflow/core/util/example_proto_fast_parsing.cc (FastParseSequenceExample)
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence, Sized

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.shapes import shape_text
from runtime.kernels.io.example_features import (
    Examples,
    Values,
    feature_type,
    feature_values,
    flat_values,
    value_word,
)

Frames = list[Values]  # the values of each frame of one example


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceExamples:
    """A parsed batch: the contexts of the examples, and one map of feature lists per example."""

    context: Examples
    feature_lists: Sequence[Mapping[str, pb.FeatureList]]
    # ParseSingleSequenceExample sets it, because the error messages of that op differ
    is_single: bool


def parse_sequence_examples(
    serialized: Sequence[bytes], names: Sequence[bytes], is_single: bool = False
) -> SequenceExamples:
    """Parse a batch of tf.SequenceExample messages.

    Raises InvalidArgumentError if the bytes can't be parsed.
    """
    messages = []
    for index, each in enumerate(serialized):
        try:
            messages.append(pb.SequenceExample.FromString(each))
        except DecodeError:
            name = Examples((), names).name(index)
            raise InvalidArgumentError(
                f"Name: {name}, Could not parse serialized SequenceExample"
            ) from None
    context = Examples([message.context.feature for message in messages], names)
    lists = [message.feature_lists.feature_list for message in messages]
    return SequenceExamples(context, lists, is_single)


def _frames(
    examples: SequenceExamples, key: str, data_type: DataType, is_required: bool = False
) -> list[Frames]:
    """Return the frames of feature list `key` in each example.

    An example that lacks the list has no frames, but if `is_required` is true, InvalidArgumentError
    is raised.
    """
    column: list[Frames] = []
    for index, lists in enumerate(examples.feature_lists):
        found = lists.get(key)
        if found is None and is_required:
            raise InvalidArgumentError(
                f"Name: {examples.context.name(index)}, Feature list '{key}' is required but "
                "could not be found.  Did you mean to include it in "
                "feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?"
            )
        frames: Frames = []
        for frame, feature in enumerate(found.feature if found is not None else ()):
            kind = feature_type(feature)
            if kind is not None and kind is not data_type:
                raise InvalidArgumentError(
                    f"Name: {examples.context.name(index)}, Feature list: {key}, Index: {frame}."
                    f"  Data types don't match. Expected type: {data_type.tf_name}, "
                    f"Actual type: {kind.tf_name}"
                )
            frames.append(() if kind is None else feature_values(feature, data_type))
        column.append(frames)
    return column


def _lengths(column: Sequence[Sized]) -> np.ndarray:
    return np.fromiter(map(len, column), np.int64, len(column))


def dense_list(
    examples: SequenceExamples,
    key: str,
    data_type: DataType,
    shape: tuple[int, ...],
    is_required: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a dense feature list: (values, number of frames of each example [batch]).

    The values are [batch, longest, *shape], padded with zeros.
    """
    column = _frames(examples, key, data_type, is_required)
    width = int(np.prod(shape, dtype=np.int64))
    most = max((sum(map(len, frames)) for frames in column), default=0)
    if not examples.is_single and width and most % width:
        raise InvalidArgumentError(
            f"Feature list '{key}' has an unexpected number of values.  Total values size: {most} "
            f"is not consistent with output shape: {shape_text((-1, *shape))}"
        )
    word = f"{value_word(data_type)} " if examples.is_single else ""
    for index, frames in enumerate(column):
        for frame, values in enumerate(frames):
            if len(values) != width:
                raise InvalidArgumentError(
                    f"Name: {examples.context.name(index)}, Key: {key}, Index: {frame}.  "
                    f"Number of {word}values != expected.  values size: {len(values)} "
                    f"but output shape: {shape_text(shape)}"
                )
    lengths = _lengths(column)
    longest = int(lengths.max(initial=0))
    check_allocation((len(column), longest, width), data_type.numpy)
    batch = np.empty((len(column), longest, width), data_type.numpy)
    batch[...] = b"" if data_type is DataType.STRING else 0
    flat = flat_values(itertools.chain.from_iterable(column), data_type)
    batch[np.arange(longest) < lengths[:, None]] = flat.reshape((int(lengths.sum()), width))
    return batch.reshape((len(column), longest, *shape)), lengths


def sparse_list(
    examples: SequenceExamples, key: str, data_type: DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a sparse feature list: (indices [n, 3], values [n], dense shape [3]).

    The dense shape is [batch, most frames, most values].
    """
    column = _frames(examples, key, data_type)
    frames = list(itertools.chain.from_iterable(column))
    sizes = _lengths(frames)
    indices = np.empty((int(sizes.sum()), 3), np.int64)
    rows, steps = _rows_and_columns(_lengths(column))
    indices[:, 0] = np.repeat(rows, sizes)
    indices[:, 1] = np.repeat(steps, sizes)
    indices[:, 2] = _rows_and_columns(sizes)[1]
    most = [_lengths(column).max(initial=0), sizes.max(initial=0)]
    return indices, flat_values(frames, data_type), np.array([len(column), *most], np.int64)


def _rows_and_columns(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (row, column) of every element of rows that have these lengths."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def ragged_list(
    examples: SequenceExamples, key: str, data_type: DataType, split_type: DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a ragged feature list: (values [n], row splits of examples, row splits of frames).

    The row splits of examples delimit the frames of each example, and the row splits of frames
    delimit the values of each frame.
    """
    column = _frames(examples, key, data_type)
    frames = list(itertools.chain.from_iterable(column))
    outer, inner = (
        np.concatenate(([0], np.cumsum(_lengths(part)))).astype(split_type.numpy)
        for part in (column, frames)
    )
    return flat_values(frames, data_type), outer, inner
