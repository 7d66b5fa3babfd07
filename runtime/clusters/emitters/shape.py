"""Emitters of operations on shapes, and of those that change or fill a shape.

What is computed from shapes alone adds no operation (`size_arithmetic`).

TF: tensorflow/core/ops/array_ops.cc
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.clusters.dimensions import (
    Dimension,
    InexpressibleError,
    Shape,
    broadcast,
    is_static,
    product,
    resolve_reshape,
    static,
    static_shape,
)
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emitters.size_arithmetic import (
    known,
    known_integer,
    on_sizes,
)
from runtime.clusters.op_emitter import INTEGERS, NUMBERS, OpEmitter
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node

# The types of which ONNX Runtime has operations that move elements. (It has bfloat16 as well, but
# takes no numpy array of it.)
MOVABLE = NUMBERS | {
    DataType.BOOL,
    DataType.HALF,
    DataType.INT8,
    DataType.INT16,
    DataType.UINT8,
    DataType.UINT16,
    DataType.UINT32,
    DataType.UINT64,
}
TILED = MOVABLE - {DataType.HALF}
# Tensors of one value or of consecutive numbers with more elements are made at each run, so that
# they are not kept in memory.
_MAX_FILLED = 1024
# Shapes of more sizes would be beside the message, where the engine does not read them.
_MAX_RANK = 16


def reshaped(emission: Emission, value: Value, shape: Shape) -> Value:
    """Return `value` with a shape that has as many elements."""
    if shape == value.shape:
        return value
    value = emission.as_is(value)
    if value.array is not None and is_static(shape):
        return emission.derive(lambda array: array.reshape(static_shape(shape)), value)
    target = _reshape_target(value.shape, shape)
    if target is not None:
        operand = emission.constant(np.array(target, np.int64))
        return emission.op("Reshape", [value, operand], value.dtype, shape)
    return emission.op("Reshape", [value, emission.sizes(shape)], value.dtype, shape, allowzero=1)


def _reshape_target(old: Shape, new: Shape) -> list[int] | None:
    """Return ONNX's target, in which 0 copies a size and a single −1 is inferred.

    Return None if several symbolic sizes would have to be inferred, or a size really is 0.
    """
    target = []
    for axis, size in enumerate(new):
        if isinstance(size, int):
            target.append(size or -2)
        else:
            target.append(0 if axis < len(old) and old[axis] == size else -1)
    return None if -2 in target or target.count(-1) > 1 else target


def normal_axis(axis: int, rank: int) -> int:
    """Return `axis` counted from 0; raise DeclinedError if a tensor of `rank` has none such."""
    if not -rank <= axis < rank:
        raise DeclinedError(f"axis {axis} of a tensor of rank {rank}, which is an error")
    return axis % rank


def filled(emission: Emission, shape: Shape, value: Value) -> Value:
    """Return a tensor of `shape` in which each element is the scalar `value`."""
    if value.array is not None and is_static(shape):
        sizes = static_shape(shape)
        if math.prod(sizes) <= _MAX_FILLED:
            return emission.derive(lambda array: np.full(sizes, array), value)
    return expanded(emission, value, shape)


def expanded(emission: Emission, value: Value, shape: Shape) -> Value:
    """Return `value` broadcast to `shape`."""
    value = emission.as_is(value)
    if value.shape == shape:
        return value
    return emission.op("Expand", [value, emission.sizes(shape)], value.dtype, shape)


def _identity(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return inputs[0]


def _identities(emission: Emission, node: Node, inputs: Sequence[Value]) -> list[Value]:
    return list(inputs)


def _are_movable(node: Node) -> bool:
    return all(each in MOVABLE for each in node.attr("T"))


def _ensure_shape(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, wanted = inputs[0], node.attr("shape")
    fits = wanted is None or (
        len(wanted) == value.rank
        and all(want in (-1, size) for want, size in zip(wanted, value.shape, strict=True))
    )
    if not fits:
        raise DeclinedError(f"a shape that may not be {wanted}, which is an error")
    return value


def _shape(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return emission.sizes(inputs[0].shape, node.attr("out_type"))


def _shapes(emission: Emission, node: Node, inputs: Sequence[Value]) -> list[Value]:
    return [emission.sizes(each.shape, node.attr("out_type")) for each in inputs]


def _size(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return emission.size(product(inputs[0].shape), node.attr("out_type"))


def _rank(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return emission.constant(inputs[0].rank, DataType.INT32)


def _checked(sizes: list[Dimension], least: int = 0) -> Shape:
    if any(isinstance(size, int) and size < least for size in sizes):
        raise DeclinedError(f"a negative size in {sizes}, which is an error")
    if len(sizes) > _MAX_RANK:
        raise DeclinedError(f"a shape of rank {len(sizes)}")
    return tuple(sizes)


def _reshape(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, target = inputs
    wanted = _checked(known(target, "the shape", 1), least=-1)
    return reshaped(emission, value, resolve_reshape(value.shape, wanted))


def _expand_dims(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, axis = inputs
    at = normal_axis(known_integer(axis, "the axis", rank=None), value.rank + 1)
    return reshaped(emission, value, (*value.shape[:at], 1, *value.shape[at:]))


def _squeeze(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    (value,) = inputs
    axes = [normal_axis(axis, value.rank) for axis in node.attr("squeeze_dims")]
    if not axes:
        axes = [axis for axis, size in enumerate(static_shape(value.shape)) if size == 1]
    if any(value.shape[axis] != 1 for axis in axes):
        raise DeclinedError("an axis that may have another size than 1")
    kept = [size for axis, size in enumerate(value.shape) if axis not in axes]
    return reshaped(emission, value, tuple(kept))


def _fill(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    dims, value = inputs
    if value.rank:
        raise DeclinedError("the value is not a scalar, which is an error")
    return filled(emission, _checked(known(dims, "the shape", 1)), value)


def _filled_like(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    number = emission.constant(int(node.op == "OnesLike"), inputs[0].dtype)
    return filled(emission, inputs[0].shape, number)


def _broadcast_to(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, target = inputs
    shape = _checked(known(target, "the shape", 1))
    if broadcast(value.shape, shape) != shape:
        raise DeclinedError(f"{value.shape} can't be broadcast to {shape}, which is an error")
    return expanded(emission, value, shape)


def _tile(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, repeats = emission.as_is(inputs[0]), inputs[1]
    multiples = _checked(known(repeats, "the multiples", 1))
    if len(multiples) != value.rank:
        raise DeclinedError("not one multiple an axis, which is an error")
    if all(each == 1 for each in multiples):
        return value
    shape = tuple(map(product, zip(value.shape, multiples, strict=True)))
    return emission.op("Tile", [value, emission.sizes(multiples)], value.dtype, shape)


def _range(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    start, limit, delta = inputs
    (size,) = known(limit, "the limit", 0)
    is_count = known_integer(start, "the start") == 0 and known_integer(delta, "the step") == 1
    if not is_count or isinstance(size, int):
        raise DeclinedError("a range that does not count from 0 to a symbolic limit by 1")
    return emission.op("Range", inputs, limit.dtype, (size,))


def _known_range(node: Node, *bounds: np.ndarray) -> np.ndarray:
    start, limit, delta = (static(each.item()) for each in bounds)
    if (limit - start) * delta < 0 or abs(limit - start) > _MAX_FILLED * abs(delta):
        raise InexpressibleError("the wrong direction, which is an error, or too many elements")
    return np.array(range(start, limit, delta), object)


def _moved(node: Node, array: np.ndarray, *more: np.ndarray) -> np.ndarray:
    return array


def _known_reshape(node: Node, array: np.ndarray, target: np.ndarray) -> np.ndarray:
    return array.reshape(target.tolist())


def _known_expand_dims(node: Node, array: np.ndarray, axis: np.ndarray) -> np.ndarray:
    return np.expand_dims(array, axis.item())


def _known_squeeze(node: Node, array: np.ndarray) -> np.ndarray:
    return np.squeeze(array, tuple(node.attr("squeeze_dims")) or None)


def _known_tile(node: Node, array: np.ndarray, multiples: np.ndarray) -> np.ndarray:
    if array.size * math.prod(multiples.tolist()) > _MAX_FILLED:
        raise InexpressibleError("too many elements")
    return np.tile(array, multiples.tolist())


EMITTERS = (
    OpEmitter("BroadcastTo", _broadcast_to, {"T": MOVABLE}, constants=(1,)),
    OpEmitter("EnsureShape", _ensure_shape, {"T": MOVABLE}),
    OpEmitter(
        "ExpandDims", on_sizes(_known_expand_dims, _expand_dims), {"T": MOVABLE}, constants=(1,)
    ),
    OpEmitter("Fill", _fill, {"T": MOVABLE}, constants=(0,)),
    OpEmitter("Identity", _identity, {"T": MOVABLE}),
    OpEmitter("IdentityN", _identities, check=_are_movable),
    OpEmitter("OnesLike", _filled_like, {"T": MOVABLE}),
    OpEmitter("PlaceholderWithDefault", _identity, {"dtype": MOVABLE}),
    OpEmitter("PreventGradient", _identity, {"T": MOVABLE}),
    OpEmitter("Range", on_sizes(_known_range, _range), {"Tidx": INTEGERS}, constants=(0, 1, 2)),
    OpEmitter("Rank", _rank, {"T": MOVABLE}),
    OpEmitter("Reshape", on_sizes(_known_reshape, _reshape), {"T": MOVABLE}, constants=(1,)),
    OpEmitter("Shape", _shape, {"T": MOVABLE}),
    OpEmitter("ShapeN", _shapes, {"T": MOVABLE}),
    OpEmitter("Size", _size, {"T": MOVABLE}),
    OpEmitter("Snapshot", _identity, {"T": MOVABLE}),
    OpEmitter("Squeeze", on_sizes(_known_squeeze, _squeeze), {"T": MOVABLE}),
    OpEmitter("StopGradient", _identity, {"T": MOVABLE}),
    OpEmitter("Tile", on_sizes(_known_tile, _tile), {"T": TILED}, constants=(1,)),
    OpEmitter("ZerosLike", _filled_like, {"T": MOVABLE}),
)
