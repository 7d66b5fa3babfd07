"""Gradient functions of ops that move, select, repeat and accumulate elements.

TF: tensorflow/python/ops/array_grad.py, math_grad.py, data_flow_grad.py
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from runtime.framework.attr_value import AttributeValue
from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _int32(ops: GradientNodes, value: Endpoint) -> Endpoint:
    is_known = type_of(value) is DataType.INT32
    output: Endpoint = value if is_known else ops.Cast(value, DstT=DataType.INT32)
    return output


def _part(ops: GradientNodes, sizes: Endpoint, begin: Endpoint, end: Endpoint) -> Endpoint:
    """Return `sizes[begin:end]`; `begin` and `end` are int32 `[1]`."""
    output: Endpoint = ops.Slice(sizes, begin, ops.Sub(end, begin))
    return output


def _product(ops: GradientNodes, sizes: Endpoint) -> Endpoint:
    """Return the product of the elements of the vector `sizes`, with the shape `[1]`."""
    output: Endpoint = ops.Prod(sizes, ops.indices([0]), keep_dims=True)
    return output


def _joined(ops: GradientNodes, *parts: Endpoint) -> Endpoint:
    output: Endpoint = ops.ConcatV2(list(parts), ops.indices(0))
    return output


def _scalar(ops: GradientNodes, vector: Endpoint) -> Endpoint:
    """Return the element of `vector` `[1]` as a scalar."""
    output: Endpoint = ops.Squeeze(vector)
    return output


# --- rows -----------------------------------------------------------------------------------------


def _gather_v2(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """GatherV2: sum the gradients of the gathered elements that come from the same element.

    UnsortedSegmentSum computes the sums as `[batch × size, outer × inner]`, where `size` is the
    size of the axis; `outer` and `inner` are the products of the sizes before and after the axis.
    """
    params, indices, axis = node.inputs
    shape, begin, one = ops.Shape(params), ops.indices([0]), ops.indices([1])
    end = ops.Reshape(ops.Rank(params), one)
    at = ops.FloorMod(ops.Reshape(_int32(ops, axis), one), end)
    batch_dims = node.attr("batch_dims")
    if batch_dims < 0:
        batch_end = ops.AddV2(ops.Reshape(ops.Rank(indices), one), ops.indices([batch_dims]))
    else:
        batch_end = ops.indices([batch_dims])
    batch = _product(ops, _part(ops, shape, begin, batch_end))
    outer = _product(ops, _part(ops, shape, batch_end, at))
    size = _part(ops, shape, at, ops.AddV2(at, one))
    inner = _product(ops, _part(ops, shape, ops.AddV2(at, one), end))
    chosen = ops.Reshape(ops.Rank(indices), one)
    count = _product(ops, _part(ops, ops.Shape(indices), batch_end, chosen))
    swapped = ops.indices([0, 2, 1, 3])
    values = ops.Transpose(ops.Reshape(grads[0], _joined(ops, batch, outer, count, inner)), swapped)
    values = ops.Reshape(values, _joined(ops, ops.Mul(batch, count), ops.Mul(outer, inner)))
    starts = ops.Range(ops.indices(0), _scalar(ops, batch), ops.indices(1))
    starts = ops.ExpandDims(ops.Mul(starts, size), ops.indices(1))
    rows = ops.AddV2(ops.Reshape(_int32(ops, indices), _joined(ops, batch, count)), starts)
    total = ops.UnsortedSegmentSum(
        values, ops.Reshape(rows, ops.indices([-1])), _scalar(ops, ops.Mul(batch, size))
    )
    total = ops.Transpose(ops.Reshape(total, _joined(ops, batch, size, outer, inner)), swapped)
    return [ops.Reshape(total, shape), None, None]


def _gather(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    params, indices = node.inputs
    shape, flat = ops.Shape(params), ops.Reshape(indices, ops.indices([-1]))
    end = ops.Reshape(ops.Rank(params), ops.indices([1]))
    rest = _part(ops, shape, ops.indices([1]), end)
    values = ops.Reshape(grads[0], _joined(ops, ops.Shape(flat), rest))
    rows = ops.StridedSlice(
        shape, ops.indices([0]), ops.indices([1]), ops.indices([1]), shrink_axis_mask=1
    )
    return [ops.UnsortedSegmentSum(values, flat, rows), None]


def _scatter_nd(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [None, ops.GatherNd(grads[0], node.inputs[0]), None]


def _tensor_scatter_update(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    _, indices, updates = node.inputs
    kept = ops.TensorScatterUpdate(grads[0], indices, ops.ZerosLike(updates))
    return [kept, None, ops.GatherNd(grads[0], indices)]


def _tensor_scatter_add(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    chosen = ops.GatherNd(grads[0], node.inputs[1])
    return [grads[0], None, ops.Neg(chosen) if node.op == "TensorScatterSub" else chosen]


def _tensor_scatter_extreme(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """TensorScatterMax and Min: divide the gradient among the elements that equal the result.

    All elements of `x` and `updates` that equal an element of the result get equal shares.
    """
    x, indices, updates = node.inputs
    dtype = type_of(x)
    y = (node, 0)
    from_x = ops.Cast(ops.Equal(x, y), DstT=dtype)
    from_updates = ops.Cast(ops.Equal(updates, ops.GatherNd(y, indices)), DstT=dtype)
    share = ops.RealDiv(grads[0], ops.TensorScatterAdd(from_x, indices, from_updates))
    return [ops.Mul(from_x, share), None, ops.Mul(from_updates, ops.GatherNd(share, indices))]


def _dynamic_partition(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    data, partitions = node.inputs
    count = node.attr("num_partitions")
    places = ops.Reshape(
        ops.Range(ops.indices(0), ops.Size(partitions), ops.indices(1)), ops.Shape(partitions)
    )
    parts = ops.DynamicPartition(places, partitions, num_partitions=count)
    whole = ops.DynamicStitch(list(parts), list(grads))
    return [ops.Reshape(whole, ops.Shape(data)), None]


def _dynamic_stitch(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    indices = node.inputs[: len(node.inputs) // 2]
    parts = [ops.GatherV2(grads[0], _int32(ops, each), ops.indices(0)) for each in indices]
    return [*([None] * len(indices)), *parts]


# --- moved elements -------------------------------------------------------------------------------


def _tile(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Tile: sum the gradients of the copies of each element of `x`.

    Each dimension of the gradient is split into two, (number of copies, size), to sum over the
    first.
    """
    x, multiples = node.inputs
    shape = ops.Shape(x)
    pairs = ops.Reshape(ops.Pack([_int32(ops, multiples), shape], axis=1), ops.indices([-1]))
    axes = ops.Range(ops.indices(0), ops.Size(pairs), ops.indices(2))
    return [ops.Reshape(ops.Sum(ops.Reshape(grads[0], pairs), axes), shape), None]


