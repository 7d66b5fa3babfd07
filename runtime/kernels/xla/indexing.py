"""XlaGather, XlaDynamicSlice and XlaDynamicUpdateSlice: windows that start where indices say.

A window that would reach over an edge is moved inside, as the compiler does.

TF: tensorflow/compiler/tf2xla/kernels/gather_op.cc, dynamic_slice_ops.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.kernels.xla.attributes import (
    TYPES,
    check_dimensions,
    dimension_numbers_of,
    others,
    sizes_of,
)


def index_vectors(indices: np.ndarray, dimension: int) -> np.ndarray:
    """Return indices with the dimension of their vectors last; a missing one has size 1."""
    if not 0 <= dimension <= indices.ndim:
        raise InvalidArgumentError(
            f"index_vector_dim must be in [0, {indices.ndim}], got {dimension}"
        )
    if dimension == indices.ndim:
        return indices[..., np.newaxis]
    return np.moveaxis(indices, dimension, -1)


def full_starts(
    vectors: np.ndarray, rank: int, places: Sequence[int], batch: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Return the starts of windows: int64 of shape [..., rank].

    Component k of a vector is the start in dimension `places[k]`. For each (dimension of the
    tensor, dimension of the vectors) in `batch`, windows start at their own number.
    """
    if vectors.shape[-1] != len(places):
        raise InvalidArgumentError(
            f"There must be {len(places)} indices for each window, got {vectors.shape[-1]}"
        )
    starts = np.zeros((*vectors.shape[:-1], rank), np.int64)
    for number, place in enumerate(places):
        starts[..., place] = vectors[..., number]
    for place, axis in batch:
        shape = [1] * (vectors.ndim - 1)
        shape[axis] = -1
        starts[..., place] = np.arange(vectors.shape[axis]).reshape(shape)
    return starts


def batch_pairs(
    of_tensor: Sequence[int],
    of_indices: Sequence[int],
    vector: int,
    tensor: Sequence[int],
    indices: Sequence[int],
) -> list[tuple[int, int]]:
    """Return the `batch` of `full_starts` from the batching dimensions of tensor and indices."""
    check_dimensions("Batching dimensions", of_tensor, len(tensor))
    check_dimensions("Batching dimensions", of_indices, len(indices))
    if len(of_tensor) != len(of_indices) or vector in of_indices:
        raise InvalidArgumentError(
            f"Batching dimensions of tensor and indices must be pairs without index_vector_dim, "
            f"got {list(of_tensor)} and {list(of_indices)}"
        )
    if any(tensor[a] != indices[b] for a, b in zip(of_tensor, of_indices, strict=True)):
        raise InvalidArgumentError("Batching dimensions of tensor and indices differ in size")
    # in the vectors, the dimension `vector` is the last one
    return [(a, b - (b > vector)) for a, b in zip(of_tensor, of_indices, strict=True)]


def xla_gather(
    operand: np.ndarray,
    start_indices: np.ndarray,
    slice_sizes: np.ndarray,
    *,
    dimension_numbers: str,
) -> np.ndarray:
    """XlaGather: a window of `slice_sizes` for each vector of `start_indices`.

    Windows lose their collapsed dimensions; the others stand at `offset_dims` of the result.
    """
    operand, indices = np.asarray(operand), np.asarray(start_indices)
    numbers = dimension_numbers_of(pb.GatherDimensionNumbers, dimension_numbers)
    sizes = sizes_of("slice_sizes", slice_sizes, operand.ndim, 0)
    batch = batch_pairs(
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
        numbers.index_vector_dim,
        operand.shape,
        indices.shape,
    )
    gone = [*numbers.collapsed_slice_dims, *(place for place, _ in batch)]
    check_dimensions("start_index_map", numbers.start_index_map, operand.ndim)
    check_dimensions("collapsed_slice_dims", gone, operand.ndim)
    if any(size > whole for size, whole in zip(sizes, operand.shape, strict=True)):
        raise InvalidArgumentError(
            f"Slice sizes {sizes} are larger than the operand, {list(operand.shape)}"
        )
    if any(sizes[each] > 1 for each in gone):
        raise InvalidArgumentError(f"Collapsed dimensions {gone} must have slice size 0 or 1")
    vectors = index_vectors(indices, numbers.index_vector_dim)
    starts = full_starts(vectors, operand.ndim, numbers.start_index_map, batch)
    return _placed(_windows(operand, starts, sizes), starts.ndim - 1, gone, numbers.offset_dims)


