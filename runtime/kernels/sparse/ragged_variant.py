"""Kernels that convert ragged tensors to variants (with the gradient) and back.

TF: tensorflow/core/kernels/{ragged_tensor_to_variant_op,ragged_tensor_from_variant_op,
ragged_tensor_variant}.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.ragged_tensor_variant import RaggedTensorVariant
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.sparse.ragged import check_splits_cover, splits_of_lengths


def ragged_tensor_to_variant(
    *nested_splits_and_values: np.ndarray, batched_input: bool
) -> np.ndarray | RaggedTensorVariant:
    """RaggedTensorToVariant: return the ragged tensor as one variant.

    If `batched_input` is true, return a vector with one variant for each row.
    """
    *nested, values = nested_splits_and_values
    values = np.asarray(values)
    if nested and not values.ndim:
        raise InvalidArgumentError(
            "Requires flat_values to have rank>=1 when nested_row_splits is not empty, but is 0."
        )
    below = len(values) if nested else 0
    for splits in reversed(nested):
        check_splits_cover(splits, below)
        below = len(splits) - 1
    if not batched_input:
        return RaggedTensorVariant(tuple(nested), values)
    if not nested:
        rows = [RaggedTensorVariant((), row) for row in _rows_of(values)]
    else:
        ranges = zip(nested[0][:-1].tolist(), nested[0][1:].tolist(), strict=True)
        rows = [_row(nested[1:], values, start, limit) for start, limit in ranges]
    result = np.empty(len(rows), object)
    result[:] = rows
    return result


def _rows_of(values: np.ndarray) -> list[np.ndarray]:
    if not values.ndim:
        raise InvalidArgumentError("Can't unbatch rank-0 tensor.")
    return [values[index, ...] for index in range(len(values))]


def _row(
    nested: list[np.ndarray], values: np.ndarray, start: int, limit: int
) -> RaggedTensorVariant:
    """Return rows start:limit of the next level as a separate ragged tensor."""
    inner = []
    for splits in nested:
        part = splits[start : limit + 1]
        start, limit = int(part[0]), int(part[-1])
        inner.append(part - part[0])
    return RaggedTensorVariant(tuple(inner), values[start:limit])


def ragged_tensor_from_variant(
    encoded: TensorValue,
    *,
    input_ragged_rank: int,
    output_ragged_rank: int,
    Tvalues: DataType,  # noqa: N803 # the attribute's name
    Tsplits: DataType,  # noqa: N803 # the attribute's name
) -> tuple[np.ndarray, ...]:
    """RaggedTensorFromVariant: return the ragged tensor that a scalar variant holds.

    If there are several variants, return a stack of their ragged tensors.
    """
    array = box(encoded)
    if input_ragged_rank == -1:
        input_ragged_rank = output_ragged_rank - array.ndim
        if input_ragged_rank < 0:
            raise InvalidArgumentError(
                "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be "
                f">= 0, found output_ragged_rank: {output_ragged_rank}, "
                f"encoded_variant.dims(): {array.ndim}, inferred input_ragged_rank: "
                f"{input_ragged_rank}"
            )
    if array.ndim != output_ragged_rank - input_ragged_rank:
        raise InvalidArgumentError(
            "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
            f"output_ragged_rank: {output_ragged_rank}, input_ragged_rank: {input_ragged_rank}, "
            f"encoded_variant.dims(): {array.ndim}."
        )
    components = array.ravel().tolist()
    for component in components:
        _check_component(component, input_ragged_rank, Tvalues, Tsplits)
    if not array.ndim:
        return (*components[0].nested_splits, components[0].values)
    return _stack(array.shape, components, input_ragged_rank, Tvalues, Tsplits)


def ragged_tensor_to_variant_gradient(
    context: OpKernelContext,
    encoded: TensorValue,
    row_splits: np.ndarray,
    dense_values_shape: np.ndarray,
    *,
    Tvalues: DataType,  # noqa: N803 # the attribute's name
) -> np.ndarray:
    """RaggedTensorToVariantGradient: concatenate the values of all variants.

    The result has the shape `dense_values_shape`. A variant without a value counts as rows of
    zeros, the number of which `row_splits` declares. If the variants hold fewer values than the
    result has elements, the other elements are zero.
    """
    if np.ndim(dense_values_shape) != 1:
        raise InvalidArgumentError("dense_values_shape must be a vector")
    dtype, shape = Tvalues.numpy, tuple(np.ravel(dense_values_shape).tolist())
    check_allocation(shape, dtype)
    if np.ndim(row_splits):
        check_splits_cover(row_splits)
    pieces = _values_of_variants(box(encoded), np.ravel(row_splits), shape, dtype)
    if len(pieces) == 1:
        if pieces[0].dtype != dtype:
            raise InternalError(
                f"Output 0 of type {from_numpy(pieces[0].dtype).tf_name} does not match declared "
                f"output type {Tvalues.tf_name} for node {{{{node {context.node.name}}}}}"
            )
        return pieces[0]
    result = np.zeros(math.prod(shape), dtype)
    if not result.size:
        return result.reshape(shape)
    flat = np.concatenate([np.ravel(piece) for piece in pieces]) if pieces else result[:0]
    if flat.dtype != dtype or flat.size > result.size:
        raise InvalidArgumentError(
            f"The variants hold {flat.size} values of {from_numpy(flat.dtype).tf_name}, "
            f"dense_values_shape is {list(shape)} of {Tvalues.tf_name}"
        )
    result[: flat.size] = flat
    return result.reshape(shape)


def _values_of_variants(
    encoded: np.ndarray, splits: np.ndarray, shape: tuple[int, ...], dtype: np.dtype
) -> list[np.ndarray]:
    """Return the values of each variant; a variant without a value counts as zeros."""
    pieces = []
    for index, component in enumerate(encoded.ravel().tolist()):
        check_task()
        if isinstance(component, RaggedTensorVariant):
            pieces.append(component.values)
            continue
        if index + 1 >= len(splits) or not shape:
            raise InvalidArgumentError(
                f"row_splits of {len(splits)} elements say nothing of variant {index}"
            )
        rows = int(splits[index + 1] - splits[index])
        check_allocation((rows, *shape[1:]), dtype)
        pieces.append(np.zeros((rows, *shape[1:]), dtype))
    return pieces


def _check_component(
    component: TensorValue, ragged_rank: int, values_type: DataType, splits_type: DataType | None
) -> None:
    if not isinstance(component, RaggedTensorVariant):
        raise InvalidArgumentError(
            f"Input Variant element does not hold a RaggedTensorVariant: {component!r}"
        )
    if component.values.dtype != values_type.numpy:
        raise InvalidArgumentError(
            f"Expected values Tensor dtype: {values_type.tf_name}, found: {component.values.dtype}"
        )
    if len(component.nested_splits) != ragged_rank:
        raise InvalidArgumentError(
            f"Expected ragged_rank: {ragged_rank}, found: {len(component.nested_splits)}"
        )
    if splits_type is not None and any(
        splits.dtype != splits_type.numpy for splits in component.nested_splits
    ):
        raise InvalidArgumentError(f"Expected row_splits Tensor dtype: {splits_type.tf_name}")


def _stack(
    shape: tuple[int, ...],
    components: list[RaggedTensorVariant],
    ragged_rank: int,
    values_type: DataType,
    splits_type: DataType,
) -> tuple[np.ndarray, ...]:
    dtype = splits_type.numpy
    results = [
        np.arange(math.prod(shape[: axis + 1]) + 1, dtype=dtype) * shape[axis + 1]
        for axis in range(len(shape) - 1)
    ]
    if any(not component.values.ndim for component in components):
        raise InvalidArgumentError("Requires flat_values of every component to have rank >= 1")
    lengths = [
        len(component.nested_splits[0]) - 1 if ragged_rank else len(component.values)
        for component in components
    ]
    results.append(splits_of_lengths(np.array(lengths, np.int64), dtype))
    for level in range(ragged_rank):
        rows = [np.diff(component.nested_splits[level]) for component in components]
        joined = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        results.append(splits_of_lengths(joined, dtype))
    if not components:
        return (*results, np.zeros(0, values_type.numpy))
    if len({component.values.shape[1:] for component in components}) > 1:
        raise InvalidArgumentError("All flat_values must have compatible shapes.")
    return (*results, np.concatenate([component.values for component in components]))


KERNELS = (
    KernelDef("RaggedTensorFromVariant", ragged_tensor_from_variant),
    KernelDef("RaggedTensorToVariant", ragged_tensor_to_variant),
    KernelDef("RaggedTensorToVariantGradient", ragged_tensor_to_variant_gradient),
)
