"""Convert the features of tf.Example messages to columns: dense, padded, sparse or ragged.

A column is one feature of every example of a batch; it becomes one or more tensors. The values of
all examples are first collected in one list, so that numpy converts them only once per column.

TF: tensorflow/core/util/example_proto_fast_parsing.cc
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import string_tensor

# The repeated field of one feature, which holds floats, integers or bytes.
Values = Sequence[Any]

# dtype → the member of Feature's oneof
_LIST_FIELD = {
    DataType.FLOAT: "float_list",
    DataType.INT64: "int64_list",
    DataType.STRING: "bytes_list",
}
_TYPE_OF_FIELD = {field: data_type for data_type, field in _LIST_FIELD.items()}
_VALUE_WORD = {DataType.FLOAT: "float", DataType.INT64: "int64", DataType.STRING: "bytes"}


@dataclasses.dataclass(frozen=True, slots=True)
class Examples:
    """A parsed batch: one feature map per example.

    `names` and `is_single` only affect error messages. `is_single` is true if there is one example
    and no batch; TensorFlow uses a different parser in this case.
    """

    features: Sequence[Mapping[str, pb.Feature]]
    names: Sequence[bytes] = ()
    is_single: bool = False

    def name(self, index: int) -> str:
        """Return the name of example `index` for error messages."""
        if index < len(self.names):
            return self.names[index].decode("utf-8", "backslashreplace")
        return "<unknown>"

    def where(self, key: str, index: int) -> str:
        """Return the first part of an error message about feature `key` of example `index`."""
        if self.is_single:
            return f"Key: {key}.  "
        return f"Name: {self.name(index)}, Key: {key}, Index: {index}.  "


def parse_examples(
    serialized: Sequence[bytes], names: Sequence[bytes], is_single: bool = False
) -> Examples:
    """Parse a batch of tf.Example messages; raise InvalidArgumentError if the bytes are invalid."""
    return Examples([_parse(each).features.feature for each in serialized], names, is_single)


def _parse(serialized: bytes) -> pb.Example:
    try:
        return pb.Example.FromString(serialized)
    except DecodeError:
        shown = serialized.decode("utf-8", "backslashreplace")
        raise InvalidArgumentError(f"Could not parse example input, value: '{shown}'") from None


def check_feature_types(types: Iterable[DataType]) -> None:
    """Raise InvalidArgumentError unless tf.Example can contain all of `types`."""
    for data_type in types:
        if data_type not in _LIST_FIELD:
            raise InvalidArgumentError(
                "Received input dtype: DT_" + data_type.name + ", expected float, int64 or string"
            )


def feature_key(key: bytes) -> str:
    """Convert a feature's key to a str, which is the type of the keys of protobuf's map."""
    return key.decode("utf-8", "replace")


def feature_type(feature: pb.Feature | None) -> DataType | None:
    """Return the dtype of a feature, or None if the feature is absent or has no list."""
    field = None if feature is None else feature.WhichOneof("kind")
    return None if field is None else _TYPE_OF_FIELD[field]


def feature_values(feature: pb.Feature, data_type: DataType) -> Values:
    """Return the values of a feature, whose dtype must be `data_type`."""
    values: Values = getattr(feature, _LIST_FIELD[data_type]).value
    return values


def value_word(data_type: DataType) -> str:
    """Return the word for values of this dtype in error messages: `float`, `int64`, `bytes`."""
    return _VALUE_WORD[data_type]


def flat_values(lists: Iterable[Values], data_type: DataType) -> np.ndarray:
    """Return the values of several features, concatenated to one vector."""
    values = itertools.chain.from_iterable(lists)
    if data_type is DataType.STRING:
        return string_tensor(values)
    return np.array(list(values), data_type.numpy)


def _column_values(examples: Examples, key: str, data_type: DataType) -> list[Values]:
    """Return the values of feature `key` in each example, () if an example lacks the feature.

    Raises InvalidArgumentError if a feature is not of `data_type`.
    """
    column: list[Values] = []
    for index, features in enumerate(examples.features):
        feature = features.get(key)
        found = feature_type(feature)
        if found is not None and found is not data_type:
            raise InvalidArgumentError(
                f"{examples.where(key, index)}Data types don't match. "
                f"Expected type: {data_type.tf_name}, Actual type: {found.tf_name}"
            )
        column.append(
            () if found is None or feature is None else feature_values(feature, data_type)
        )
    return column


def sparse_column(
    examples: Examples, key: str, data_type: DataType
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a sparse column: (indices [n, 2], values [n], dense shape [batch, longest])."""
    column = _column_values(examples, key, data_type)
    lengths = np.fromiter(map(len, column), np.int64, len(column))
    rows = np.repeat(np.arange(len(column)), lengths)
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    indices = np.stack([rows, np.arange(len(rows)) - begins], axis=1).astype(np.int64)
    dense_shape = np.array([len(column), lengths.max(initial=0)], np.int64)
    return indices, flat_values(column, data_type), dense_shape