def _windows(operand: np.ndarray, starts: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Return a window for each start: shape [...starts, ...sizes]."""
    if not operand.ndim:
        return np.broadcast_to(operand, starts.shape[:-1]).copy()
    if 0 in (*sizes, *starts.shape[:-1]):
        return np.empty((*starts.shape[:-1], *sizes), operand.dtype)
    limits = np.subtract(operand.shape, sizes)
    inside = np.clip(starts, 0, limits)
    views = np.lib.stride_tricks.sliding_window_view(operand, tuple(sizes))
    return np.asarray(views[tuple(np.moveaxis(inside, -1, 0))])


def _placed(
    windows: np.ndarray, count: int, gone: Sequence[int], offsets: Sequence[int]
) -> np.ndarray:
    """Return windows [..., *sizes] without the dimensions that are gone, the others at `offsets`.

    `count` is the number of dimensions before those of a window.
    """
    kept = others(windows.ndim - count, gone)
    rank = count + len(kept)
    if len(offsets) != len(kept) or list(offsets) != sorted(offsets):
        raise InvalidArgumentError(
            f"offset_dims must be {len(kept)} sorted dimensions, got {list(offsets)}"
        )
    check_dimensions("offset_dims", offsets, rank)
    first = (slice(None),) * count
    index = tuple(0 if each in gone else slice(None) for each in range(windows.ndim - count))
    if any(windows.shape[count + each] == 0 for each in gone):
        shape = [windows.shape[count + each] for each in kept]
        flat = np.empty((*windows.shape[:count], *shape), windows.dtype)
        if flat.size:
            raise InvalidArgumentError("A collapsed dimension of size 0 leaves nothing to gather")
    else:
        flat = windows[(*first, *index)]
    order = [0] * rank
    for number, place in enumerate(others(rank, offsets)):
        order[place] = number
    for number, place in enumerate(offsets):
        order[place] = count + number
    return np.ascontiguousarray(flat.transpose(order))


def xla_dynamic_slice(
    array: np.ndarray, start_indices: np.ndarray, size_indices: np.ndarray
) -> np.ndarray:
    """XlaDynamicSlice: the part of `size_indices` that begins at `start_indices`."""
    array = np.asarray(array)
    sizes = sizes_of("size_indices", size_indices, array.ndim, 0)
    starts = sizes_of("start_indices", start_indices, array.ndim)
    return array[_inside(array.shape, starts, sizes, "size_indices")]


def xla_dynamic_update_slice(
    array: np.ndarray, update: np.ndarray, indices: np.ndarray
) -> np.ndarray:
    """XlaDynamicUpdateSlice: the tensor with `update` in place of a part of it."""
    array, update = np.asarray(array), np.asarray(update)
    if array.ndim != update.ndim:
        raise InvalidArgumentError(
            f"update must have the rank of the input, {array.ndim}, got {update.ndim}"
        )
    starts = sizes_of("indices", indices, array.ndim)
    result = array.copy()
    result[_inside(array.shape, starts, update.shape, "update")] = update
    return result


def _inside(
    shape: Sequence[int], starts: Sequence[int], sizes: Sequence[int], name: str
) -> tuple[slice, ...]:
    """Return where a part lies, moved into the tensor."""
    if any(size > whole for size, whole in zip(sizes, shape, strict=True)):
        raise InvalidArgumentError(
            f"{name} must fit into the input of shape {list(shape)}, got {list(sizes)}"
        )
    begins = [
        min(max(start, 0), whole - size)
        for start, size, whole in zip(starts, sizes, shape, strict=True)
    ]
    return tuple(slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True))


KERNELS = (
    KernelDef("XlaGather", xla_gather, {"T": TYPES}),
    KernelDef("XlaDynamicSlice", xla_dynamic_slice, {"T": TYPES}),
    KernelDef("XlaDynamicUpdateSlice", xla_dynamic_update_slice, {"T": TYPES}),
)
