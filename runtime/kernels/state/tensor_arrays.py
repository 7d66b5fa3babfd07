"""Kernels of TensorArrays: arrays of tensors that live for one step.

The flow is a float scalar whose only purpose is to order the operations on an array. Versions 2 and
3 of the ops declare handles of different types; here both are ResourceHandles.

TF: tensorflow/core/kernels/tensor_array_ops.cc
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape, is_compatible, is_fully_defined
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resources.tensor_array import TensorArray
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.array.tensor_lists import rows, stacked
from runtime.kernels.state.resource_variables import as_handle

_numbers = itertools.count()
_FLOW = np.float32(0)


def _array_of(handle: ResourceHandle) -> TensorArray:
    if isinstance(handle, np.ndarray) and handle.size == 2 and isinstance(handle.item(0), bytes):
        name = b"".join(handle.ravel()).decode("utf-8", "replace")
        raise NotFoundError(  # no TensorArrayV2 op has returned these two strings
            f"Container __per_step does not exist. (Could not find resource: __per_step/{name})"
        )
    found = as_handle(handle).resource
    if not isinstance(found, TensorArray):
        raise InvalidArgumentError("Expected the handle of a TensorArray")
    return found


def _handle(context: OpKernelContext, array: TensorArray) -> ResourceHandle:
    container = f"__per_step_{context.step.step_id}"
    context.step.resources.put(container, array.name, array)
    return ResourceHandle(container, array.name, TensorArray.type_name, resource=array)


def _make(
    context: OpKernelContext, size: np.ndarray, dtype: DataType, **options: Any
) -> ResourceHandle:
    if np.ndim(size):
        raise InvalidArgumentError(
            f"TensorArray size must be scalar, but had shape: {shape_text(size.shape)}"
        )
    count = int(size)
    if count < 0:
        raise InvalidArgumentError("Size should be >= 0.")
    check_allocation((count,), np.int64)
    name = f"{context.attr('tensor_array_name') or context.node.name}_{next(_numbers)}"
    return _handle(context, TensorArray(name, dtype, count, **options))


def tensor_array(
    context: OpKernelContext,
    size: np.ndarray,
    *,
    dtype: DataType,
    element_shape: PartialShape,
    dynamic_size: bool,
    clear_after_read: bool,
    identical_element_shapes: bool,
) -> tuple[ResourceHandle, np.float32]:
    """TensorArrayV3: create an array of `size` elements and return its handle and flow."""
    handle = _make(
        context,
        size,
        dtype,
        element_shape=element_shape,
        dynamic_size=dynamic_size,
        clear_after_read=clear_after_read,
        identical_element_shapes=identical_element_shapes,
    )
    return handle, _FLOW


def tensor_array_v2(
    context: OpKernelContext,
    size: np.ndarray,
    *,
    dtype: DataType,
    element_shape: PartialShape,
    dynamic_size: bool,
    clear_after_read: bool,
) -> ResourceHandle:
    """TensorArrayV2: create an array of `size` elements and return its handle."""
    return _make(
        context,
        size,
        dtype,
        element_shape=element_shape,
        dynamic_size=dynamic_size,
        clear_after_read=clear_after_read,
    )


def tensor_array_grad(
    context: OpKernelContext, handle: ResourceHandle, flow_in: np.ndarray, *, source: str
) -> tuple[ResourceHandle, np.float32]:
    """TensorArrayGradV3: return the handle and flow of the array that accumulates gradients.

    Its elements are the gradients with respect to the elements of the array of `handle`.
    """
    return _handle(context, _array_of(handle).gradient(source)), _FLOW


def tensor_array_grad_v2(
    context: OpKernelContext, handle: ResourceHandle, flow_in: np.ndarray, *, source: str
) -> ResourceHandle:
    """TensorArrayGradV2: return the handle of the array that accumulates gradients.

    Its elements are the gradients with respect to the elements of the array of `handle`.
    """
    return _handle(context, _array_of(handle).gradient(source))


def tensor_array_grad_with_shape(
    context: OpKernelContext,
    handle: ResourceHandle,
    flow_in: np.ndarray,
    shape_to_prepend: np.ndarray,
    *,
    source: str,
) -> tuple[ResourceHandle, np.float32]:
    """TensorArrayGradWithShape: return the handle and flow of the array that accumulates gradients.

    The shape of each of its elements is `shape_to_prepend`, then the shape of the element of which
    it is the gradient.
    """
    if np.ndim(shape_to_prepend) != 1:
        raise InvalidArgumentError(
            "shape must be a vector of {int32,int64}, got shape "
            f"{shape_text(np.shape(shape_to_prepend))}"
        )
    prefix = tuple(np.ravel(shape_to_prepend).tolist())
    return _handle(context, _array_of(handle).gradient(source, prefix)), _FLOW


def tensor_array_write(
    handle: ResourceHandle,
    index: np.ndarray,
    value: TensorValue,
    flow_in: np.ndarray,
    *,
    T: DataType,  # noqa: N803 # the attribute's name
) -> np.ndarray:
    """TensorArrayWrite: write `value` as the element at `index` and return the flow."""
    array = _array_of(handle)
    if np.ndim(index):
        raise InvalidArgumentError(
            f"TensorArray index must be scalar, but had shape: {shape_text(index.shape)}"
        )
    array.check_dtype(T, "Op is trying to write dtype")
    array.write(int(index), value)
    return flow_in


def tensor_array_read(
    handle: ResourceHandle, index: np.ndarray, flow_in: np.ndarray, *, dtype: DataType
) -> TensorValue:
    """TensorArrayRead: return the element at `index`."""
    array = _array_of(handle)
    if np.ndim(index):
        raise InvalidArgumentError(
            f"TensorArray index must be scalar, but had shape: {shape_text(index.shape)}"
        )
    array.check_dtype(dtype, "Op requested dtype")
    return array.read(int(index))


def tensor_array_gather(
    handle: ResourceHandle,
    indices: np.ndarray,
    flow_in: np.ndarray,
    *,
    dtype: DataType,
    element_shape: PartialShape,
) -> np.ndarray:
    """TensorArrayGather: return the elements at `indices` [n], stacked to [n, *element shape]."""
    array = _array_of(handle)
    array.check_dtype(dtype, "Op requested dtype")
    array.narrow(element_shape)
    if np.ndim(indices) != 1:
        raise InvalidArgumentError(
            f"Expected indices to be a vector, but received shape: {shape_text(np.shape(indices))}"
        )
    items = array.read_many(indices.tolist())
    if not items:
        return np.empty((0, *_shape_of_empty(element_shape)), dtype.numpy)
    first = box(items[0]).shape
    if not is_compatible(element_shape, first):
        raise InvalidArgumentError(
            f"TensorArray was passed element_shape {shape_text(element_shape)} which does not "
            f"match the Tensor at index 0: {shape_text(first)}"
        )
    if 0 in first:  # TensorFlow does not check the shapes of the other elements
        return np.empty((len(items), *first), dtype.numpy)
    for index, item in enumerate(items):
        shape = box(item).shape
        if shape != first:
            raise InvalidArgumentError(
                "TensorArray has inconsistent shapes.  Index 0 has shape: "
                f"{shape_text(first)} but index {index} has shape: {shape_text(shape)}"
            )
    return stacked(items, first, dtype)


def _shape_of_empty(shape: PartialShape) -> tuple[int, ...]:
    if not is_fully_defined(shape):
        raise UnimplementedError(
            "TensorArray has size zero, but element shape "
            f"{shape_text(shape)} is not fully defined. Currently only static shapes are "
            "supported when packing zero-size TensorArrays."
        )
    return shape


def tensor_array_concat(
    handle: ResourceHandle,
    flow_in: np.ndarray,
    *,
    dtype: DataType,
    element_shape_except0: PartialShape,
) -> tuple[np.ndarray, np.ndarray]:
    """TensorArrayConcat: concatenate all elements along dimension 0.

    Also return their lengths [n].
    """
    array = _array_of(handle)
    array.check_dtype(dtype, "Op requested dtype")
    arrays = [box(item) for item in array.read_joined()]
    if not arrays:
        if not is_fully_defined(element_shape_except0):
            raise UnimplementedError(
                "TensorArray has size zero, but element_shape_except0 "
                f"{shape_text(element_shape_except0)} is not fully defined. Currently only "
                "static shapes are supported when concatenating zero-size TensorArrays."
            )
        return np.empty((0, *element_shape_except0), dtype.numpy), np.empty(0, np.int64)
    for index, item in enumerate(arrays):
        if not item.ndim:
            raise InvalidArgumentError(
                f"Concat saw a scalar shape at index {index} but requires at least vectors.  "
                "Did you mean to call pack?"
            )
        first = arrays[0].shape[1:]
        if not is_compatible(element_shape_except0, first):
            raise InvalidArgumentError(
                "TensorArray was passed element_shape_except0 "
                f"{shape_text(element_shape_except0)} but index 0 has (excepting dimension 0) "
                f"shape: {shape_text(first)} which does not match."
            )
        if item.shape[1:] != first:
            raise InvalidArgumentError(
                "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: "
                f"{shape_text(first)} but index {index} has (excepting dimension "
                f"0) shape: {shape_text(item.shape[1:])}"
            )
    return np.concatenate(arrays), np.array([len(item) for item in arrays], np.int64)


def tensor_array_scatter(
    handle: ResourceHandle,
    indices: np.ndarray,
    value: TensorValue,
    flow_in: np.ndarray,
    *,
    T: DataType,  # noqa: N803 # the attribute's name
) -> np.ndarray:
    """TensorArrayScatter: write the rows of `value` at `indices` and return the flow."""
    array, tensor = _array_of(handle), box(value)
    array.check_dtype(T, "Op is trying to write dtype")
    if np.ndim(indices) != 1:
        raise InvalidArgumentError(
            f"Expected indices to be a vector, but received shape: {shape_text(np.shape(indices))}"
        )
    if tensor.ndim < 1:
        raise InvalidArgumentError(
            "Expected value to be at least a vector, but received shape: "
            f"{shape_text(tensor.shape)}"
        )
    if len(indices) != len(tensor):
        raise InvalidArgumentError(
            f"Expected len(indices) == values.shape[0], but saw: {len(indices)} vs. {len(tensor)}"
        )
    largest = max(indices.tolist(), default=-1)
    if largest >= len(array) and not array.is_resizable:
        raise InvalidArgumentError(
            f"Max scatter index must be < array size ({largest} vs. {len(array)})"
        )
    array.write_parts(list(zip(indices.tolist(), rows(tensor), strict=True)))
    return flow_in


def tensor_array_split(
    handle: ResourceHandle,
    value: TensorValue,
    lengths: np.ndarray,
    flow_in: np.ndarray,
    *,
    T: DataType,  # noqa: N803 # the attribute's name
) -> np.ndarray:
    """TensorArraySplit: write consecutive pieces of `value`, one per element, and return the flow.

    `lengths` are the sizes of the pieces along dimension 0.
    """
    array, tensor = _array_of(handle), box(value)
    array.check_dtype(T, "Op is trying to write dtype")
    if np.ndim(lengths) != 1:
        raise InvalidArgumentError(
            f"Expected lengths to be a vector, received shape: {shape_text(np.shape(lengths))}"
        )
    if tensor.ndim < 1:
        raise InvalidArgumentError(
            "Expected value to be at least a vector, but received shape: "
            f"{shape_text(tensor.shape)}"
        )
    sizes = lengths.tolist()
    if sum(sizes) != len(tensor):
        raise InvalidArgumentError(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
            f"{sum(sizes)} and value's shape is: {shape_text(tensor.shape)}"
        )
    if len(sizes) != len(array) and not (array.is_resizable and len(sizes) > len(array)):
        raise InvalidArgumentError(
            f"TensorArray's size is not equal to the size of lengths ({len(array)} vs. "
            f"{len(sizes)}), and the TensorArray is not marked as dynamically resizeable"
        )
    parts = []
    start = 0
    for index, size in enumerate(sizes):
        if size < 0:
            raise InvalidArgumentError(f"Invalid length {size} at index {index}")
        parts.append((index, tensor[start : start + size]))
        start += size
    array.write_parts(parts)
    return flow_in


def tensor_array_size(handle: ResourceHandle, flow_in: np.ndarray) -> np.int32:
    """TensorArraySize: return the number of elements."""
    return np.int32(len(_array_of(handle)))


def tensor_array_close(handle: ResourceHandle) -> None:
    """TensorArrayClose: release the memory of the elements; later operations on the array fail."""
    _array_of(handle).close()


_OPERATIONS: dict[str, Kernel] = {
    "Close": tensor_array_close,
    "Concat": tensor_array_concat,
    "Gather": tensor_array_gather,
    "Read": tensor_array_read,
    "Scatter": tensor_array_scatter,
    "Size": tensor_array_size,
    "Split": tensor_array_split,
    "Write": tensor_array_write,
}
KERNELS = (
    KernelDef("TensorArrayGradV2", tensor_array_grad_v2),
    KernelDef("TensorArrayGradV3", tensor_array_grad),
    KernelDef("TensorArrayGradWithShape", tensor_array_grad_with_shape),
    KernelDef("TensorArrayV2", tensor_array_v2),
    KernelDef("TensorArrayV3", tensor_array),
    *(KernelDef(f"TensorArray{op}V2", run) for op, run in _OPERATIONS.items()),
    *(KernelDef(f"TensorArray{op}V3", run) for op, run in _OPERATIONS.items()),
)
