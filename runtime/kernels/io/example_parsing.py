"""Kernels that parse tf.Example messages: ParseExample, ParseExampleV2, ParseSingleExample.

TF: tensorflow/core/kernels/example_parsing_ops.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, items_of, scalar_string
from runtime.kernels.io.example_features import (
    DenseFeature,
    Examples,
    check_feature_types,
    dense_column,
    dense_features,
    feature_key,
    parse_examples,
    ragged_column,
    sparse_column,
)

Shapes = Sequence[tuple[int, ...] | None]
Types = Sequence[DataType]


def parse_example(
    serialized: np.ndarray,
    names: np.ndarray,
    *rest: np.ndarray,
    Nsparse: int,  # noqa: N803 - the attribute's name
    Ndense: int,  # noqa: N803
    sparse_types: Types,
    Tdense: Types,  # noqa: N803
    dense_shapes: Shapes,
) -> list[np.ndarray]:
    """ParseExample: parse a vector of examples.

    `rest` holds the sparse keys, then the dense keys, then the dense defaults.
    """
    serialized, names = as_strings(serialized), as_strings(names)
    if serialized.ndim != 1:
        raise InvalidArgumentError(
            f"Expected serialized to be a vector, got shape: {shape_text(serialized.shape)}"
        )
    _check_names(names, serialized)
    keys = [scalar_string(key) for key in rest[: Nsparse + Ndense]]
    dense = dense_features(keys[Nsparse:], Tdense, dense_shapes, rest[Nsparse + Ndense :])
    examples = parse_examples(items_of(serialized), items_of(names))
    return _batch(examples, keys[:Nsparse], sparse_types, dense)


def parse_example_v2(
    serialized: np.ndarray,
    names: np.ndarray,
    sparse_keys: np.ndarray,
    dense_keys: np.ndarray,
    ragged_keys: np.ndarray,
    *dense_defaults: np.ndarray,
    num_sparse: int,
    sparse_types: Types,
    Tdense: Types,  # noqa: N803
    dense_shapes: Shapes,
    ragged_value_types: Types,
    ragged_split_types: Types,
) -> list[np.ndarray]:
    """ParseExampleV2: parse one example or a vector of examples; the keys are inputs.

    If `serialized` is a scalar, the outputs have no batch dimension.
    """
    serialized, names = as_strings(serialized), as_strings(names)
    if serialized.ndim > 1:
        raise InvalidArgumentError(
            "Expected serialized to be a scalar or vector, "
            f"got shape: {shape_text(serialized.shape)}"
        )
    _check_names(names, serialized)
    sparse, dense, ragged = items_of(sparse_keys), items_of(dense_keys), items_of(ragged_keys)
    _check_key_count("sparse_keys", sparse, num_sparse)
    _check_key_count("dense_keys", dense, len(Tdense))
    _check_key_count("ragged_keys", ragged, len(ragged_value_types))
    features = dense_features(dense, Tdense, dense_shapes, dense_defaults)
    examples = parse_examples(items_of(serialized), items_of(names), not serialized.ndim)
    outputs = _batch(examples, sparse, sparse_types, features)
    check_feature_types(ragged_value_types)
    columns = [
        ragged_column(examples, feature_key(key), value_type, split_type)
        for key, value_type, split_type in zip(
            ragged, ragged_value_types, ragged_split_types, strict=True
        )
    ]
    values, splits = [column[0] for column in columns], [column[1] for column in columns]
    if serialized.ndim == 0:
        outputs = _without_batch(outputs, len(sparse))
        splits = [split[:0] for split in splits]  # the only row of the result needs no splits
    return [*outputs, *values, *splits]


def parse_single_example(
    serialized: np.ndarray,
    *dense_defaults: np.ndarray,
    sparse_keys: Sequence[str],
    dense_keys: Sequence[str],
    sparse_types: Types,
    Tdense: Types,  # noqa: N803
    dense_shapes: Shapes,
) -> list[np.ndarray]:
    """ParseSingleExample: parse one example; the keys are attributes."""
    serialized = as_strings(serialized)
    if serialized.ndim:
        raise InvalidArgumentError(
            f"Expected serialized to be a scalar, got shape: {shape_text(serialized.shape)}"
        )
    sparse = [raw_bytes(key) for key in sparse_keys]
    features = dense_features(
        [raw_bytes(key) for key in dense_keys], Tdense, dense_shapes, dense_defaults
    )
    examples = parse_examples(items_of(serialized), (), is_single=True)
    return _without_batch(_batch(examples, sparse, sparse_types, features), len(sparse))


def _check_names(names: np.ndarray, serialized: np.ndarray) -> None:
    if names.size and names.shape != serialized.shape:
        raise InvalidArgumentError(
            "Expected names have the same shape as serialized: "
            f"name.shape={shape_text(names.shape)}, "
            f"serialized.shape={shape_text(serialized.shape)}"
        )


def _check_key_count(what: str, keys: Sequence[bytes], expected: int) -> None:
    if len(keys) != expected:
        raise InvalidArgumentError(f"Expected {expected} {what}, got {len(keys)}")


def _batch(
    examples: Examples, sparse_keys: Sequence[bytes], sparse_types: Types, dense: list[DenseFeature]
) -> list[np.ndarray]:
    """Return, in the order of the outputs: sparse indices, values and shapes, dense values."""
    check_feature_types(sparse_types)
    columns = [
        sparse_column(examples, feature_key(key), data_type)
        for key, data_type in zip(sparse_keys, sparse_types, strict=True)
    ]
    sparse = [column[part] for part in range(3) for column in columns]
    return [*sparse, *(dense_column(examples, feature) for feature in dense)]


def _without_batch(outputs: list[np.ndarray], num_sparse: int) -> list[np.ndarray]:
    """Remove the batch dimension from `outputs`, which `_batch` returned for one example."""
    indices = [each[:, 1:] for each in outputs[:num_sparse]]
    values = outputs[num_sparse : 2 * num_sparse]
    shapes = [each[1:] for each in outputs[2 * num_sparse : 3 * num_sparse]]
    dense = [each.reshape(each.shape[1:]) for each in outputs[3 * num_sparse :]]
    return [*indices, *values, *shapes, *dense]


KERNELS = (
    KernelDef("ParseExample", parse_example),
    KernelDef("ParseExampleV2", parse_example_v2),
    KernelDef("ParseSingleExample", parse_single_example),
)
