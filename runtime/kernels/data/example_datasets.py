"""ParseExampleDataset and ParseExampleDatasetV2: the features of serialized tf.Example messages.

Elements are parsed one after the other when they are requested, so the order is always that of the
input.

TF: tensorflow/core/kernels/data/experimental/parse_example_dataset_op.cc
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    UnaryDataset,
    UnaryIterator,
)
from runtime.framework.dtypes import DataType, Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes, is_compatible
from runtime.framework.ragged_tensor_variant import RaggedTensorVariant
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import items_of
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.data.dataset_functions import check_parallelism
from runtime.kernels.io.example_features import (
    Examples,
    check_feature_types,
    dense_column,
    dense_features,
    feature_key,
    parse_examples,
    ragged_column,
    sparse_column,
)


class ParseExampleDataset(UnaryDataset):
    """ParseExampleDataset: one component per feature, in the order of the features' keys.

    All strings of an element of the input are one batch of messages. A dense feature is a tensor
    `[batch, *shape]`; a sparse feature is a vector of three variants with its indices, values and
    shape; a ragged feature is a variant. `deterministic` and `sloppy` permit another order of the
    elements, which is never used.
    """

    kind = "ParseExample"

    def __init__(
        self,
        input_dataset: Dataset,
        num_parallel_calls: np.ndarray,
        *dense_defaults: np.ndarray,
        sparse_keys: Sequence[str],
        dense_keys: Sequence[str],
        sparse_types: Types,
        Tdense: Types,  # noqa: N803 # the attribute's name
        dense_shapes: Shapes,
        output_types: Types,
        output_shapes: Shapes,
        ragged_keys: Sequence[str],
        ragged_value_types: Types,
        ragged_split_types: Types,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        check_parallelism(num_parallel_calls)
        if len(dense_defaults) != len(dense_keys):
            raise InvalidArgumentError(
                "Expected len(dense_defaults) == len(dense_keys) but got: "
                f"{len(dense_defaults)} vs. {len(dense_keys)}"
            )
        _check_count("sparse_types", sparse_types, sparse_keys)
        _check_count("dense_shapes", dense_shapes, dense_keys)
        _check_count("ragged_value_types", ragged_value_types, ragged_keys)
        _check_count("ragged_split_types", ragged_split_types, ragged_keys)
        check_feature_types((*sparse_types, *ragged_value_types))
        keys = [raw_bytes(key) for key in (*dense_keys, *sparse_keys, *ragged_keys)]
        self._places = _places(keys)
        if len(output_types) != len(keys) or len(output_shapes) != len(keys):
            raise InvalidArgumentError(
                f"Expected {len(keys)} output_types and output_shapes, one for each feature, got "
                f"{len(output_types)} and {len(output_shapes)}"
            )
        first, second = len(dense_keys), len(dense_keys) + len(sparse_keys)
        dense = dense_features(keys[:first], Tdense, dense_shapes, dense_defaults)
        sparse = zip(keys[first:second], sparse_types, strict=True)
        ragged = zip(keys[second:], ragged_value_types, ragged_split_types, strict=True)
        # as in TensorFlow, dense features are parsed first and ragged ones last
        self._columns: list[_Column] = [
            *(
                _Column(number, each.data_type, functools.partial(dense_column, feature=each))
                for number, each in enumerate(dense)
            ),
            *(
                _Column(number, DataType.VARIANT, functools.partial(_sparse, key=key, kind=kind))
                for number, (key, kind) in enumerate(sparse)
            ),
            *(
                _Column(
                    number,
                    DataType.VARIANT,
                    functools.partial(_ragged, key=key, kind=kind, split_type=split_type),
                )
                for number, (key, kind, split_type) in enumerate(ragged)
            ),
        ]

    def parse(self, element: Element) -> Element:
        """Return the features of the messages in `element`.

        Raises InvalidArgumentError if a message is malformed, lacks a required feature or has a
        feature of another type or shape than declared.
        """
        examples = parse_examples([each for part in element for each in _strings(part)], ())
        values = [column.parse(examples) for column in self._columns]
        ordered: list[TensorValue] = [None] * len(values)
        for place, column, value in zip(self._places, self._columns, values, strict=True):
            self._check(column, np.shape(box(value)), place)
            ordered[place] = value
        return tuple(ordered)

    def _check(self, column: _Column, shape: tuple[int, ...], place: int) -> None:
        where = f"for FastParseExample return value {column.number} (expected"
        data_type, declared = self.output_types[place], self.output_shapes[place]
        if column.data_type is not data_type:
            raise InvalidArgumentError(
                f"Got wrong type {where} {data_type.tf_name}, got {column.data_type.tf_name})."
            )
        if not is_compatible(declared, shape):
            raise InvalidArgumentError(
                f"Got wrong shape {where} {shape_text(declared)}, got {shape_text(shape)})."
            )

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that parses one element after another."""
        return _ParsingIterator(self, context, prefix)


