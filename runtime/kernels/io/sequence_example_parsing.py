"""Kernels of ParseSequenceExample, ParseSequenceExampleV2 and ParseSingleSequenceExample.

TF: tensorflow/core/kernels/example_parsing_ops.cc, util/example_proto_fast_parsing.cc
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, items_of, scalar_string
from runtime.kernels.io.example_features import (
    check_feature_types,
    dense_column,
    dense_features,
    feature_key,
    ragged_column,
    sparse_column,
)
from runtime.kernels.io.sequence_example_features import (
    SequenceExamples,
    dense_list,
    parse_sequence_examples,
    ragged_list,
    sparse_list,
)

KEY_LISTS = (
    "context_sparse_keys", "context_dense_keys", "feature_list_sparse_keys",
    "feature_list_dense_keys",
)  # fmt: skip
Types = Sequence[DataType]
Shapes = Sequence[tuple[int, ...] | None]


def _by_component(columns: Sequence[tuple[np.ndarray, ...]], count: int) -> list[np.ndarray]:
    """Return the first components of all columns, then the second components, and so on.

    This is the order of the outputs of an op.
    """
    return [column[part] for part in range(count) for column in columns]


@dataclasses.dataclass(frozen=True, slots=True)
class _ListSpecs:
    """The sparse and dense feature lists to parse."""

    sparse: Sequence[tuple[str, DataType]]
    dense: Sequence[tuple[str, DataType, tuple[int, ...], bool]]  # key, dtype, shape, is required

    def sparse_columns(self, examples: SequenceExamples) -> list[np.ndarray]:
        return _by_component([sparse_list(examples, *each) for each in self.sparse], 3)

    def dense_columns(self, examples: SequenceExamples) -> list[np.ndarray]:
        return _by_component([dense_list(examples, *each) for each in self.dense], 2)


def _list_specs(
    sparse_keys: Sequence[bytes],
    sparse_types: Types,
    dense_keys: Sequence[bytes],
    dense_types: Types,
    dense_shapes: Shapes,
    may_be_missing: Sequence[bool],
) -> _ListSpecs:
    check_feature_types((*sparse_types, *dense_types))
    for index, shape in enumerate(dense_shapes):
        if shape is None or -1 in shape:
            raise InvalidArgumentError(f"feature_list_dense_shapes[{index}] is not fully defined")
    sparse = zip(map(feature_key, sparse_keys), sparse_types, strict=True)
    dense = zip(
        map(feature_key, dense_keys),
        dense_types,
        (shape or () for shape in dense_shapes),
        (not missing for missing in may_be_missing),
        strict=True,
    )
    return _ListSpecs(list(sparse), list(dense))


def _context(
    examples: SequenceExamples,
    sparse_keys: Sequence[bytes],
    sparse_types: Types,
    dense_keys: Sequence[bytes],
    dense_types: Types,
    dense_shapes: Shapes,
    dense_defaults: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """Return the outputs for the context: sparse indices, values and shapes, then dense values."""
    check_feature_types(sparse_types)
    dense = dense_features(dense_keys, dense_types, dense_shapes, dense_defaults)
    columns = [
        sparse_column(examples.context, feature_key(key), data_type)
        for key, data_type in zip(sparse_keys, sparse_types, strict=True)
    ]
    return [*_by_component(columns, 3), *(dense_column(examples.context, each) for each in dense)]


def _serialized_and_names(
    serialized: np.ndarray, debug_name: np.ndarray
) -> tuple[np.ndarray, list[bytes]]:
    strings, names = as_strings(serialized), as_strings(debug_name)
    if strings.ndim > 1:
        raise InvalidArgumentError(
            f"Expected serialized to be a vector, got shape: {shape_text(strings.shape)}"
        )
    if names.size and names.shape != strings.shape:
        raise InvalidArgumentError(
            "Expected debug_name have the same shape as serialized: "
            f"name.shape={shape_text(names.shape)}, serialized.shape={shape_text(strings.shape)}"
        )
    return strings, items_of(names)


def parse_sequence_example(
    serialized: np.ndarray,
    debug_name: np.ndarray,
    *context_dense_defaults: np.ndarray,
    feature_list_dense_missing_assumed_empty: Sequence[str],
    context_sparse_keys: Sequence[str],
    context_dense_keys: Sequence[str],
    feature_list_sparse_keys: Sequence[str],
    feature_list_dense_keys: Sequence[str],
    context_sparse_types: Types,
    Tcontext_dense: Types,  # noqa: N803 - the attribute's name
    feature_list_dense_types: Types,
    context_dense_shapes: Shapes,
    feature_list_sparse_types: Types,
    feature_list_dense_shapes: Shapes,
) -> list[np.ndarray]:
    """ParseSequenceExample: parse a vector of sequence examples; the keys are attributes."""
    strings, names = _serialized_and_names(serialized, debug_name)
    specs = _list_specs(
        _keys(feature_list_sparse_keys),
        feature_list_sparse_types,
        _keys(feature_list_dense_keys),
        feature_list_dense_types,
        feature_list_dense_shapes,
        [key in feature_list_dense_missing_assumed_empty for key in feature_list_dense_keys],
    )
    examples = parse_sequence_examples(items_of(strings), names)
    context = _context(
        examples,
        _keys(context_sparse_keys),
        context_sparse_types,
        _keys(context_dense_keys),
        Tcontext_dense,
        context_dense_shapes,
        context_dense_defaults,
    )
    return [*context, *specs.sparse_columns(examples), *specs.dense_columns(examples)]


def _keys(names: Sequence[str]) -> list[bytes]:
    return [raw_bytes(name) for name in names]


def parse_sequence_example_v2(
    serialized: np.ndarray,
    debug_name: np.ndarray,
    context_sparse_keys: np.ndarray,
    context_dense_keys: np.ndarray,
    context_ragged_keys: np.ndarray,
    feature_list_sparse_keys: np.ndarray,
    feature_list_dense_keys: np.ndarray,
    feature_list_ragged_keys: np.ndarray,
    feature_list_dense_missing_assumed_empty: np.ndarray,
    *context_dense_defaults: np.ndarray,
    Tcontext_dense: Types,  # noqa: N803
    context_sparse_types: Types,
    context_ragged_value_types: Types,
    context_ragged_split_types: Types,
    context_dense_shapes: Shapes,
    feature_list_dense_types: Types,
    feature_list_sparse_types: Types,
    feature_list_ragged_value_types: Types,
    feature_list_ragged_split_types: Types,
    feature_list_dense_shapes: Shapes,
) -> list[np.ndarray]:
    """ParseSequenceExampleV2: parse one sequence example or a vector of them.

    The keys are inputs.
    """
    strings, names = _serialized_and_names(serialized, debug_name)
    specs = _list_specs(
        items_of(feature_list_sparse_keys),
        feature_list_sparse_types,
        items_of(feature_list_dense_keys),
        feature_list_dense_types,
        feature_list_dense_shapes,
        np.asarray(feature_list_dense_missing_assumed_empty).ravel().tolist(),
    )
    examples = parse_sequence_examples(items_of(strings), names)
    context = _context(
        examples,
        items_of(context_sparse_keys),
        context_sparse_types,
        items_of(context_dense_keys),
        Tcontext_dense,
        context_dense_shapes,
        context_dense_defaults,
    )
    context_ragged = [
        ragged_column(examples.context, feature_key(key), *types)
        for key, *types in zip(
            items_of(context_ragged_keys),
            context_ragged_value_types,
            context_ragged_split_types,
            strict=True,
        )
    ]
    ragged = [
        ragged_list(examples, feature_key(key), *types)
        for key, *types in zip(
            items_of(feature_list_ragged_keys),
            feature_list_ragged_value_types,
            feature_list_ragged_split_types,
            strict=True,
        )
    ]
    groups = (
        context,
        _by_component(context_ragged, 2),
        specs.sparse_columns(examples),
        specs.dense_columns(examples),
        _by_component(ragged, 3),
    )
    if strings.ndim:
        return [output for group in groups for output in group]
    return _unbatched(
        groups, len(context_sparse_types), len(context_ragged), len(specs.sparse), len(ragged)
    )


def _unbatched(
    groups: Sequence[list[np.ndarray]],
    context_sparse: int,
    context_ragged: int,
    sparse: int,
    ragged: int,
) -> list[np.ndarray]:
    """Remove the batch dimension from the outputs, as the op does if its input is a scalar."""
    context, context_ragged_parts, sparse_parts, dense_parts, ragged_parts = groups
    dense = context[3 * context_sparse :]
    return [
        *_unbatched_sparse(context[: 3 * context_sparse], context_sparse),
        *(each.reshape(each.shape[1:]) for each in dense),
        *context_ragged_parts[:context_ragged],
        *(_scalar_splits(each) for each in context_ragged_parts[context_ragged:]),
        *_unbatched_sparse(sparse_parts, sparse),
        *(each.reshape(each.shape[1:]) for each in dense_parts),
        *ragged_parts[:ragged],
        *(_scalar_splits(each) for each in ragged_parts[ragged : 2 * ragged]),
        *ragged_parts[2 * ragged :],
    ]


def _scalar_splits(splits: np.ndarray) -> np.ndarray:
    """Return a scalar that replaces the row splits of one example.

    TensorFlow leaves this scalar uninitialized; here it is 0.
    """
    return np.zeros((), splits.dtype)


def _unbatched_sparse(parts: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    indices, values, shapes = parts[:count], parts[count : 2 * count], parts[2 * count :]
    return [*(each[:, 1:] for each in indices), *values, *(each[1:] for each in shapes)]


def _check_scalar_keys(given: Sequence[np.ndarray], counts: Sequence[int]) -> None:
    """Raise InvalidArgumentError unless every key is a scalar.

    `counts` are the lengths of the lists.
    """
    keys = iter(given)
    lists = [list(itertools.islice(keys, count)) for count in counts]
    for place in (1, 0, 3, 2):  # TensorFlow checks dense keys before sparse keys
        name = KEY_LISTS[place]
        for number, key in enumerate(lists[place]):
            if np.ndim(key):
                raise InvalidArgumentError(
                    f"Expected {name}[{number}] to be a scalar, got shape: "
                    f"{shape_text(np.shape(key))}"
                )


def parse_single_sequence_example(
    serialized: np.ndarray,
    feature_list_dense_missing_assumed_empty: np.ndarray,
    *rest: np.ndarray,
    Ncontext_sparse: int,  # noqa: N803
    Ncontext_dense: int,  # noqa: N803
    Nfeature_list_sparse: int,  # noqa: N803
    Nfeature_list_dense: int,  # noqa: N803
    context_sparse_types: Types,
    Tcontext_dense: Types,  # noqa: N803
    feature_list_dense_types: Types,
    context_dense_shapes: Shapes,
    feature_list_sparse_types: Types,
    feature_list_dense_shapes: Shapes,
) -> list[np.ndarray]:
    """ParseSingleSequenceExample: parse one sequence example.

    `rest` holds the four lists of keys, then the defaults of dense context features, then the debug
    name.
    """
    strings = as_strings(serialized)
    if strings.ndim:
        raise InvalidArgumentError(
            f"Expected serialized to be a scalar, got shape: {shape_text(strings.shape)}"
        )
    if np.ndim(rest[-1]):
        raise InvalidArgumentError(
            f"Expected debug_name to be a scalar, got shape: {shape_text(np.shape(rest[-1]))}"
        )
    if np.ndim(feature_list_dense_missing_assumed_empty) != 1:
        shape = shape_text(np.shape(feature_list_dense_missing_assumed_empty))
        raise InvalidArgumentError(
            f"Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: {shape}"
        )
    counts = (Ncontext_sparse, Ncontext_dense, Nfeature_list_sparse, Nfeature_list_dense)
    ends = list(itertools.accumulate(counts))
    _check_scalar_keys(rest, counts)
    keys = [
        [scalar_string(key) for key in rest[end - count : end]]
        for count, end in zip(counts, ends, strict=True)
    ]
    may_be_missing = set(items_of(feature_list_dense_missing_assumed_empty))
    specs = _list_specs(
        keys[2],
        feature_list_sparse_types,
        keys[3],
        feature_list_dense_types,
        feature_list_dense_shapes,
        [key in may_be_missing for key in keys[3]],
    )
    examples = parse_sequence_examples(items_of(strings), items_of(rest[-1]), is_single=True)
    context = _context(
        examples,
        keys[0],
        context_sparse_types,
        keys[1],
        Tcontext_dense,
        context_dense_shapes,
        rest[ends[-1] : -1],
    )
    dense = specs.dense_columns(examples)[: len(specs.dense)]
    none: list[np.ndarray] = []
    groups = (context, none, specs.sparse_columns(examples), dense, none)
    return _unbatched(groups, Ncontext_sparse, 0, Nfeature_list_sparse, 0)


KERNELS = (
    KernelDef("ParseSequenceExample", parse_sequence_example),
    KernelDef("ParseSequenceExampleV2", parse_sequence_example_v2),
    KernelDef("ParseSingleSequenceExample", parse_single_sequence_example),
)
