"""Emitters of padding, and of moves of elements between space, batch and depth.

TF: tensorflow/core/ops/array_ops.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.clusters.dimensions import Dimension, Shape, product, quotient, static
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emit_array import model_axis, transposed
from runtime.clusters.emit_indexing import AxisSlice, sliced
from runtime.clusters.emit_shape import MOVABLE, reshaped
from runtime.clusters.op_emitter import NUMBERS, OpEmitter
from runtime.clusters.size_arithmetic import known_integers
from runtime.clusters.values import Layout, Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node

# The types of which ONNX Runtime has Pad.
PADDED = NUMBERS | {
    DataType.BOOL,
    DataType.INT8,
    DataType.UINT8,
    DataType.UINT32,
    DataType.UINT64,
}
_BLOCK_TYPES = frozenset((DataType.FLOAT, DataType.DOUBLE, DataType.INT8, DataType.UINT8))

Paddings = Sequence[tuple[int, int]]  # before and after, one an axis


def padded(
    emission: Emission, value: Value, paddings: Paddings, fill: Value | None, mode: str
) -> Value:
    """Return `value` with elements before and after; `mode` is "constant" or "reflect"."""
    if not any(map(any, paddings)):
        return value
    shape = tuple(map(_padded_size, value.shape, paddings))
    befores, afters = [0] * value.rank, [0] * value.rank
    for axis, (before, after) in enumerate(paddings):
        at = model_axis(axis, value.rank, value.layout)
        befores[at], afters[at] = before, after
    pads = emission.constant(np.array(befores + afters, np.int64))
    operands = [value, pads] if fill is None else [value, pads, fill]
    return emission.op("Pad", operands, value.dtype, shape, layout=value.layout, mode=mode)


def _padded_size(size: Dimension, padding: tuple[int, int]) -> Dimension:
    return static(size) + sum(padding) if any(padding) else size


def _paddings(operand: Value, rank: int) -> Paddings:
    """Return the paddings or crops in an operand `[rank, 2]`."""
    flat = known_integers(operand, "the paddings")
    if operand.shape != (rank, 2) or min(flat, default=0) < 0:
        raise DeclinedError("not two numbers from 0 on for each axis, which is an error")
    return list(zip(flat[::2], flat[1::2], strict=True))


def _pad(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = inputs[0]
    fill = inputs[2] if node.op == "PadV2" else None
    if fill is not None and fill.rank:
        raise DeclinedError("the padding is not a scalar, which is an error")
    return padded(emission, value, _paddings(inputs[1], value.rank), fill, "constant")


def _mirror_pad(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = inputs[0]
    paddings = _paddings(inputs[1], value.rank)
    reflects = node.attr("mode") == "REFLECT"
    for size, padding in zip(value.shape, paddings, strict=True):
        if any(padding) and max(padding) > static(size) - reflects:
            raise DeclinedError("more padding than elements, which is an error")
    if reflects:
        return padded(emission, value, paddings, None, "reflect")
    for axis, padding in enumerate(paddings):
        if any(padding):
            # ONNX's Pad has no mode that repeats the elements at the border.
            order = np.pad(np.arange(static(value.shape[axis])), padding, "symmetric")
            shape = (*value.shape[:axis], len(order), *value.shape[axis + 1 :])
            at = model_axis(axis, value.rank, value.layout)
            operands = [value, emission.constant(order)]
            value = emission.op(
                "Gather", operands, value.dtype, shape, layout=value.layout, axis=at
            )
    return value


def _block(operand: Value, value: Value) -> list[int]:
    block = known_integers(operand, "the block shape")
    if operand.rank != 1 or min(block, default=1) < 1 or value.rank <= len(block):
        raise DeclinedError(f"a block of {block}, which is an error")
    return block


def _space_to_batch(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = emission.as_is(inputs[0])
    block = _block(inputs[1], value)
    count = len(block)
    paddings = [(0, 0), *_paddings(inputs[2], count), *[(0, 0)] * (value.rank - 1 - count)]
    value = padded(emission, value, paddings, None, "constant")
    batch, space, rest = value.shape[0], value.shape[1 : 1 + count], value.shape[1 + count :]
    outer = list(map(quotient, space, block))
    paired = [size for pair in zip(outer, block, strict=True) for size in pair]
    parts = reshaped(emission, value, (batch, *paired, *rest))
    blocks, outers = range(2, 2 + 2 * count, 2), range(1, 1 + 2 * count, 2)
    order = [*blocks, 0, *outers, *range(1 + 2 * count, parts.rank)]
    moved = transposed(emission, parts, order)
    return reshaped(emission, moved, (product([*block, batch]), *outer, *rest))


def _batch_to_space(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value = emission.as_is(inputs[0])
    block = _block(inputs[1], value)
    count = len(block)
    crops = _paddings(inputs[2], count)
    batch = quotient(value.shape[0], product(block))
    space, rest = value.shape[1 : 1 + count], value.shape[1 + count :]
    parts = reshaped(emission, value, (*block, batch, *space, *rest))
    pairs = [axis for i in range(count) for axis in (count + 1 + i, i)]
    moved = transposed(emission, parts, [count, *pairs, *range(2 * count + 1, parts.rank)])
    larger = tuple(map(product, zip(space, block, strict=True)))
    whole = reshaped(emission, moved, (batch, *larger, *rest))
    return sliced(emission, whole, _cropped(whole.shape, crops))


def _cropped(shape: Shape, crops: Paddings) -> list[AxisSlice]:
    slices = []
    for axis, (before, after) in enumerate(crops, start=1):
        if before or after:
            end = static(shape[axis]) - after
            if end < before:
                raise DeclinedError("more is cropped than there is, which is an error")
            slices.append(AxisSlice(axis, before, end, 1, end - before))
    return slices


def _space_to_depth(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, block = inputs[0], node.attr("block_size")
    batch, height, width, channels = _image(value)
    high, wide = quotient(height, block), quotient(width, block)
    shape = (batch, high, wide, product([channels, block, block]))
    if value.layout is Layout.CHANNELS_FIRST and value.dtype in _BLOCK_TYPES:
        return _on_channels_first(emission, "SpaceToDepth", value, shape, block)
    parts = reshaped(emission, value, (batch, high, block, wide, block, channels))
    return reshaped(emission, transposed(emission, parts, [0, 1, 3, 2, 4, 5]), shape)


def _depth_to_space(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, block = inputs[0], node.attr("block_size")
    batch, height, width, channels = _image(value)
    kept = quotient(channels, block * block)
    shape = (batch, product([height, block]), product([width, block]), kept)
    if value.layout is Layout.CHANNELS_FIRST and value.dtype in _BLOCK_TYPES:
        return _on_channels_first(emission, "DepthToSpace", value, shape, block)
    parts = reshaped(emission, value, (batch, height, width, block, block, kept))
    return reshaped(emission, transposed(emission, parts, [0, 1, 3, 2, 4, 5]), shape)


def _image(value: Value) -> Shape:
    if value.rank != 4:
        raise DeclinedError("not of rank 4, which is an error")
    return value.shape


def _on_channels_first(
    emission: Emission, op_type: str, value: Value, shape: Shape, block: int
) -> Value:
    layout = Layout.CHANNELS_FIRST
    return emission.op(op_type, [value], value.dtype, shape, layout=layout, blocksize=block)


def _is_channels_last(node: Node) -> bool:
    return bool(node.attr("data_format") == "NHWC")


EMITTERS = (
    OpEmitter("BatchToSpaceND", _batch_to_space, {"T": MOVABLE}, constants=(1, 2)),
    OpEmitter("DepthToSpace", _depth_to_space, {"T": MOVABLE}, check=_is_channels_last),
    OpEmitter("MirrorPad", _mirror_pad, {"T": PADDED}, constants=(1,)),
    OpEmitter("Pad", _pad, {"T": PADDED}, constants=(1,)),
    OpEmitter("PadV2", _pad, {"T": PADDED}, constants=(1,)),
    OpEmitter("SpaceToBatchND", _space_to_batch, {"T": PADDED}, constants=(1, 2)),
    OpEmitter("SpaceToDepth", _space_to_depth, {"T": MOVABLE}, check=_is_channels_last),
)
