"""Kernels that handle many elements of a tensor list at once.

They gather, scatter, split and concatenate lists, and push a batch.

TF: tensorflow/core/kernels/list_kernels.h (TensorListConcat, TensorListSplit, …)
"""

from __future__ import annotations

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
from runtime.kernels.array.boxing import box
from runtime.kernels.array.tensor_lists import as_list, merged_shape, rows, stacked, zeros


def tensor_list_gather(
    handle: TensorList, indices: np.ndarray, element_shape: np.ndarray, *, element_dtype: DataType
) -> np.ndarray:
    """TensorListGather: return the elements at `indices` [n], stacked to [n, *element_shape]."""
    tensor_list = as_list(handle, element_dtype)
    every, picked = tensor_list.items(), np.ravel(indices).tolist()
    for index in picked:
        if not 0 <= index < len(every):
            raise InvalidArgumentError(
                f"Trying to gather element {index} in a list with {len(every)} elements."
            )
    items = [every[index] for index in picked]
    shape = merged_shape(tensor_list, element_shape, items)
    if not is_fully_defined(shape):
        problem = (
            "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape"
            if items
            else "Tried to gather 0-elements from a list with non-fully-defined shape"
        )
        raise InvalidArgumentError(f"{problem}: {shape_text(shape)}")
    return stacked(items, shape, element_dtype)


def _scatter(
    tensor: np.ndarray,
    indices: np.ndarray,
    element_shape: np.ndarray,
    size: int,
    element_dtype: DataType,
) -> TensorList:
    shape, positions = shape_from_tensor(element_shape), np.ravel(indices).tolist()
    if size < -1:
        raise InvalidArgumentError(f"TensorListScatter expects num_elements >= -1, found: {size}")
    _check_scatter(tensor, positions, shape)
    if size == -1:
        size = max(positions, default=-1) + 1
    for position in positions:
        if position >= size:
            raise InvalidArgumentError(
                f"TensorListScatter: Trying to scatter at index {position} in list with size {size}"
            )
    check_allocation((size,), np.int64)
    items: list[TensorValue] = [None] * size
    for position, row in zip(positions, rows(tensor), strict=True):
        items[position] = row
    return TensorList(element_dtype, shape, items)


def _check_scatter(tensor: np.ndarray, positions: list[int], shape: PartialShape) -> None:
    if not tensor.ndim:
        raise InvalidArgumentError("Tensor must be at least a vector, but saw shape: []")
    inner = tensor.shape[1:]
    if not is_compatible(shape, inner):
        raise InvalidArgumentError(
            f"Specified a list with shape {shape_text(shape)} "
            f"from a tensor with shape {shape_text(inner)}"
        )
    if any(position < 0 for position in positions):
        raise InvalidArgumentError("Indices in TensorListScatter must all be non-negative.")
    if len(positions) != len(tensor):
        raise InvalidArgumentError(
            "Invalid number of rows in input tensor. "
            f"Expected: {len(positions)} Actual: {len(tensor)}"
        )


def tensor_list_scatter(
    tensor: TensorValue, indices: np.ndarray, element_shape: np.ndarray, *, element_dtype: DataType
) -> TensorList:
    """TensorListScatter: return a list whose elements at `indices` are the rows of `tensor`."""
    return _scatter(box(tensor), indices, element_shape, -1, element_dtype)


def tensor_list_scatter_v2(
    tensor: TensorValue,
    indices: np.ndarray,
    element_shape: np.ndarray,
    num_elements: np.ndarray,
    *,
    element_dtype: DataType,
) -> TensorList:
    """TensorListScatterV2: return a list whose elements at `indices` are the rows of `tensor`.

    The list has `num_elements` elements. If `num_elements` is −1, the list is as short as `indices`
    permit.
    """
    if np.ndim(num_elements):
        raise InvalidArgumentError("num_elements must be a scalar")
    return _scatter(box(tensor), indices, element_shape, int(num_elements), element_dtype)


def tensor_list_scatter_into_existing_list(
    handle: TensorList, tensor: TensorValue, indices: np.ndarray, *, element_dtype: DataType
) -> TensorList:
    """TensorListScatterIntoExistingList: return a list with some elements replaced.

    The elements at `indices` become the rows of `tensor`; the list grows if needed.
    """
    if indices.ndim != 1:
        raise InvalidArgumentError(
            f"Expected indices to be a vector, but received shape: {shape_text(indices.shape)}"
        )
    tensor_list, positions = as_list(handle, element_dtype), indices.tolist()
    array = box(tensor)
    _check_scatter(array, positions, tensor_list.element_shape)
    items = tensor_list.items()
    missing = max(positions, default=-1) + 1 - len(items)
    if missing > 0:
        check_allocation((missing,), np.int64)
        # As in TensorFlow, the new elements are empty vectors and not uninitialised.
        items += [zeros((0,), element_dtype)] * missing
    for position, row in zip(positions, rows(array), strict=True):
        items[position] = row
    return tensor_list.with_items(items)


