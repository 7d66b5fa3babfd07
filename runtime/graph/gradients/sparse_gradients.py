"""Gradient functions of sparse ops; sparse values and dense operands have gradients.

TF: tensorflow/python/ops/sparse_grad.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _int64(ops: GradientNodes, values: Endpoint) -> Endpoint:
    is_known = type_of(values) is DataType.INT64
    output: Endpoint = values if is_known else ops.Cast(values, DstT=DataType.INT64)
    return output


def _reorder(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    indices, values, shape = node.inputs
    places = ops.Range(ops.indices(0), ops.Size(values), ops.indices(1))
    _, order = ops.SparseReorder(indices, places, shape)
    back = ops.InvertPermutation(order)
    return [None, ops.GatherV2(grads[1], back, ops.indices(0)), None]


def _reduce_sum(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SparseReduceSum: give each value the gradient of the sum to which it was added.

    The index of the sum is the index of the value with 0 in place of each summed axis.
    """
    indices, _, shape, axes = node.inputs
    sizes, rank = ops.Cast(shape, DstT=DataType.INT32), ops.Size(shape)
    axes = ops.FloorMod(ops.Reshape(axes, ops.indices([-1])), rank)
    every = ops.Range(ops.indices(0), rank, ops.indices(1))
    ones = ops.Fill(ops.Shape(axes), ops.indices(1))
    kept = ops.DynamicStitch([every, axes], [sizes, ones])
    places = ops.FloorMod(indices, _int64(ops, kept))
    return [None, ops.GatherNd(ops.Reshape(grads[0], kept), places), None, None]


def _dense_add(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [None, ops.GatherNd(grads[0], node.inputs[0]), None, grads[0]]


def _elementwise(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SparseDenseCwiseMul and Div: return the gradients of the values and of the dense operand.

    The ops broadcast the dense operand to the shape of the sparse tensor.
    """
    indices, values, _, dense = node.inputs
    sizes = _int64(ops, ops.Shape(dense))
    missing = ops.Sub(ops.Reshape(ops.Size(node.inputs[2]), ops.indices([1])),
                      ops.Reshape(ops.Rank(dense), ops.indices([1])))  # fmt: skip
    begin = ops.ConcatV2([ops.indices([0]), missing], ops.indices(0))
    places = ops.FloorMod(ops.Slice(indices, begin, ops.indices([-1, -1])), sizes)
    other = ops.GatherNd(dense, places)
    if node.op == "SparseDenseCwiseMul":
        of_values, of_other = ops.Mul(grads[0], other), ops.Mul(grads[0], values)
    else:
        of_values = ops.RealDiv(grads[0], other)
        of_other = ops.Neg(ops.Mul(of_values, ops.RealDiv(values, other)))
    return [None, of_values, None, ops.ScatterNd(places, of_other, sizes)]


def _add(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    a_indices, b_indices = node.inputs[0], node.inputs[3]
    a_values, b_values = ops.SparseAddGrad(grads[1], a_indices, b_indices, (node, 0))
    return [None, a_values, None, None, b_values, None, None]


def _slice(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    indices, _, _, start, _ = node.inputs
    return [None, ops.SparseSliceGrad(grads[1], indices, start, (node, 0)), None, None, None]


def _softmax(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SparseSoftmax: the gradient of Softmax, of the stored elements of each row alone."""
    (indices, _, shape), y = node.inputs, (node, 0)
    products = ops.Mul(y, grads[0])
    sums = ops.SparseReduceSum(indices, products, shape, ops.indices([-1]), keep_dims=True)
    rest = ops.SparseDenseCwiseAdd(indices, grads[0], shape, ops.Neg(sums))
    return [None, ops.Mul(rest, y), None]


def _to_dense(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SparseToDense: `default_value` has the rest of the gradient; `values` may be broadcast."""
    indices, shape, values, _ = node.inputs
    places = ops.Reshape(indices, ops.Pack([ops.indices(-1), ops.Size(shape)], axis=0))
    chosen = ops.GatherNd(grads[0], places)
    rest = ops.Sub(_total(ops, grads[0]), _total(ops, chosen))
    return [None, None, ops.reduced_to(chosen, values, chosen), rest]


def _total(ops: GradientNodes, x: Endpoint) -> Endpoint:
    output: Endpoint = ops.Sum(ops.Reshape(x, ops.indices([-1])), ops.indices([0]))
    return output


SPARSE_GRADIENTS: dict[str, GradientFunction] = {
    "SparseAdd": _add,
    "SparseSlice": _slice,
    "SparseSoftmax": _softmax,
    "SparseToDense": _to_dense,
    "SparseReorder": _reorder,
    "SparseReduceSum": _reduce_sum,
    "SparseTensorDenseAdd": _dense_add,
    "SparseDenseCwiseMul": _elementwise,
    "SparseDenseCwiseDiv": _elementwise,
}
