"""Kernels that make tensor lists, or read and change one or all of their elements.

TF: tensorflow/core/kernels/list_kernels.h, list_kernels.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.partial_shapes import (
    PartialShape,
    is_compatible,
    is_fully_defined,
    merge,
    shape_from_tensor,
)
from runtime.framework.resources.tensor_list import TensorList
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox


def as_list(value: TensorValue, element_dtype: DataType | None = None) -> TensorList:
    """Return the list that a variant holds.

    Raises InvalidArgumentError if `value` is no list, or if its dtype is not `element_dtype`.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, TensorList):
        raise InvalidArgumentError(f"Input handle is not a list. Saw: '{type(value).__name__}'")
    if element_dtype is not None and value.element_dtype != element_dtype:
        raise InvalidArgumentError(
            f"Invalid data types; op elements {element_dtype.tf_name} "
            f"but list elements {value.element_dtype.tf_name}"
        )
    return value


def zeros(shape: tuple[int, ...], dtype: DataType) -> np.ndarray:
    """Return the value of an uninitialised element: zeros, or empty strings."""
    check_allocation(shape, dtype.numpy)
    return np.full(shape, b"", object) if dtype == DataType.STRING else np.zeros(shape, dtype.numpy)


def rows(tensor: TensorValue) -> list[TensorValue]:
    """Return the slices of `tensor` along dimension 0, as views."""
    array = box(tensor)
    return [unbox(array[index, ...]) for index in range(len(array))]


def stacked(items: Sequence[TensorValue], shape: tuple[int, ...], dtype: DataType) -> np.ndarray:
    """Return the `items` stacked to `[len(items), *shape]`; an uninitialised item gives zeros.

    All initialised items must be of `shape`.
    """
    check_allocation((len(items), *shape), dtype.numpy)
    result = np.empty((len(items), *shape), dtype.numpy)
    blank = b"" if dtype == DataType.STRING else 0
    for index, item in enumerate(items):
        # Without the ellipsis numpy would store an array of rank 0 instead of the string in it.
        result[index, ...] = blank if item is None else box(item)
    return result


def merged_shape(
    tensor_list: TensorList, element_shape: np.ndarray, items: Sequence[TensorValue]
) -> PartialShape:
    """Return what is known of the element shape from `element_shape`, the list and `items`."""
    shape = merge(shape_from_tensor(element_shape), tensor_list.element_shape)
    for item in items:
        if item is not None:
            shape = merge(shape, box(item).shape)
    return shape


def tensor_list_reserve(
    element_shape: np.ndarray, num_elements: np.ndarray, *, element_dtype: DataType
) -> TensorList:
    """TensorListReserve: return a list of `num_elements` uninitialised elements."""
    if np.ndim(num_elements):
        raise InvalidArgumentError(
            "The num_elements to reserve must be a tensor size 1, "
            f"but got {shape_text(np.shape(num_elements))}"
        )
    count = int(num_elements)
    if count < 0:
        raise InvalidArgumentError(
            f"The num_elements to reserve must be a non negative number, but got {count}"
        )
    check_allocation((count,), np.int64)  # one pointer per element
    return TensorList(element_dtype, shape_from_tensor(element_shape), [None] * count)


def empty_tensor_list(
    element_shape: np.ndarray, max_num_elements: np.ndarray, *, element_dtype: DataType
) -> TensorList:
    """EmptyTensorList: return a list without elements."""
    if np.ndim(max_num_elements):
        raise InvalidArgumentError(
            "max_num_elements expected to be a scalar "
            f"but got shape: {shape_text(np.shape(max_num_elements))}"
        )
    shape = shape_from_tensor(element_shape)
    return TensorList(element_dtype, shape, (), int(max_num_elements))


def tensor_list_from_tensor(
    tensor: TensorValue, element_shape: np.ndarray, *, element_dtype: DataType
) -> TensorList:
    """TensorListFromTensor: return a list of the rows of `tensor`."""
    array = box(tensor)
    if not array.ndim:
        raise InvalidArgumentError("Tensor must be at least a vector, but saw shape: []")
    shape, inner = shape_from_tensor(element_shape), array.shape[1:]
    if not is_compatible(shape, inner):
        raise InvalidArgumentError(
            f"Specified a list with shape {shape_text(shape)} "
            f"from a tensor with shape {shape_text(inner)}"
        )
    return TensorList(element_dtype, shape, rows(array))


def tensor_list_get_item(
    handle: TensorList, index: np.ndarray, element_shape: np.ndarray, *, element_dtype: DataType
) -> TensorValue:
    """TensorListGetItem: return the element at `index`, or zeros if it is uninitialised."""
    tensor_list, position = as_list(handle, element_dtype), int(np.asarray(index).item())
    if not 0 <= position < len(tensor_list):
        raise InvalidArgumentError(
            f"Trying to access element {position} in a list with {len(tensor_list)} elements."
        )
    item = tensor_list.item(position)
    if item is not None:
        return item
    shape = merged_shape(tensor_list, element_shape, [])
    if not is_fully_defined(shape):  # the other elements may define the missing sizes
        shape = merged_shape(tensor_list, element_shape, tensor_list.items())
    if not is_fully_defined(shape):
        raise InvalidArgumentError(
            "Trying to read an uninitialized tensor but element_shape is not fully defined: "
            f"{shape_text(shape)} and no list element is set."
        )
    return zeros(shape, element_dtype)


