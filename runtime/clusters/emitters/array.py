"""Emitters of operations that join, split and reorder tensors.

Joining and splitting keep channels first.

TF: tensorflow/core/ops/array_ops.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.clusters.bounds import MAX_MADE
from runtime.clusters.dimensions import InexpressibleError, static, static_shape
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emitters.comparison import SELECTED, selected
from runtime.clusters.emitters.elementwise import in_one_layout
from runtime.clusters.emitters.shape import MOVABLE, normal_axis, reshaped
from runtime.clusters.emitters.size_arithmetic import known_integer, known_integers, on_sizes, total
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.values import Layout, Value
from runtime.graph.node import Node


def model_axis(axis: int, rank: int, layout: Layout) -> int:
    """Return where TensorFlow's axis `axis` (from 0) of a tensor is in the model."""
    if layout is Layout.AS_IS or axis == 0:
        return axis
    return 1 if axis == rank - 1 else axis + 1


def transposed(emission: Emission, value: Value, order: Sequence[int]) -> Value:
    """Return `value` with its axes in `order`."""
    value = emission.as_is(value)
    order = list(order)
    if order == list(range(value.rank)):
        return value
    if value.array is not None:
        return emission.derive(lambda array: array.transpose(order), value)
    shape = tuple(value.shape[axis] for axis in order)
    return emission.op("Transpose", [value], value.dtype, shape, perm=order)


def concatenated(emission: Emission, values: Sequence[Value], axis: int) -> Value:
    """Return `values` one after the other along `axis`."""
    first = values[0]
    axis = normal_axis(axis, first.rank)
    others = [(each.shape[:axis], each.shape[axis + 1 :]) for each in values]
    if any(each != others[0] for each in others) or any(each.rank <= axis for each in values):
        raise DeclinedError("sizes that may differ, which is an error")
    if len(values) == 1:
        return first
    if all(each.array is not None for each in values):
        plain = [emission.as_is(each) for each in values]
        if all(each.array is not None for each in plain):
            return emission.derive(lambda *arrays: np.concatenate(arrays, axis), *plain)
    shape = (*first.shape[:axis], total([each.shape[axis] for each in values]), *others[0][1])
    operands, layout = in_one_layout(emission, values)
    at = model_axis(axis, first.rank, layout)
    return emission.op("Concat", operands, first.dtype, shape, layout=layout, axis=at)


def split(emission: Emission, value: Value, sizes: Sequence[int], axis: int) -> list[Value]:
    """Return the parts of `value` that have `sizes` along `axis` (from 0)."""
    if len(sizes) == 1:
        return [value]
    shapes = [(*value.shape[:axis], size, *value.shape[axis + 1 :]) for size in sizes]
    return emission.ops(
        "Split",
        [value, emission.sizes(sizes)],
        [(value.dtype, shape) for shape in shapes],
        layout=value.layout,
        axis=model_axis(axis, value.rank, value.layout),
    )