class ParseExampleDatasetV2(ParseExampleDataset):
    """ParseExampleDatasetV2: the same elements, with another name in messages."""

    kind = "ParseExampleV2"


class ExperimentalParseExampleDataset(ParseExampleDataset):
    """ExperimentalParseExampleDataset: the same elements, but there are no ragged features."""

    def __init__(
        self,
        input_dataset: Dataset,
        num_parallel_calls: np.ndarray,
        *dense_defaults: np.ndarray,
        sparse_keys: Sequence[str],
        dense_keys: Sequence[str],
        sparse_types: Types,
        Tdense: Types,  # noqa: N803 # the attribute's name
        dense_shapes: Shapes,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(
            input_dataset,
            num_parallel_calls,
            *dense_defaults,
            sparse_keys=sparse_keys,
            dense_keys=dense_keys,
            sparse_types=sparse_types,
            Tdense=Tdense,
            dense_shapes=dense_shapes,
            output_types=output_types,
            output_shapes=output_shapes,
            ragged_keys=(),
            ragged_value_types=(),
            ragged_split_types=(),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Column:
    """A feature: its number among those of its kind, its output's type and how it is parsed."""

    number: int
    data_type: DataType
    parse: Callable[[Examples], TensorValue]


def _sparse(examples: Examples, key: bytes, kind: DataType) -> np.ndarray:
    variants = np.empty(3, object)
    for index, part in enumerate(sparse_column(examples, feature_key(key), kind)):
        variants[index] = part
    return variants


def _ragged(
    examples: Examples, key: bytes, kind: DataType, split_type: DataType
) -> RaggedTensorVariant:
    values, splits = ragged_column(examples, feature_key(key), kind, split_type)
    return RaggedTensorVariant((splits,), values)


def _strings(component: TensorValue) -> list[bytes]:
    array = box(component)
    if array.dtype.hasobject and all(isinstance(each, bytes) for each in array.flat):
        return items_of(array)
    raise InvalidArgumentError("Expected an element of strings, which are tf.Example messages")


def _check_count(name: str, given: Sequence[object], keys: Sequence[str]) -> None:
    if len(given) != len(keys):
        raise InvalidArgumentError(f"Expected {len(keys)} {name}, got {len(given)}")


def _places(keys: Sequence[bytes]) -> list[int]:
    """Return the place of each key's component, which is the place of the key if they are sorted.

    Raises InvalidArgumentError if two features have the same key.
    """
    places: dict[bytes, int] = {}
    for key in keys:
        if key in places:
            raise InvalidArgumentError(
                f"Duplicate key not allowed: {key.decode('utf-8', 'backslashreplace')}"
            )
        places[key] = 0
    places = {key: place for place, key in enumerate(sorted(places))}
    return [places[key] for key in keys]


class _ParsingIterator(UnaryIterator):
    def __init__(self, dataset: ParseExampleDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset

    def get_next(self, context: OpKernelContext) -> Element | None:
        element = self.next_input(context)
        return None if element is None else self._dataset.parse(element)


KERNELS = (
    KernelDef("ExperimentalParseExampleDataset", ExperimentalParseExampleDataset),
    KernelDef("ParseExampleDataset", ParseExampleDataset),
    KernelDef("ParseExampleDatasetV2", ParseExampleDatasetV2),
)