def tensor_list_set_item(
    handle: TensorList,
    index: np.ndarray,
    item: TensorValue,
    *,
    element_dtype: DataType,
    resize_if_index_out_of_bounds: bool,
) -> TensorList:
    """TensorListSetItem: return the list with the element at `index` replaced by `item`."""
    if np.ndim(index):
        raise InvalidArgumentError(
            f"Expected argument 1 to be a scalar, got shape {shape_text(np.shape(index))}"
        )
    tensor_list, position = as_list(handle, element_dtype), int(index)
    if resize_if_index_out_of_bounds and position >= len(tensor_list):
        check_allocation((position + 1,), np.int64)
        missing = position + 1 - len(tensor_list)
        tensor_list = tensor_list.with_items([*tensor_list.items(), *[None] * missing])
    if not 0 <= position < len(tensor_list):
        raise InvalidArgumentError(
            f"Trying to modify element {position} in a list with {len(tensor_list)} elements."
        )
    _check_item(tensor_list, item, "set")
    return tensor_list.with_item(position, item)


def _check_item(tensor_list: TensorList, item: TensorValue, verb: str) -> None:
    shape = box(item).shape
    if not is_compatible(tensor_list.element_shape, shape):
        words = {
            "set": "Tried to set a tensor with incompatible shape at a list index. Item",
            "append": "Tried to append a tensor with incompatible shape to a list. Op",
        }[verb]
        raise InvalidArgumentError(
            f"{words} element shape: {shape_text(shape)} "
            f"list shape: {shape_text(tensor_list.element_shape)}"
        )


def tensor_list_push_back(
    handle: TensorList, tensor: TensorValue, *, element_dtype: DataType
) -> TensorList:
    """TensorListPushBack: return the list with `tensor` appended."""
    tensor_list = as_list(handle, element_dtype)
    _check_item(tensor_list, tensor, "append")
    limit = tensor_list.max_num_elements
    if 0 <= limit <= len(tensor_list):  # a negative number means no limit
        raise InvalidArgumentError(
            "Tried to push item into a full list "
            f"list size: {len(tensor_list)} max_num_elements: {limit}"
        )
    return tensor_list.pushed(tensor)


def tensor_list_pop_back(
    handle: TensorList, element_shape: np.ndarray, *, element_dtype: DataType
) -> tuple[TensorList, TensorValue]:
    """TensorListPopBack: return the list without its last element, and that element."""
    tensor_list = as_list(handle, element_dtype)
    if not len(tensor_list):
        raise InvalidArgumentError("Trying to pop from an empty list.")
    shorter, item = tensor_list.popped()
    if item is None:
        shape = merged_shape(tensor_list, element_shape, shorter.items())
        if not is_fully_defined(shape):
            raise InvalidArgumentError(
                "Trying to read an uninitialized tensor but element_shape is not fully "
                f"defined: {shape_text(shape)}"
            )
        item = zeros(shape, element_dtype)
    return shorter, item


def tensor_list_stack(
    handle: TensorList, element_shape: np.ndarray, *, element_dtype: DataType, num_elements: int
) -> np.ndarray:
    """TensorListStack: return all elements, stacked to `[length, *element_shape]`."""
    tensor_list = as_list(handle, element_dtype)
    items = tensor_list.items()
    if num_elements not in (-1, len(items)):
        raise InvalidArgumentError(
            f"Operation expected a list with {num_elements} elements "
            f"but got a list with {len(items)} elements."
        )
    shape = merged_shape(tensor_list, element_shape, items)
    if not is_fully_defined(shape):
        problem = (
            "Tried to stack list which only contains uninitialized tensors and has a "
            "non-fully-defined element_shape"
            if items
            else "Tried to stack elements of an empty list with non-fully-defined element_shape"
        )
        raise InvalidArgumentError(f"{problem}: {shape_text(shape)}")
    return stacked(items, shape, element_dtype)


def tensor_list_length(handle: TensorList) -> np.int32:
    """TensorListLength: return the number of elements."""
    return np.int32(len(as_list(handle)))


def tensor_list_resize(handle: TensorList, size: np.ndarray) -> TensorList:
    """TensorListResize: return the first `size` elements as a list.

    If the list is shorter, uninitialised elements are appended.
    """
    if np.ndim(size):
        raise InvalidArgumentError("size must be a scalar")
    tensor_list, wanted = as_list(handle), int(size)
    if wanted < 0:
        raise InvalidArgumentError(
            f"TensorListSlice expects size to be non-negative. Got: {wanted}"
        )
    check_allocation((wanted,), np.int64)
    items = tensor_list.items()[:wanted]
    return tensor_list.with_items([*items, *[None] * (wanted - len(items))])


def tensor_list_element_shape(handle: TensorList, *, shape_type: DataType) -> np.ndarray:
    """TensorListElementShape: return the shape of an element.

    An unknown size is −1; the result is a scalar −1 if the rank is unknown.
    """
    shape = as_list(handle).element_shape
    return np.array(-1 if shape is None else shape, shape_type.numpy)


KERNELS = (
    KernelDef("EmptyTensorList", empty_tensor_list),
    KernelDef("TensorListElementShape", tensor_list_element_shape),
    KernelDef("TensorListFromTensor", tensor_list_from_tensor),
    KernelDef("TensorListGetItem", tensor_list_get_item),
    KernelDef("TensorListLength", tensor_list_length),
    KernelDef("TensorListPopBack", tensor_list_pop_back),
    KernelDef("TensorListPushBack", tensor_list_push_back),
    KernelDef("TensorListReserve", tensor_list_reserve),
    KernelDef("TensorListResize", tensor_list_resize),
    KernelDef("TensorListSetItem", tensor_list_set_item),
    KernelDef("TensorListStack", tensor_list_stack),
)
