"""Kernels that make tensor maps, or read and change their entries.

TF: tensorflow/core/kernels/map_kernels.h, map_kernels.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resources.tensor_map import TensorMap
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_text import readable, summarize
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox
from runtime.kernels.data.optionals import element_type

_SHOWN_KEY_ELEMENTS = 1000  # messages show at most so many elements of a key; TensorFlow shows all


def as_map(value: TensorValue) -> TensorMap:
    """Return the map that a scalar variant holds.

    Raises InvalidArgumentError if `value` is not a scalar or not a map.
    """
    array = box(value)
    if array.ndim:
        raise InvalidArgumentError(f"Input map must be a scalar. Saw: {shape_text(array.shape)}")
    found = array.item()
    if not isinstance(found, TensorMap):
        raise InvalidArgumentError(f"Input handle is not a map. Saw: '{type(found).__name__}'")
    return found


def empty_tensor_map() -> TensorMap:
    """EmptyTensorMap: return a map without entries."""
    return TensorMap()


def tensor_map_size(input_handle: TensorMap) -> np.int32:
    """TensorMapSize: return the number of entries."""
    return np.int32(len(as_map(input_handle)))


def tensor_map_insert(input_handle: TensorMap, key: TensorValue, value: TensorValue) -> TensorMap:
    """TensorMapInsert: return the map with `value` at `key`.

    A value that `key` had before is replaced.
    """
    return as_map(input_handle).inserted(key, value)


def tensor_map_lookup(
    context: OpKernelContext, input_handle: TensorMap, key: TensorValue, *, value_dtype: DataType
) -> TensorValue:
    """TensorMapLookup: return the value at `key`.

    Raises InvalidArgumentError if the map lacks `key`, InternalError if the dtype of the value is
    not `value_dtype`.
    """
    value = as_map(input_handle).find(key)
    if value is None:
        raise InvalidArgumentError(
            f'Trying to lookup non-existent key. Could not find key "{_key_text(key)}".'
        )
    found = element_type(value)
    if found != value_dtype:
        raise InternalError(
            f"Output 0 of type {found.tf_name} does not match declared output type "
            f"{value_dtype.tf_name} for node {{{{node {context.node.name}}}}}"
        )
    return value


def tensor_map_erase(input_handle: TensorMap, key: TensorValue) -> TensorMap:
    """TensorMapErase: return the map without `key`.

    Raises InvalidArgumentError if the map lacks `key`.
    """
    found = as_map(input_handle)
    if key not in found:
        raise InvalidArgumentError(
            f'Trying to erase non-existent item. Could not find key "{_key_text(key)}".'
        )
    return found.erased(key)


def tensor_map_has_key(input_handle: TensorMap, key: TensorValue) -> np.bool_:
    """TensorMapHasKey: return whether the map has `key`."""
    return np.bool_(key in as_map(input_handle))


def tensor_map_stack_keys(input_handle: TensorMap, *, key_dtype: DataType) -> np.ndarray:
    """TensorMapStackKeys: return all keys, stacked.

    Raises InvalidArgumentError if the map is empty, a key is not of `key_dtype`, or the keys differ
    in shape.
    """
    keys = [box(key) for key, _ in as_map(input_handle).items()]
    if not keys:
        raise InvalidArgumentError("TensorMapStackKeys cannot be called on empty map.")
    if any(element_type(unbox(key)) != key_dtype for key in keys):
        raise InvalidArgumentError("Key does not match requested dtype.")
    if any(key.shape != keys[0].shape for key in keys):
        raise InvalidArgumentError("Keys must all have the same shape.")
    check_allocation((len(keys), *keys[0].shape), key_dtype.numpy)
    return np.stack(keys)


def _key_text(key: TensorValue) -> str:
    return readable(summarize(key, element_type(key), _SHOWN_KEY_ELEMENTS))


KERNELS = (
    KernelDef("EmptyTensorMap", empty_tensor_map),
    KernelDef("TensorMapErase", tensor_map_erase),
    KernelDef("TensorMapHasKey", tensor_map_has_key),
    KernelDef("TensorMapInsert", tensor_map_insert),
    KernelDef("TensorMapLookup", tensor_map_lookup),
    KernelDef("TensorMapSize", tensor_map_size),
    KernelDef("TensorMapStackKeys", tensor_map_stack_keys),
)
