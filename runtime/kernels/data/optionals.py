"""Optionals, and ZerosLike and AddN of variants.

TF: tensorflow/core/kernels/optional_ops.cc, variant_op_registry.h
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.data.optional import Optional
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_kernel import KernelDef
from runtime.framework.partial_shapes import PartialShape, is_compatible, is_fully_defined, merge
from runtime.framework.ragged_tensor_variant import RaggedTensorVariant
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.tensor_list import TensorList
from runtime.framework.resources.tensor_map import TensorMap
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox
from runtime.kernels.array.tensor_lists import zeros


def _as_optional(value: TensorValue, op: str) -> Optional:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Optional):
        raise InvalidArgumentError(f"Input to {op} must be an OptionalVariant object.")
    return value


def optional_from_value(*components: TensorValue) -> Optional:
    """OptionalFromValue: return an optional whose value is `components`."""
    return Optional(components)


def optional_none() -> Optional:
    """OptionalNone: return an optional that has no value."""
    return Optional()


def optional_has_value(optional: Optional) -> np.bool_:
    """OptionalHasValue: return whether `optional` has a value."""
    return np.bool_(_as_optional(optional, "OptionalHasValue").components is not None)


def optional_get_value(
    optional: Optional,
    *,
    output_types: tuple[DataType, ...],
    output_shapes: tuple[PartialShape, ...],
) -> tuple[TensorValue, ...]:
    """OptionalGetValue: return the components of the value of `optional`.

    Raises InvalidArgumentError if `optional` has no value, or if the number of components, a type
    or a shape is not as declared.
    """
    components = _as_optional(optional, "OptionalGetValue").components
    if components is None:
        raise InvalidArgumentError("The given optional does not have a value.")
    if len(components) != len(output_types):
        raise InvalidArgumentError(
            f"The given optional has {len(components)} components, expected {len(output_types)}"
        )
    for index, (value, wanted) in enumerate(zip(components, output_types, strict=True)):
        actual = element_type(value)
        if actual != wanted:
            raise InvalidArgumentError(
                "The given optional does not match the expected type for component "
                f"{index}. Expected: {wanted.tf_name}. Actual: {actual.tf_name}."
            )
        shape = box(value).shape
        if not is_compatible(output_shapes[index], shape):
            raise InvalidArgumentError(
                "The given optional does not match the expected shape for component "
                f"{index}. Expected: {shape_text(output_shapes[index])}. "
                f"Actual: {shape_text(shape)}."
            )
    return components


def element_type(value: TensorValue) -> DataType:
    """Return the element type of a value, determined from the value alone."""
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return from_numpy(value.dtype)
    array = box(value)
    first = array.item(0) if array.size else b""
    if isinstance(first, bytes):
        return DataType.STRING
    return DataType.RESOURCE if isinstance(first, ResourceHandle) else DataType.VARIANT


def _map_variants(function: Callable[..., TensorValue], *inputs: TensorValue) -> TensorValue:
    arrays = [box(each) for each in inputs]
    result = np.empty(arrays[0].size, object)
    for index, values in enumerate(zip(*(a.ravel().tolist() for a in arrays), strict=True)):
        check_task()
        result[index] = function(*values)
    return unbox(result.reshape(arrays[0].shape))


def _zeros_like(value: TensorValue) -> TensorValue:
    if isinstance(value, TensorList):
        return value.with_items([_zero_item(value, item) for item in value.items()])
    if isinstance(value, Optional):
        parts = value.components
        return Optional(None if parts is None else tuple(_zeros_like(part) for part in parts))
    if isinstance(value, TensorMap):
        return TensorMap()
    if isinstance(value, RaggedTensorVariant):
        return value.zeros_like()
    if isinstance(value, np.ndarray | np.generic):
        return zeros(value.shape, element_type(value))
    raise InvalidArgumentError(f"No zeros of a variant of {type(value).__name__}")


def _zero_item(tensor_list: TensorList, item: TensorValue) -> TensorValue:
    if tensor_list.element_dtype == DataType.VARIANT:
        return None if item is None else _map_variants(_zeros_like, item)
    shape = tensor_list.element_shape if item is None else box(item).shape
    return zeros(shape, tensor_list.element_dtype) if is_fully_defined(shape) else None


def _add(one: TensorValue, other: TensorValue) -> TensorValue:
    if isinstance(one, TensorList) and isinstance(other, TensorList):
        return _add_lists(one, other)
    if isinstance(one, Optional) and isinstance(other, Optional):
        first, second = one.components, other.components
        if first is None or second is None:
            if first is not second:
                raise InvalidArgumentError("Cannot add optionals of which only one has a value")
            return one
        return Optional(tuple(_add(a, b) for a, b in zip(first, second, strict=True)))
    if isinstance(one, TensorMap) and isinstance(other, TensorMap):
        return _add_maps(one, other)
    if isinstance(one, RaggedTensorVariant) and isinstance(other, RaggedTensorVariant):
        return one.plus(other)
    if isinstance(one, np.ndarray | np.generic | bytes):
        return _add_tensors(one, other)
    raise InvalidArgumentError(f"Variants of {type(one).__name__} cannot be added")


def _add_tensors(one: TensorValue, other: TensorValue) -> TensorValue:
    first, second = box(one), box(other)
    if first.shape != second.shape:
        raise InvalidArgumentError(
            "Trying to add two tensors with incompatible element shapes. "
            f"One is {shape_text(first.shape)} and the other is {shape_text(second.shape)}"
        )
    if first.dtype.kind in "bO":
        number = DataType.BOOL if first.dtype.kind == "b" else DataType.STRING
        raise InvalidArgumentError(f"Trying to add unsupported dtype {number.value}")
    return np.add(first, second)


def _add_lists(one: TensorList, other: TensorList) -> TensorList:
    if one.element_dtype != other.element_dtype:
        raise InvalidArgumentError(
            "Trying to add two lists of tensors of different dtypes. "
            f"One is {one.element_dtype.tf_name} and the other is {other.element_dtype.tf_name}"
        )
    if len(one) != len(other):
        raise InvalidArgumentError(
            "Trying to add two lists of tensors with different lengths. "
            f"One is {len(one)} and the other is {len(other)}"
        )
    if not is_compatible(one.element_shape, other.element_shape):
        raise InvalidArgumentError(
            "Trying to add two lists of tensors with incompatible element shapes. "
            f"One is {shape_text(one.element_shape)} and the other is "
            f"{shape_text(other.element_shape)}"
        )
    items: list[TensorValue] = []
    for a, b in zip(one.items(), other.items(), strict=True):
        if a is None or b is None:
            items.append(b if a is None else a)
            continue
        items.append(_add(a, b))
    shape = merge(one.element_shape, other.element_shape)
    return TensorList(one.element_dtype, shape, items, one.max_num_elements)


def _add_maps(one: TensorMap, other: TensorMap) -> TensorMap:
    for key, value in other.items():
        known = one.find(key)
        one = one.inserted(key, value if known is None else _add(known, value))
    return one


def zeros_like_variant(x: TensorValue) -> TensorValue:
    """ZerosLike: return lists, optionals and ragged tensors of zeros in the same shapes.

    A map becomes an empty map.
    """
    return _map_variants(_zeros_like, x)


def add_n_variants(*inputs: TensorValue) -> TensorValue:
    """AddN: return the sums of lists, maps, optionals and ragged tensors, item by item."""
    total = inputs[0]
    for each in inputs[1:]:
        total = _map_variants(_add, total, each)
    return total


_VARIANT = {"T": (DataType.VARIANT,)}
KERNELS = (
    KernelDef("AddN", add_n_variants, _VARIANT),
    KernelDef("OptionalFromValue", optional_from_value),
    KernelDef("OptionalGetValue", optional_get_value),
    KernelDef("OptionalHasValue", optional_has_value),
    KernelDef("OptionalNone", optional_none),
    KernelDef("ZerosLike", zeros_like_variant, _VARIANT),
)
