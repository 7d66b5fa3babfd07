"""Emitters of operations that select elements by index: slices, gathering, one-hot vectors.

TensorFlow raises where an index is negative or too large, the engine counts a negative index from
the end. Constant indices are checked at emission; of others the negative ones are replaced by the
largest integer, for which the engine raises.

TF: tensorflow/core/ops/array_ops.cc
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from runtime.clusters.bounds import MAX_MADE
from runtime.clusters.dimensions import Dimension, Shape, SymbolicSize, static, static_shape
from runtime.clusters.emission import ONNX_TYPES, DeclinedError, Emission
from runtime.clusters.emitters.array import model_axis
from runtime.clusters.emitters.comparison import SELECTED, selected
from runtime.clusters.emitters.elementwise import elementwise, like
from runtime.clusters.emitters.shape import MOVABLE, normal_axis, reshaped
from runtime.clusters.emitters.size_arithmetic import (
    elements,
    known,
    known_integer,
    known_integers,
    on_sizes,
)
from runtime.clusters.op_emitter import INTEGERS, OpEmitter
from runtime.clusters.values import Value
from runtime.foundation.errors import OpError
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
from runtime.kernels.array.slicing import StridedSliceMasks, strided_slice_index

_TO_THE_START = np.iinfo(np.int64).min  # an end that a slice with a negative step never reaches
_TO_THE_END = np.iinfo(np.int64).max
# Graphs write "to the end" as the largest integer of 32 bits; no axis is longer.
_LARGEST_SIZE = np.iinfo(np.int32).max
# The size that stands for a symbol while the masks of a StridedSlice are applied.
_LONG = 1 << 40


@dataclasses.dataclass(frozen=True, slots=True)
class AxisSlice:
    """A slice of one axis, with ONNX's start, end and step, and the size of the result."""

    axis: int
    start: int
    end: int
    step: int
    size: Dimension


def sliced(emission: Emission, value: Value, slices: Sequence[AxisSlice]) -> Value:
    """Return the part of `value` that `slices` select, one an axis at most."""
    if not slices:
        return value
    shape = list(value.shape)
    for each in slices:
        shape[each.axis] = each.size
    axes = [model_axis(each.axis, value.rank, value.layout) for each in slices]
    columns = (
        [each.start for each in slices],
        [each.end for each in slices],
        axes,
        [each.step for each in slices],
    )
    operands = [emission.constant(np.array(column, np.int64)) for column in columns]
    return emission.op("Slice", [value, *operands], value.dtype, tuple(shape), layout=value.layout)


def _axis_slice(axis: int, size: Dimension, index: slice) -> AxisSlice | None:
    """Return the slice `index` of an axis, None if it is the whole axis."""
    step = index.step or 1
    if isinstance(size, SymbolicSize):
        stop = index.stop
        if step > 0 and stop in (size, _LARGEST_SIZE):
            stop = None  # backwards, an end behind the last element leaves nothing
        if stop is None and index.start in (None, 0) and step == 1:
            return None
        if stop is None and index.start in (None, -1) and step == -1:
            return AxisSlice(axis, -1, _TO_THE_START, -1, size)
        raise DeclinedError(f"a part of an axis whose size is {size}")
    if isinstance(index.start, SymbolicSize) or isinstance(index.stop, SymbolicSize):
        raise DeclinedError(f"a symbolic part of an axis whose size is {size}")
    start, stop, step = index.indices(size)
    count = len(range(start, stop, step))
    if (start, count, step) == (0, size, 1):
        return None
    if count == 0:
        return AxisSlice(axis, 0, 0, 1, 0)
    return AxisSlice(axis, start, _TO_THE_START if stop < 0 else stop, step, count)


