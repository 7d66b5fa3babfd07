"""Gradient functions of ragged tensors, which are given as row splits and flat values.

Only the flat values and default values have gradients.

TF: tensorflow/python/ops/ragged/ragged_array_ops.py, ragged_conversion_ops.py, ragged_gather_ops.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _first_size(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return the size of the first dimension of x, as a scalar."""
    bounds = (ops.indices([0]), ops.indices([1]), ops.indices([1]))
    output: Endpoint = ops.StridedSlice(ops.Shape(x), *bounds, shrink_axis_mask=1)
    return output


def _gather(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """RaggedGather: add the gradients of the gathered rows to the values of these rows."""
    *splits, values, chosen = node.inputs
    bounds, axis = splits[0], ops.indices(0)
    for each in splits[1:]:
        bounds = ops.GatherV2(each, bounds, axis)
    chosen = ops.Reshape(chosen, ops.indices([-1]))
    starts = ops.GatherV2(bounds, chosen, axis)
    ends = ops.GatherV2(bounds, ops.AddV2(chosen, ops.OnesLike(chosen)), axis)
    _, places = ops.RaggedRange(starts, ends, ops.like(1, starts))
    dx = ops.UnsortedSegmentSum(grads[-1], places, _first_size(ops, values))
    return [*([None] * len(splits)), dx, None]


def _to_tensor(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """RaggedTensorToTensor: the op applied to positions says where each row of values went.

    The position −1 stands for the default value.
    """
    _, values, default, *partitions = node.inputs
    types = node.attr("row_partition_types")
    names = [each.decode() if isinstance(each, bytes) else each for each in types]
    ragged_rank = sum(name != "FIRST_DIM_SIZE" for name in names)
    shape, count = ops.Shape(grads[0]), _first_size(ops, values)
    outer = ops.Slice(shape, ops.indices([0]), ops.indices([1 + ragged_rank]))
    positions = ops.Range(ops.indices(0), count, ops.indices(1))
    places = ops.RaggedTensorToTensor(
        outer, positions, ops.indices(-1), partitions, row_partition_types=types
    )
    of_values = ops.UnsortedSegmentSum(grads[0], places, count)
    inner = ops.Fill(ops.Reshape(ops.Sub(ops.Rank(grads[0]), ops.Rank(places)),
                                 ops.indices([1])), ops.indices(1))  # fmt: skip
    is_default = ops.Reshape(
        ops.Less(places, ops.indices(0)), ops.ConcatV2([outer, inner], ops.indices(0))
    )
    rest = ops.SelectV2(is_default, grads[0], ops.ZerosLike(grads[0]))
    of_default = ops.reduced_to(rest, default, rest)
    return [None, of_values, of_default, *([None] * len(partitions))]


def _to_sparse(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    *splits, values = node.inputs
    return [*([None] * len(splits)), ops.Reshape(grads[1], ops.Shape(values))]


def _fill_empty_rows(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """RaggedFillEmptyRows and SparseFillEmptyRows: add the op `…Grad`."""
    of_values, of_default = ops.add(f"{node.op}Grad", (node, 3), grads[1])
    return [None, of_values, None, of_default]


def _to_variant(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    *splits, values = node.inputs
    outer = splits[0] if splits else ops.constant(0, DataType.INT64)
    dtype = type_of(values)
    dx = ops.RaggedTensorToVariantGradient(grads[0], outer, ops.Shape(values), Tvalues=dtype)
    return [*([None] * len(splits)), dx]


def _from_variant(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    splits = [(node, index) for index in range(len(grads) - 1)]
    sizes = ops.static_sizes(node.inputs[0])
    is_batch = len(splits) > 0 if sizes is None else len(sizes) > 0
    types = {} if splits else {"Tsplits": node.attr("Tsplits")}
    return [ops.RaggedTensorToVariant(splits, grads[-1], batched_input=is_batch, **types)]


RAGGED_GRADIENTS: dict[str, GradientFunction] = {
    "RaggedGather": _gather,
    "RaggedTensorToTensor": _to_tensor,
    "RaggedTensorToSparse": _to_sparse,
    "RaggedFillEmptyRows": _fill_empty_rows,
    "SparseFillEmptyRows": _fill_empty_rows,
    "RaggedTensorToVariant": _to_variant,
    "RaggedTensorFromVariant": _from_variant,
}