def _mirror_pad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.MirrorPadGrad(grads[0], node.inputs[1], mode=node.attr("mode")), None]


def _mirror_pad_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.MirrorPad(grads[0], node.inputs[1], mode=node.attr("mode")), None]


def _roll(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    _, shift, axis = node.inputs
    return [ops.Roll(grads[0], ops.Neg(shift), axis), None, None]


def _reverse_sequence(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    attrs = {name: node.attr(name) for name in ("seq_dim", "batch_dim")}
    return [ops.ReverseSequence(grads[0], node.inputs[1], **attrs), None]


def _move_back(
    inverse: str,
    attr_names: Sequence[str],
    ops: GradientNodes,
    node: Node,
    grads: Sequence[Endpoint],
) -> Gradients:
    """Return the gradient of an op that only moves elements.

    `inverse` is the op that moves them back; `attr_names` are the attributes that both ops share.
    """
    attrs = {name: node.attr(name) for name in attr_names}
    others = node.inputs[1:]
    return [ops.add(inverse, grads[0], *others, **attrs), *([None] * len(others))]


def _moved_back_by(inverse: str, *attr_names: str) -> GradientFunction:
    return functools.partial(_move_back, inverse, attr_names)


def _strided_slice_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    masks = {name: node.attr(name) for name in names}
    bounds = node.inputs[1:4]
    return [None, None, None, None, ops.StridedSlice(grads[0], *bounds, **masks)]


def _fill(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [None, _sum_of_all(ops, grads[0])]


def _sum_of_all(ops: GradientNodes, x: Endpoint) -> Endpoint:
    output: Endpoint = ops.Sum(ops.Reshape(x, ops.indices([-1])), ops.indices([0]))
    return output


def _clip_by_value(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, low, high = node.inputs
    zeros = ops.ZerosLike(grads[0])
    is_low, is_high = ops.Less(x, low), ops.Greater(x, high)
    kept = ops.SelectV2(ops.LogicalOr(is_low, is_high), zeros, grads[0])
    below = ops.SelectV2(is_low, grads[0], zeros)
    above = ops.SelectV2(is_high, grads[0], zeros)
    return [kept, ops.reduced_to(below, low, x), ops.reduced_to(above, high, x)]


# --- diagonals ------------------------------------------------------------------------------------


def _matrix_diag_part(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.MatrixSetDiag(ops.ZerosLike(node.inputs[0]), grads[0])]


def _matrix_set_diag(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    kept = ops.MatrixSetDiag(grads[0], ops.ZerosLike(node.inputs[1]))
    return [kept, ops.MatrixDiagPart(grads[0])]


def _aligned(node: Node) -> dict[str, AttributeValue]:
    """Return the attribute `align` for version 3 of a diagonal op; version 2 does not have it."""
    return {"align": node.attr("align")} if node.op.endswith("V3") else {}


def _matrix_diag_v3(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    version = node.op[-2:]
    part = f"MatrixDiagPart{version}"
    zero = ops.like(0, grads[0])
    return [ops.add(part, grads[0], node.inputs[1], zero, **_aligned(node)), *([None] * 4)]


def _matrix_diag_part_v3(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, k, _ = node.inputs
    zeros, change = ops.ZerosLike(x), f"MatrixSetDiag{node.op[-2:]}"
    return [ops.add(change, zeros, grads[0], k, **_aligned(node)), None, None]


def _matrix_set_diag_v3(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    _, diagonal, k = node.inputs
    version, zero = node.op[-2:], ops.like(0, grads[0])
    kept = ops.add(node.op, grads[0], ops.ZerosLike(diagonal), k, **_aligned(node))
    part = ops.add(f"MatrixDiagPart{version}", grads[0], k, zero, **_aligned(node))
    return [kept, part, None]


# --- along an axis --------------------------------------------------------------------------------


def _cumsum(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    turned = {"exclusive": node.attr("exclusive"), "reverse": not node.attr("reverse")}
    return [ops.Cumsum(grads[0], node.inputs[1], **turned), None]


def _cumprod(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Cumprod: for each factor x, sum y × dy over the outputs y that contain x, and divide by x.

    If a factor is zero, its gradient is zero, which is wrong but the same as in TensorFlow.
    """
    x, axis = node.inputs
    turned = {"exclusive": node.attr("exclusive"), "reverse": not node.attr("reverse")}
    weighted = ops.Cumsum(ops.Mul(ops.conjugate((node, 0)), grads[0]), axis, **turned)
    return [ops.DivNoNan(weighted, ops.conjugate(x)), None]


def _prod(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Prod: multiply the gradient by the product of all other elements.

    This product is not computed by division because an element may be zero.
    """
    x, axes = node.inputs
    shape, rank = ops.Shape(x), ops.Rank(x)
    axes = ops.Reshape(_int32(ops, axes), ops.indices([-1]))
    axes = ops.FloorMod(ops.AddV2(axes, rank), rank)
    every = ops.Range(ops.indices(0), rank, ops.indices(1))
    others, _ = ops.ListDiff(every, axes)
    order = _joined(ops, axes, others)
    moved = ops.Transpose(x, order)
    count = _product(ops, ops.GatherV2(shape, axes, ops.indices(0)))
    rest = _product(ops, ops.GatherV2(shape, others, ops.indices(0)))
    rows = ops.Reshape(moved, _joined(ops, count, rest))
    before = ops.Cumprod(rows, ops.indices(0), exclusive=True)
    after = ops.Cumprod(rows, ops.indices(0), exclusive=True, reverse=True)
    partial = ops.Reshape(ops.conjugate(ops.Mul(before, after)), ops.Shape(moved))
    kept = ops.DynamicStitch([every, axes], [shape, ops.Fill(ops.Shape(axes), ops.indices(1))])
    partial = ops.Transpose(partial, ops.InvertPermutation(order))
    return [ops.Mul(ops.Reshape(grads[0], kept), partial), None]


def _strided_slice_update(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """TensorStridedSliceUpdate: `value` is broadcast to the slice that it replaces."""
    _, *bounds, value = node.inputs
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    masks = {name: node.attr(name) for name in names}
    part = ops.StridedSlice(grads[0], *bounds, **masks)
    kept = ops.TensorStridedSliceUpdate(grads[0], *bounds, ops.ZerosLike(part), **masks)
    return [kept, None, None, None, ops.reduced_to(part, value, part)]


ARRAY_GRADIENTS: dict[str, GradientFunction] = {
    "Gather": _gather,
    "GatherV2": _gather_v2,
    "ScatterNd": _scatter_nd,
    "TensorScatterUpdate": _tensor_scatter_update,
    "TensorScatterAdd": _tensor_scatter_add,
    "TensorScatterSub": _tensor_scatter_add,
    "ScatterNdNonAliasingAdd": _tensor_scatter_add,
    "TensorStridedSliceUpdate": _strided_slice_update,
    "TensorScatterMax": _tensor_scatter_extreme,
    "TensorScatterMin": _tensor_scatter_extreme,
    "DynamicPartition": _dynamic_partition,
    "DynamicStitch": _dynamic_stitch,
    "ParallelDynamicStitch": _dynamic_stitch,
    "Tile": _tile,
    "MirrorPad": _mirror_pad,
    "MirrorPadGrad": _mirror_pad_grad,
    "Roll": _roll,
    "ReverseSequence": _reverse_sequence,
    "SpaceToBatchND": _moved_back_by("BatchToSpaceND"),
    "BatchToSpaceND": _moved_back_by("SpaceToBatchND"),
    "SpaceToBatch": _moved_back_by("BatchToSpace", "block_size"),
    "BatchToSpace": _moved_back_by("SpaceToBatch", "block_size"),
    "SpaceToDepth": _moved_back_by("DepthToSpace", "block_size", "data_format"),
    "DepthToSpace": _moved_back_by("SpaceToDepth", "block_size", "data_format"),
    "Diag": _moved_back_by("DiagPart"),
    "DiagPart": _moved_back_by("Diag"),
    "MatrixDiag": _moved_back_by("MatrixDiagPart"),
    "MatrixBandPart": _moved_back_by("MatrixBandPart"),
    "MatrixDiagPart": _matrix_diag_part,
    "MatrixSetDiag": _matrix_set_diag,
    "MatrixDiagV2": _matrix_diag_v3,
    "MatrixDiagV3": _matrix_diag_v3,
    "MatrixDiagPartV2": _matrix_diag_part_v3,
    "MatrixDiagPartV3": _matrix_diag_part_v3,
    "MatrixSetDiagV2": _matrix_set_diag_v3,
    "MatrixSetDiagV3": _matrix_set_diag_v3,
    "StridedSliceGrad": _strided_slice_grad,
    "Fill": _fill,
    "ClipByValue": _clip_by_value,
    "Cumsum": _cumsum,
    "Cumprod": _cumprod,
    "Prod": _prod,
}