def _slice(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, begin, size = inputs
    starts, counts = known(begin, "the begin", 1), known(size, "the size", 1)
    if not len(starts) == len(counts) == value.rank:
        raise DeclinedError("not one begin and size an axis, which is an error")
    slices = []
    for axis, (start, count) in enumerate(zip(starts, counts, strict=True)):
        length = value.shape[axis]
        if start == 0 and (count in (-1, length)):
            continue
        first, stop = static(start), static(length)
        end = stop if count == -1 else first + static(count)
        if not 0 <= first <= end <= stop:
            raise DeclinedError(f"from {first} to {end} of {stop}, which is an error")
        slices.append(AxisSlice(axis, first, end, 1, end - first))
    return sliced(emission, value, slices)


def _strided_slice(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = inputs[0]
    index = _index_of(node, value.shape, inputs[1:])
    slices: list[AxisSlice] = []
    shape: list[Dimension] = []
    axis = 0
    for each in index:
        if each is None:
            shape.append(1)
            continue
        size = value.shape[axis]
        if isinstance(each, slice):
            part = _axis_slice(axis, size, each)
            shape.append(size if part is None else part.size)
            slices += [] if part is None else [part]
        elif isinstance(size, int):
            slices.append(AxisSlice(axis, each, each + 1, 1, 1))
        else:
            value = _one_of(emission, value, axis, each if each < _LONG // 2 else each - _LONG)
        axis += 1
    return reshaped(emission, sliced(emission, value, slices), (*shape, *value.shape[axis:]))


def _index_of(
    node: Node, shape: Shape, operands: Sequence[Value]
) -> tuple[int | slice | None, ...]:
    """Return the numpy index of a StridedSlice, without the ellipsis at its end."""
    begin, end, strides = map(elements, operands)
    if begin is None or end is None or strides is None:
        raise DeclinedError("the indices are known at a run only")
    sizes = tuple(size if isinstance(size, int) else _LONG for size in shape)
    try:
        found = strided_slice_index(sizes, begin, end, strides, _masks(node))
        return tuple(each for each in found if not isinstance(each, EllipsisType))
    except OpError as error:
        raise DeclinedError(f"{error.message}, which is an error") from error
    except TypeError as error:  # a symbolic begin where an integer is wanted
        raise DeclinedError("the indices are symbolic") from error


def _masks(node: Node) -> StridedSliceMasks:
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    return StridedSliceMasks(*(node.attr(name) for name in names))


def _one_of(emission: Emission, value: Value, axis: int, position: int) -> Value:
    """Return element `position` of a symbolic axis, which stays with size 1.

    The engine raises if a run has fewer elements.
    """
    shape = (*value.shape[:axis], 1, *value.shape[axis + 1 :])
    index = emission.constant(np.array([position]))
    at = model_axis(axis, value.rank, value.layout)
    return emission.op("Gather", [value, index], value.dtype, shape, layout=value.layout, axis=at)


def _reverse(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, axis = inputs
    axes = [normal_axis(each, value.rank) for each in known_integers(axis, "the axes", 1)]
    if len(set(axes)) != len(axes):
        raise DeclinedError("an axis twice, which is an error")
    slices = [AxisSlice(each, -1, _TO_THE_START, -1, value.shape[each]) for each in axes]
    return sliced(emission, value, slices)


def guarded(emission: Emission, indices: Value, size: Dimension) -> Value:
    """Return `indices` into an axis of `size` such that the engine raises for negative ones.

    Raises DeclinedError if a constant index is out of range.
    """
    if indices.constant is not None:
        array = indices.constant
        if array.size and (array.min() < 0 or (isinstance(size, int) and array.max() >= size)):
            raise DeclinedError(f"an index beyond {size}, which is an error")
        return indices
    zero = like(emission, 0, indices)
    is_negative = elementwise(emission, "Less", indices, zero, dtype=DataType.BOOL)
    largest = like(emission, int(np.iinfo(indices.dtype.numpy).max), indices)
    return elementwise(emission, "Where", is_negative, largest, indices, dtype=indices.dtype)


def _gather(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    params, indices = emission.as_is(inputs[0]), emission.as_is(inputs[1])
    axis = normal_axis(known_integer(inputs[2], "the axis") if len(inputs) > 2 else 0, params.rank)
    if 0 in params.shape:
        raise DeclinedError("no elements, of which the engine would raise for any index")
    indices = guarded(emission, indices, params.shape[axis])
    shape = (*params.shape[:axis], *indices.shape, *params.shape[axis + 1 :])
    is_known = params.array is not None and indices.constant is not None
    if is_known and math.prod(static_shape(shape)) <= MAX_MADE:
        return emission.derive(lambda array, at: np.take(array, at, axis), params, indices)
    return emission.op("Gather", [params, indices], params.dtype, shape, axis=axis)


def _has_no_batch_dims(node: Node) -> bool:
    return bool(node.attr("batch_dims") == 0)


def _gather_nd(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    params, indices = emission.as_is(inputs[0]), emission.as_is(inputs[1])
    depth = indices.shape[-1] if indices.rank else None
    if not isinstance(depth, int) or not 0 < depth <= params.rank or 0 in params.shape:
        raise DeclinedError("no elements, or not one index for each of the first axes")
    if indices.constant is not None:
        for axis in range(depth):
            guarded(emission, emission.constant(indices.constant[..., axis]), params.shape[axis])
    else:
        indices = guarded(emission, indices, 0)
    if indices.dtype is not DataType.INT64:
        int64 = DataType.INT64
        indices = elementwise(emission, "Cast", indices, dtype=int64, to=ONNX_TYPES[int64])
    shape = (*indices.shape[:-1], *params.shape[depth:])
    return emission.op("GatherND", [params, indices], params.dtype, shape)


def _raises_for_bad_indices(node: Node) -> bool:
    return bool(node.attr("bad_indices_policy") != "IGNORE")


def _one_hot(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    indices, depth, on, off = inputs
    count = known_integer(depth, "the depth")
    if count > MAX_MADE:
        raise DeclinedError(f"{count} classes")
    if count < 0 or on.rank or off.rank or node.attr("axis") < -1:
        raise DeclinedError("a depth or values that are an error")
    axis = normal_axis(node.attr("axis"), indices.rank + 1)
    wide = reshaped(emission, indices, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    # A comparison, because an index out of range gives a vector without the value `on`.
    classes = np.arange(count, dtype=np.int64)
    if indices.dtype not in INTEGERS:
        int64 = DataType.INT64
        wide = elementwise(emission, "Cast", wide, dtype=int64, to=ONNX_TYPES[int64])
    classes = classes.astype(wide.dtype.numpy).reshape(count, *(1,) * (indices.rank - axis))
    hit = elementwise(emission, "Equal", wide, emission.constant(classes), dtype=DataType.BOOL)
    return selected(emission, hit, on, off)


# On sizes


def _known_slice(node: Node, array: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    (start,), (count,) = begin.tolist(), size.tolist()
    stop = len(array) if count == -1 else start + count
    if array.ndim != 1 or not 0 <= start <= stop <= len(array):
        raise ValueError("an error of the operation")
    return array[start:stop]


def _known_strided_slice(
    node: Node, array: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> np.ndarray:
    index: Any = strided_slice_index(array.shape, begin, end, strides, _masks(node))
    return np.asarray(array[index], object)


def _known_gather(node: Node, array: np.ndarray, at: np.ndarray, *axis: np.ndarray) -> np.ndarray:
    positions = at.astype(np.int64)
    if positions.size and positions.min() < 0:
        raise IndexError("an error of the operation")
    return np.take(array, positions, axis[0].item() if axis else 0)


def _known_reverse(node: Node, array: np.ndarray, axes: np.ndarray) -> np.ndarray:
    return np.flip(array, tuple(axes.tolist()))


EMITTERS = (
    OpEmitter(
        "Gather",
        on_sizes(_known_gather, _gather),
        {"Tparams": MOVABLE, "Tindices": INTEGERS},
    ),
    OpEmitter(
        "GatherNd",
        _gather_nd,
        {"Tparams": MOVABLE, "Tindices": INTEGERS},
        check=_raises_for_bad_indices,
    ),
    OpEmitter(
        "GatherV2",
        on_sizes(_known_gather, _gather),
        {"Tparams": MOVABLE, "Tindices": INTEGERS},
        constants=(2,),
        check=_has_no_batch_dims,
    ),
    OpEmitter(
        "OneHot",
        _one_hot,
        {"T": SELECTED, "TI": INTEGERS | {DataType.INT8, DataType.UINT8}},
        constants=(1,),
    ),
    OpEmitter("ReverseV2", on_sizes(_known_reverse, _reverse), {"T": MOVABLE}, constants=(1,)),
    OpEmitter("Slice", on_sizes(_known_slice, _slice), {"T": MOVABLE}, constants=(1, 2)),
    OpEmitter(
        "StridedSlice",
        on_sizes(_known_strided_slice, _strided_slice),
        {"T": MOVABLE},
        constants=(1, 2, 3),
    ),
)