def ragged_column(
    examples: Examples, key: str, data_type: DataType, split_type: DataType
) -> tuple[np.ndarray, np.ndarray]:
    """Return a ragged column: (values [n], row splits [batch + 1])."""
    column = _column_values(examples, key, data_type)
    lengths = np.fromiter(map(len, column), np.int64, len(column))
    splits = np.concatenate(([0], np.cumsum(lengths))).astype(split_type.numpy)
    return flat_values(column, data_type), splits


@dataclasses.dataclass(frozen=True, slots=True)
class DenseFeature:
    """A feature of fixed shape, or padded along the first dimension if `shape[0]` is −1."""

    key: str
    data_type: DataType
    shape: tuple[int, ...]
    default: np.ndarray  # empty if the feature is required

    @property
    def is_variable_length(self) -> bool:
        """Whether the first dimension is padded to the longest example of the batch."""
        return bool(self.shape) and self.shape[0] < 0

    @property
    def elements_per_stride(self) -> int:
        """The number of elements at one index of the first dimension."""
        return int(np.prod(self.shape[1:], dtype=np.int64))


def dense_features(
    keys: Sequence[bytes],
    types: Sequence[DataType],
    shapes: Sequence[tuple[int, ...] | None],
    defaults: Sequence[np.ndarray],
) -> list[DenseFeature]:
    """Combine keys, types, shapes and defaults of the same features.

    Raises InvalidArgumentError if they do not fit together.
    """
    check_feature_types(types)
    features = []
    for index, (key, data_type, shape, given) in enumerate(
        zip(keys, types, shapes, defaults, strict=True)
    ):
        default = np.asarray(given)
        if shape is None or any(size < 0 for size in shape[1:]):
            raise InvalidArgumentError(
                f"dense_shapes[{index}] has unknown rank or unknown inner dimensions: "
                f"{shape_text(shape)}"
            )
        feature = DenseFeature(feature_key(key), data_type, shape, default)
        _check_default(feature, index)
        features.append(feature)
    return features


def _check_default(feature: DenseFeature, index: int) -> None:
    default = feature.default
    if feature.is_variable_length:
        if default.size != 1:
            raise InvalidArgumentError(
                f"dense_shape[{index}] is a variable length shape: "
                f"{shape_text(feature.shape)}, therefore def_value[{index}] must contain "
                f"a single element (the padding element).  "
                f"But its shape is: {shape_text(default.shape)}"
            )
    elif default.size and default.shape != feature.shape:
        raise InvalidArgumentError(
            f"def_value[{index}].shape() == {shape_text(default.shape)} is not compatible with "
            f"dense_shapes_[{index}] == {shape_text(feature.shape)}"
        )