def _transpose(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, perm = inputs
    order = known_integers(perm, "the permutation")
    if sorted(axis % max(value.rank, 1) for axis in order) != list(range(value.rank)):
        raise DeclinedError(f"{order} is no permutation of the axes, which is an error")
    return transposed(emission, value, [normal_axis(axis, value.rank) for axis in order])


def _concat(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    *values, axis = inputs
    if node.op == "Concat":
        axis, *values = inputs
    return concatenated(emission, values, known_integer(axis, "the axis"))


def _pack(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    shape = inputs[0].shape
    if any(each.shape != shape for each in inputs):
        raise DeclinedError("shapes that may differ, which is an error")
    axis = normal_axis(node.attr("axis"), len(shape) + 1)
    wider = (*shape[:axis], 1, *shape[axis:])
    return concatenated(emission, [reshaped(emission, each, wider) for each in inputs], axis)


def _unpack(emission: Emission, node: Node, inputs: Sequence[Value]) -> list[Value]:
    value = emission.as_is(inputs[0])
    axis, count = normal_axis(node.attr("axis"), value.rank), node.attr("num")
    if value.shape[axis] != count or not count:
        raise DeclinedError(f"an axis that may have another size than {count}")
    shape = (*value.shape[:axis], *value.shape[axis + 1 :])
    parts = split(emission, value, [1] * count, axis)
    return [reshaped(emission, each, shape) for each in parts]


def _split(emission: Emission, node: Node, inputs: Sequence[Value]) -> list[Value]:
    dimension, value = inputs
    axis = normal_axis(known_integer(dimension, "the axis"), value.rank)
    size, count = static(value.shape[axis]), node.attr("num_split")
    if size % count:
        raise DeclinedError(f"{size} can't be split into {count} equal parts, which is an error")
    return split(emission, value, [size // count] * count, axis)


def _split_by_sizes(emission: Emission, node: Node, inputs: Sequence[Value]) -> list[Value]:
    value, size_splits, dimension = inputs
    axis = normal_axis(known_integer(dimension, "the axis", rank=None), value.rank)
    sizes = known_integers(size_splits, "the sizes", 1)
    size = static(value.shape[axis])
    if -1 in sizes and len(sizes) > 1:
        sizes[sizes.index(-1)] = size - sum(sizes) - 1
    if sum(sizes) != size or min(sizes) < 0 or len(sizes) != node.attr("num_split"):
        raise DeclinedError(f"parts of {sizes} of an axis of {size}, which is an error")
    return split(emission, value, sizes, axis)


def _matrix_band_part(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = emission.as_is(inputs[0])
    lower = known_integer(inputs[1], "the number of subdiagonals")
    upper = known_integer(inputs[2], "the number of superdiagonals")
    if value.rank < 2:
        raise DeclinedError("not a matrix, which is an error")
    rows, columns = static_shape(value.shape[-2:])
    if lower > rows or upper > columns or lower == np.iinfo(np.int64).min:
        raise DeclinedError("more diagonals than the matrix has, or the least integer")
    if rows * columns > MAX_MADE:
        raise DeclinedError(f"a mask of {rows} by {columns} elements")
    distance = np.arange(columns) - np.arange(rows)[:, None]
    band = (lower < 0) | (distance >= -lower)
    band &= (upper < 0) | (distance <= upper)
    zero = emission.constant(0, value.dtype)
    return selected(emission, emission.constant(band), value, zero)


# On sizes


def _known_concat(node: Node, *arrays: np.ndarray) -> np.ndarray:
    *parts, axis = arrays
    if node.op == "Concat":
        axis, *parts = arrays
    return np.concatenate(parts, axis.item())


def _known_pack(node: Node, *arrays: np.ndarray) -> np.ndarray:
    return np.stack(arrays, node.attr("axis"))


def _known_unpack(node: Node, array: np.ndarray) -> list[np.ndarray]:
    parts = list(np.moveaxis(array, node.attr("axis"), 0))
    if len(parts) != node.attr("num"):
        raise InexpressibleError("an error")
    return parts


def _known_split(node: Node, axis: np.ndarray, array: np.ndarray) -> list[np.ndarray]:
    return np.split(array, node.attr("num_split"), axis.item())


def _known_transpose(node: Node, array: np.ndarray, perm: np.ndarray) -> np.ndarray:
    return array.transpose(perm.tolist())


EMITTERS = (
    OpEmitter("Concat", on_sizes(_known_concat, _concat), {"T": MOVABLE}, constants=(0,)),
    OpEmitter("ConcatV2", on_sizes(_known_concat, _concat), {"T": MOVABLE}, constants=(-1,)),
    OpEmitter("MatrixBandPart", _matrix_band_part, {"T": SELECTED}, constants=(1, 2)),
    OpEmitter("Pack", on_sizes(_known_pack, _pack), {"T": MOVABLE}),
    OpEmitter("Split", on_sizes(_known_split, _split), {"T": MOVABLE}, constants=(0,)),
    OpEmitter("SplitV", _split_by_sizes, {"T": MOVABLE}, constants=(1, 2)),
    OpEmitter("Transpose", on_sizes(_known_transpose, _transpose), {"T": MOVABLE}, constants=(1,)),
    OpEmitter("Unpack", on_sizes(_known_unpack, _unpack), {"T": MOVABLE}),
)