def tensor_list_split(
    tensor: TensorValue, element_shape: np.ndarray, lengths: np.ndarray, *, element_dtype: DataType
) -> TensorList:
    """TensorListSplit: return a list of consecutive pieces of `tensor` along dimension 0.

    Piece i has `lengths[i]` rows.
    """
    array = box(tensor)
    if not array.ndim:
        raise InvalidArgumentError(
            f"Tensor must be at least a vector, but saw shape: {shape_text(array.shape)}"
        )
    if lengths.ndim != 1:
        raise InvalidArgumentError(
            f"Expected lengths to be a vector, received shape: {shape_text(lengths.shape)}"
        )
    shape = shape_from_tensor(element_shape)
    if shape == ():
        raise InvalidArgumentError(
            "TensorListSplit requires element_shape to be at least of rank 1, but saw: []"
        )
    if shape is not None and not is_compatible((-1, *shape[1:]), array.shape):
        raise InvalidArgumentError(
            f"tensor shape {shape_text(array.shape)} is not compatible with "
            f"element_shape {shape_text(shape)}"
        )
    ends = _piece_ends(lengths.tolist(), len(array))
    pieces = [array[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return TensorList(element_dtype, shape, pieces)


def _piece_ends(lengths: list[int], total: int) -> list[int]:
    ends, end = [], 0
    for length in lengths:
        if length < 0:
            raise InvalidArgumentError(f"Invalid value in lengths: {length}")
        end += length
        if end > total:
            raise InvalidArgumentError(
                f"Attempting to slice [{end - length}, {end}] from tensor with length {total}"
            )
        ends.append(end)
    if end != total:
        raise InvalidArgumentError(
            f"Unused values in tensor. Length of tensor: {total} Values used: {end}"
        )
    return ends


def tensor_list_concat(
    handle: TensorList, *, element_dtype: DataType, element_shape: PartialShape
) -> tuple[np.ndarray, np.ndarray]:
    """TensorListConcat: concatenate the elements along dimension 0.

    Returns the result and the lengths [n] of the elements. The element shape of the list and
    dimension 0 of the attribute `element_shape` are ignored.
    """
    if element_shape == ():
        raise InvalidArgumentError("element_shape must not be empty")
    shape = element_shape and (-1, *element_shape[1:])
    return _concat(as_list(handle, element_dtype), shape, None)


def tensor_list_concat_v2(
    handle: TensorList,
    element_shape: np.ndarray,
    leading_dims: np.ndarray,
    *,
    element_dtype: DataType,
) -> tuple[np.ndarray, np.ndarray]:
    """TensorListConcatV2: concatenate the elements along dimension 0.

    Returns the result and the lengths [n] of the elements. `leading_dims[i]` is the length of
    element i if that is uninitialised.
    """
    tensor_list = as_list(handle, element_dtype)
    shape = merge(shape_from_tensor(element_shape), tensor_list.element_shape)
    if shape == ():
        raise InvalidArgumentError(
            "Concat requires elements to be at least vectors, found scalars instead."
        )
    return _concat(tensor_list, shape, leading_dims.tolist())


def _concat(
    tensor_list: TensorList, shape: PartialShape, leading_dims: list[int] | None
) -> tuple[np.ndarray, np.ndarray]:
    items, dtype = tensor_list.items(), tensor_list.element_dtype
    first, inner = _common_length_and_inner_shape(items, shape)
    parts = []
    for index, item in enumerate(items):
        if item is None:
            item = zeros((_uninitialized_length(index, first, leading_dims), *inner), dtype)
        parts.append(box(item))
    lengths = np.array([len(part) for part in parts], np.int64)
    if not parts:
        return np.empty((0, *inner), dtype.numpy), lengths
    check_allocation((int(lengths.sum()), *inner), dtype.numpy)
    return np.concatenate(parts), lengths


def _common_length_and_inner_shape(
    items: list[TensorValue], shape: PartialShape
) -> tuple[int, tuple[int, ...]]:
    """Return (length of every element, shape of an element without dimension 0).

    The length is −1 if the elements have different lengths.
    """
    first, inner = (-1, None) if shape is None else (shape[0], shape[1:])
    lengths = set()
    for index, item in enumerate(items):
        if item is None:
            continue
        array = box(item)
        if not array.ndim:
            raise InvalidArgumentError(
                f"Concat saw a scalar shape at index {index} but requires at least vectors."
            )
        inner = merge(inner, array.shape[1:])
        if first not in (-1, len(array)):
            raise InvalidArgumentError(
                "First entry of element_shape input does not match the first dim of list element "
                f"at index: {index} Expected: {first} Actual: {len(array)}"
            )
        lengths.add(len(array))
    if inner is None or not is_fully_defined(inner):
        problem = (
            "Trying to concat list with only uninitialized tensors but "
            "element_shape_except_first_dim is not fully defined"
            if items
            else "All except the first dimension must be fully defined when concating an "
            "empty tensor list. element_shape"
        )
        raise InvalidArgumentError(f"{problem}: {shape_text(inner)}")
    return lengths.pop() if len(lengths) == 1 else first, inner


def _uninitialized_length(index: int, first: int, leading_dims: list[int] | None) -> int:
    """Return the length that an uninitialised element at `index` has in a concatenation."""
    if leading_dims is None:
        raise InvalidArgumentError(
            "Concating lists with uninitialized tensors is not supported in this version of "
            "TensorListConcat. Consider updating your GraphDef to run the newer version."
        )
    if not leading_dims and first != -1:
        return first
    if index >= len(leading_dims):
        raise InvalidArgumentError(
            f"List contains uninitialized tensor at index {index} "
            f"but leading_dims has only {len(leading_dims)} elements."
        )
    return leading_dims[index]


def tensor_list_concat_lists(
    input_a: TensorValue, input_b: TensorValue, *, element_dtype: DataType
) -> TensorValue:
    """TensorListConcatLists: append each list in `input_b` to its counterpart in `input_a`."""
    first, second = box(input_a), box(input_b)
    if first.shape != second.shape:
        raise InvalidArgumentError(
            "input_a and input_b must have the same shape, but saw shapes "
            f"{shape_text(first.shape)} and {shape_text(second.shape)}"
        )
    joined = np.empty(first.size, object)
    pairs = zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
    for index, (one, other) in enumerate(pairs):
        joined[index] = _concatenated(index, as_list(one), as_list(other), element_dtype)
    result = joined.reshape(first.shape)
    return result if result.ndim else result.item()


def _concatenated(index: int, one: TensorList, other: TensorList, dtype: DataType) -> TensorList:
    if one.element_dtype != dtype or other.element_dtype != dtype:
        raise InvalidArgumentError(
            f"input_a[{index}].dtype != element_dtype.  Saw: {one.element_dtype.tf_name} "
            f"and {other.element_dtype.tf_name} vs. {dtype.tf_name}"
        )
    if one.element_shape != other.element_shape:
        raise InvalidArgumentError(
            "input_a and input_b TensorList element shapes are not identical at index "
            f"{index}.  Saw {shape_text(one.element_shape)} vs. {shape_text(other.element_shape)}"
        )
    return one.with_items([*one.items(), *other.items()])


def tensor_list_push_back_batch(
    handles: TensorValue, tensor: TensorValue, *, element_dtype: DataType
) -> TensorValue:
    """TensorListPushBackBatch: append row i of `tensor` to list i of `handles`."""
    lists, array = box(handles), box(tensor)
    if array.ndim < 1:
        raise InvalidArgumentError("Expected tensor to be at least a vector, but saw shape: []")
    batch = array.shape[0]
    if lists.size != batch:
        raise InvalidArgumentError(
            f"Expected tensor.shape[0] == input_handles.size, but saw {batch} vs. {lists.size}"
        )
    result = np.empty(batch, object)
    items = rows(array)
    for index, each in enumerate(lists.ravel().tolist()):
        tensor_list = as_list(each, element_dtype)
        if not is_compatible(tensor_list.element_shape, array.shape[1:]):
            raise InvalidArgumentError(
                "Tried to append a tensor with incompatible shape to a list at index "
                f"{index}. Op element shape: {shape_text(array.shape[1:])} "
                f"list shape: {shape_text(tensor_list.element_shape)}"
            )
        result[index] = tensor_list.pushed(items[index])
    shaped = result.reshape(lists.shape)
    return shaped if shaped.ndim else shaped.item()


KERNELS = (
    KernelDef("TensorListConcat", tensor_list_concat),
    KernelDef("TensorListConcatLists", tensor_list_concat_lists),
    KernelDef("TensorListConcatV2", tensor_list_concat_v2),
    KernelDef("TensorListGather", tensor_list_gather),
    KernelDef("TensorListPushBackBatch", tensor_list_push_back_batch),
    KernelDef("TensorListScatter", tensor_list_scatter),
    KernelDef("TensorListScatterIntoExistingList", tensor_list_scatter_into_existing_list),
    KernelDef("TensorListScatterV2", tensor_list_scatter_v2),
    KernelDef("TensorListSplit", tensor_list_split),
)