def dense_column(examples: Examples, feature: DenseFeature) -> np.ndarray:
    """Return the batch of a dense feature: [batch, *shape].

    If the feature is padded, the result is [batch, longest, *shape[1:]].
    """
    rows = list(_rows(examples, feature))
    if feature.is_variable_length:
        return _padded(rows, feature)
    return flat_values(rows, feature.data_type).reshape((len(rows), *feature.shape))


def _rows(examples: Examples, feature: DenseFeature) -> Iterator[Values]:
    key, field = feature.key, _LIST_FIELD[feature.data_type]
    expected = -1 if feature.is_variable_length else math.prod(feature.shape)
    for index, features in enumerate(examples.features):
        found = features.get(key)
        if found is not None and found.WhichOneof("kind") == field:
            values: Values = getattr(found, field).value
            if len(values) == expected:  # most features: nothing else is to be checked
                yield values
                continue
        yield _dense_row(examples, feature, index)


def _dense_row(examples: Examples, feature: DenseFeature, index: int) -> Values:
    """Return the values of the feature in one example, or its default if the example lacks it."""
    found = examples.features[index].get(feature.key)
    data_type = feature_type(found)
    if found is None or data_type is None:
        name = "" if examples.is_single else f"Name: {examples.name(index)}, "
        return _default_row(name, feature)
    if data_type is not feature.data_type:
        raise InvalidArgumentError(
            f"{examples.where(feature.key, index)}Data types don't match. "
            f"Data type: {data_type.tf_name} but expected type: {feature.data_type.tf_name}"
        )
    values = feature_values(found, data_type)
    check = _check_single_count if examples.is_single else _check_count
    check(len(values), feature, examples.where(feature.key, index))
    return values


def _default_row(name: str, feature: DenseFeature) -> Values:
    if feature.is_variable_length:
        return ()
    if not feature.default.size:
        raise InvalidArgumentError(
            f"{name}Feature: {feature.key} "
            f"(data type: {feature.data_type.tf_name}) is required but could not be found."
        )
    values: Values = feature.default.ravel().tolist()
    return values


def _check_count(count: int, feature: DenseFeature, where: str) -> None:
    word = _VALUE_WORD[feature.data_type]
    if feature.is_variable_length:
        if count % max(feature.elements_per_stride, 1):
            raise InvalidArgumentError(
                f"{where}Number of {word} values is not a multiple of stride length. "
                f"Saw {count} values but output shape is: {shape_text(feature.shape)}"
            )
    elif count != math.prod(feature.shape):
        raise InvalidArgumentError(
            f"{where}Number of {word} values != expected.  Values size: {count} "
            f"but output shape: {shape_text(feature.shape)}"
        )


def _check_single_count(count: int, feature: DenseFeature, where: str) -> None:
    word = _VALUE_WORD[feature.data_type]
    if feature.is_variable_length:
        stride = max(feature.elements_per_stride, 1)
        if count % stride:
            raise InvalidArgumentError(
                f"Error while parsing feature with key {feature.key}: number of elements should "
                f"be divisible by {stride}, found {count} instead"
            )
    elif count != math.prod(feature.shape):
        why = f"Some {word}_list slice was not parsed."
        if feature.data_type is DataType.STRING:
            why = "Parsing bytes_list failed."
        raise InvalidArgumentError(f"{where}Can't parse serialized Example: {why}")


def _padded(rows: Sequence[Values], feature: DenseFeature) -> np.ndarray:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    longest = int(lengths.max(initial=0))
    steps = longest // max(feature.elements_per_stride, 1)
    # A batch of one long example and many short ones needs far more memory than its input.
    check_allocation((len(rows), longest), feature.data_type.numpy)
    batch = np.full((len(rows), longest), feature.default.item(), feature.data_type.numpy)
    batch[np.arange(longest) < lengths[:, None]] = flat_values(rows, feature.data_type)
    return batch.reshape((len(rows), steps, *feature.shape[1:]))
