"""What the kernels of tensor lists and maps allocate.

A list is copied where its length changes: a pointer and half of one for each element. An element is
an array of its own, or a view of one.
"""

from __future__ import annotations

import numpy as np

from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.resources.tensor_map import TensorMap
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import (
    POINTER,
    STRING,
    VIEW,
    dense,
    elements,
    largest_in,
    listed_items,
    number,
    numbers_in,
    shape_of,
    size_of,
    total_in,
)

V = TensorValue


def _reserve(element_shape: V, num_elements: V) -> int:
    return 2 * POINTER * number(num_elements)


def _resize(handle: V, size: V) -> int:
    return 4 * POINTER * max(number(size), listed_items(handle)[0])


def _set_item(handle: V, index: V, item: V) -> int:
    return 4 * POINTER * max(number(index) + 1, listed_items(handle)[0])


def _rows(tensor: V, *others: V) -> int:
    return (shape_of(tensor) or (0,))[0] * (VIEW + 4 * POINTER)


def _push_back_batch(handles: V, tensor: V) -> int:
    return 3 * _rows(tensor) + elements(tensor) * POINTER


def _scattered_list(tensor: V, indices: V, element_shape: V, num_elements: V = None) -> int:
    size = -1 if num_elements is None else number(num_elements)
    return _rows(tensor) + 4 * POINTER * max(size, largest_in(indices) + 1)


def _into_existing(handle: V, tensor: V, indices: V) -> int:
    longest = max(listed_items(handle)[0], largest_in(indices) + 1)
    return _rows(tensor) + 4 * POINTER * longest


def _split_list(tensor: V, element_shape: V, lengths: V) -> int:
    return elements(lengths) * (VIEW + 6 * POINTER)


def _known(shape: PartialShape, wanted: V) -> tuple[int, ...]:
    """Return a list's element shape, with sizes that only the op's own shape knows."""
    asked = numbers_in(wanted)
    if not shape:
        return tuple(asked)
    if len(asked) != len(shape):
        return tuple(shape)
    return tuple(two if one < 0 else one for one, two in zip(shape, asked, strict=True))


def _stack(handle: V, element_shape: V) -> int:
    count, shape, width = listed_items(handle)
    return count * (dense(_known(shape, element_shape), width) + 4 * POINTER)


def _gather_list(handle: V, indices: V, element_shape: V) -> int:
    count, shape, width = listed_items(handle)
    item = dense(_known(shape, element_shape), width)
    return elements(indices) * (item + 4 * POINTER) + 4 * POINTER * count


def _list_item(handle: V, index_or_shape: V, element_shape: V = None) -> int:
    count, shape, width = listed_items(handle)
    wanted = index_or_shape if element_shape is None else element_shape
    return dense(_known(shape, wanted), width) + POINTER * count


def _concat_list(handle: V, element_shape: V = None, leading_dims: V = None) -> int:
    count, shape, width = listed_items(handle)
    inner = dense(_known(shape, element_shape)[1:] if element_shape is not None else shape[1:], 1)
    found = sum((shape_of(each) or (0,))[0] for each in _items(handle))
    missing = total_in(leading_dims)
    fixed = max(shape[0], 0) * count if shape else 0
    return 2 * (found + missing + fixed) * inner * width + count * (VIEW + 4 * POINTER)


def _items(handle: V) -> list[V]:
    found = handle.item() if isinstance(handle, np.ndarray) and handle.size == 1 else handle
    return found.items() if hasattr(found, "items") else []


def _concat_lists(first: V, second: V) -> int:
    return elements(first) * VIEW + 4 * POINTER * (listed_items(first)[0] + listed_items(second)[0])


def _map_entries(handle: V) -> int:
    found = handle.item() if isinstance(handle, np.ndarray) and handle.size == 1 else handle
    return len(found) if hasattr(found, "__len__") else 0


def _changed_map(handle: V, key: V, value: V = None) -> int:
    return (_map_entries(handle) + 1) * 4 * STRING + 2 * size_of(key)


def _map_keys(handle: V) -> int:
    found = handle.item() if isinstance(handle, np.ndarray) and handle.size == 1 else handle
    pairs = found.items() if isinstance(found, TensorMap) else ()
    return sum(2 * size_of(key) + VIEW for key, _ in pairs)


LISTS: dict[str, MemoryNeed] = {
    "TensorListReserve": _reserve,
    "TensorListResize": _resize,
    "TensorListSetItem": _set_item,
    "TensorListFromTensor": _rows,
    "TensorListPushBackBatch": _push_back_batch,
    "TensorListScatter": _scattered_list,
    "TensorListScatterV2": _scattered_list,
    "TensorListScatterIntoExistingList": _into_existing,
    "TensorListSplit": _split_list,
    "TensorListStack": _stack,
    "TensorListGather": _gather_list,
    "TensorListGetItem": _list_item,
    "TensorListPopBack": _list_item,
    "TensorListConcat": _concat_list,
    "TensorListConcatV2": _concat_list,
    "TensorListConcatLists": _concat_lists,
    "TensorMapInsert": _changed_map,
    "TensorMapErase": _changed_map,
    "TensorMapStackKeys": _map_keys,
}
