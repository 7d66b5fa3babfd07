"""The gradient functions of ops, for SymbolicGradient and for `gradients` in the Python API.

A gradient function takes the GradientNodes with which it adds nodes, the node of the forward pass,
and the gradients with respect to the outputs of that node. It returns the gradients with respect to
the inputs of that node, with None for each input that has no gradient. Backpropagation ends at the
ops in `NO_GRADIENT`.

TF: tensorflow/core/ops/math_grad.cc, array_grad.cc, nn_grad.cc (REGISTER_OP_GRADIENT), and for
other ops tensorflow/python/ops/*_grad.py (RegisterGradient)
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.dtypes import DataType
from runtime.graph.gradients.array_gradients import ARRAY_GRADIENTS
from runtime.graph.gradients.band_matrix_gradients import BAND_MATRIX_GRADIENTS
from runtime.graph.gradients.decomposition_gradients import DECOMPOSITION_GRADIENTS
from runtime.graph.gradients.elementwise_gradients import (
    ELEMENTWISE_GRADIENTS,
    GradientFunction,
    Gradients,
)
from runtime.graph.gradients.fourier_gradients import FOURIER_GRADIENTS
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.gradients.image_gradients import IMAGE_GRADIENTS
from runtime.graph.gradients.linear_algebra_gradients import LINEAR_ALGEBRA_GRADIENTS
from runtime.graph.gradients.list_gradients import LIST_GRADIENTS
from runtime.graph.gradients.nn_gradients import NN_GRADIENTS
from runtime.graph.gradients.normalization_gradients import NORMALIZATION_GRADIENTS
from runtime.graph.gradients.pooling_gradients import POOLING_GRADIENTS
from runtime.graph.gradients.quantization_gradients import QUANTIZATION_GRADIENTS
from runtime.graph.gradients.ragged_gradients import RAGGED_GRADIENTS
from runtime.graph.gradients.random_gradients import RANDOM_GRADIENTS
from runtime.graph.gradients.segment_gradients import SEGMENT_GRADIENTS
from runtime.graph.gradients.sorting_gradients import SORTING_GRADIENTS
from runtime.graph.gradients.sparse_gradients import SPARSE_GRADIENTS
from runtime.graph.gradients.sparse_matrix_gradients import SPARSE_MATRIX_GRADIENTS
from runtime.graph.gradients.special_function_gradients import SPECIAL_FUNCTION_GRADIENTS
from runtime.graph.node import Endpoint, Node

# --- reductions, products, selection --------------------------------------------------------------


def _reduced_shape(ops: GradientNodes, x: Endpoint, axes: Endpoint) -> tuple[Endpoint, Endpoint]:
    """Return (the shape of x, the shape of x with 1 in place of the sizes of the reduced axes)."""
    shape = ops.Shape(x)
    rank = ops.Size(shape)
    axes = ops.Cast(axes, DstT=DataType.INT32)
    axes = ops.FloorMod(ops.AddV2(ops.Reshape(axes, ops.indices([-1])), rank), rank)
    positions = ops.Range(ops.indices(0), rank, ops.indices(1))
    ones = ops.Fill(ops.Shape(axes), ops.indices(1))
    return shape, ops.DynamicStitch([positions, axes], [shape, ones])


def _sum(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    shape, kept = _reduced_shape(ops, *node.inputs)
    return [ops.BroadcastTo(ops.Reshape(grads[0], kept), shape), None]


def _mean(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    (dx, _) = _sum(ops, node, grads)
    sizes = ops.RealDiv(
        ops.Cast(ops.Size(node.inputs[0]), DstT=type_of(grads[0])),
        ops.Cast(ops.Maximum(ops.Size((node, 0)), ops.indices(1)), DstT=type_of(grads[0])),
    )
    return [ops.RealDiv(dx, sizes), None]


def _extreme(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Max and Min: divide the gradient equally among all elements that equal the result."""
    x = node.inputs[0]
    _, kept = _reduced_shape(ops, *node.inputs)
    y = ops.Reshape((node, 0), kept)
    hits = ops.Cast(ops.Equal(x, y), DstT=type_of(x))
    count = ops.Reshape(ops.Sum(hits, node.inputs[1]), kept)
    return [ops.Mul(ops.RealDiv(hits, count), ops.Reshape(grads[0], kept)), None]


def _euclidean_norm(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x = node.inputs[0]
    _, kept = _reduced_shape(ops, *node.inputs)
    share = ops.Reshape(ops.RealDiv(grads[0], (node, 0)), kept)
    return [ops.Mul(x, share), None]


def _add_n(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [grads[0]] * len(node.inputs)


def _select(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    condition = node.inputs[0]
    zeros = ops.ZerosLike(grads[0])
    return [
        None,
        ops.Select(condition, grads[0], zeros),
        ops.Select(condition, zeros, grads[0]),
    ]


def _select_v2(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    condition, a, b = node.inputs
    zeros = ops.like(0, grads[0])
    da = ops.SelectV2(condition, grads[0], zeros)
    db = ops.SelectV2(condition, zeros, grads[0])
    return [None, ops.reduced_to(da, a, (node, 0)), ops.reduced_to(db, b, (node, 0))]


def _mat_mul(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return _product(ops, node, grads[0], "MatMul", ("transpose_a", "transpose_b"))


def _product(
    ops: GradientNodes, node: Node, dy: Endpoint, op: str, flags: tuple[str, str]
) -> list[Endpoint]:
    a, b = (ops.conjugate(each) if op == "MatMul" else each for each in node.inputs)
    ta, tb = node.attr(flags[0]), node.attr(flags[1])

    def product(x: Endpoint, y: Endpoint, x_turned: bool, y_turned: bool) -> Endpoint:
        turned = {flags[0]: x_turned, flags[1]: y_turned}
        output: Endpoint = ops.add(op, x, y, **turned)
        return output

    da = product(b, dy, tb, True) if ta else product(dy, b, False, not tb)
    db = product(dy, a, True, ta) if tb else product(a, dy, not ta, False)
    return [da, db]


def _batch_mat_mul(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    a, b = node.inputs
    op = "BatchMatMul" if node.op == "BatchMatMul" else "BatchMatMulV2"
    da, db = _product(ops, node, grads[0], op, ("adj_x", "adj_y"))
    if node.op == "BatchMatMul":
        return [da, db]

    def reduced(gradient: Endpoint, operand: Endpoint, other: Endpoint) -> Endpoint:
        last_two = {"begin_mask": 1, "end_mask": 0}
        bounds = [ops.indices([0]), ops.indices([-2]), ops.indices([1])]
        batch = ops.StridedSlice(ops.Shape(operand), *bounds, **last_two)
        other_batch = ops.StridedSlice(ops.Shape(other), *bounds, **last_two)
        axes, _ = ops.BroadcastGradientArgs(batch, other_batch)
        output: Endpoint = ops.Reshape(ops.Sum(gradient, axes), ops.Shape(operand))
        return output

    return [reduced(da, a, b), reduced(db, b, a)]


# --- shapes and slices ----------------------------------------------------------------------------


def _reshape(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.Reshape(grads[0], ops.Shape(node.inputs[0])), None]


def _transpose(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.add(node.op, grads[0], ops.InvertPermutation(node.inputs[1])), None]


def _pack(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return list(ops.Unpack(grads[0], num=len(node.inputs), axis=node.attr("axis")))


def _unpack(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.Pack(list(grads), axis=node.attr("axis"))]


def _concat(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Concat and ConcatV2: slice the gradient into the parts that belong to the inputs.

    The axis is the first input of Concat and the last input of ConcatV2.
    """
    is_first = node.op == "Concat"
    axis, *values = node.inputs if is_first else [node.inputs[-1], *node.inputs[:-1]]
    axis = ops.Cast(axis, DstT=DataType.INT32)
    rank = ops.Rank(values[0])
    axis = ops.FloorMod(ops.AddV2(axis, rank), rank)
    shapes = [ops.Shape(value) for value in values]
    offsets = ops.ConcatOffset(axis, shapes)
    parts: list[Endpoint | None] = [
        ops.Slice(grads[0], offset, shape) for offset, shape in zip(offsets, shapes, strict=True)
    ]
    return [None, *parts] if is_first else [*parts, None]


def _split(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [None, ops.ConcatV2(list(grads), node.inputs[0])]


def _split_v(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.ConcatV2(list(grads), node.inputs[2]), None, None]


def _slice(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, begin, _ = node.inputs
    shape = ops.Cast(ops.Shape(x), DstT=type_of(begin))
    after = ops.Sub(ops.Sub(shape, begin), ops.Cast(ops.Shape((node, 0)), DstT=type_of(begin)))
    return [ops.Pad(grads[0], ops.Pack([begin, after], axis=1)), None, None]


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _strided_slice(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, begin, end, strides = node.inputs
    masks = {name: node.attr(name) for name in _MASKS}
    shape = ops.Shape(x, out_type=type_of(begin))
    return [ops.StridedSliceGrad(shape, begin, end, strides, grads[0], **masks), None, None, None]


def _pad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, paddings = node.inputs[:2]
    before = ops.Slice(paddings, ops.indices([0, 0]), ops.indices([-1, 1]))
    before = ops.Reshape(before, ops.indices([-1]))
    shape = ops.Shape(x, out_type=type_of(before))
    return [ops.Slice(grads[0], before, shape), *([None] * (len(node.inputs) - 1))]


def _gather_nd(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, indices = node.inputs
    return [ops.ScatterNd(indices, grads[0], ops.Shape(x, out_type=type_of(indices))), None]


def _reverse(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.add(node.op, grads[0], node.inputs[1]), None]


def _broadcast_to(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.reduced_to(grads[0], node.inputs[0], (node, 0)), None]


def _identity_n(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return list(grads)


# --- neural networks ------------------------------------------------------------------------------


def _cross_entropy(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Return the gradients that come through the first output, the loss.

    `cross_entropy_slope` gives the gradient that comes through the second output.
    """
    loss = ops.ExpandDims(grads[0], ops.indices(-1))
    logits = node.inputs[0]
    labels = ops.Neg(ops.Mul(loss, ops.LogSoftmax(logits)))
    is_sparse = node.op == "SparseSoftmaxCrossEntropyWithLogits"
    return [ops.Mul(loss, (node, 1)), None if is_sparse else labels]


def _bias_add(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [grads[0], ops.BiasAddGrad(grads[0], data_format=node.attr("data_format"))]


def _max_pool(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    names = ("ksize", "strides", "padding", "explicit_paddings", "data_format")
    attrs = {name: node.attr(name) for name in names}
    return [ops.MaxPoolGrad(node.inputs[0], (node, 0), grads[0], **attrs)]


def _avg_pool(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    names = ("ksize", "strides", "padding", "data_format")
    attrs = {name: node.attr(name) for name in names}
    return [ops.AvgPoolGrad(ops.Shape(node.inputs[0]), grads[0], **attrs)]


GRADIENT_FUNCTIONS: dict[str, GradientFunction] = {
    **ELEMENTWISE_GRADIENTS,
    **SPECIAL_FUNCTION_GRADIENTS,
    **ARRAY_GRADIENTS,
    **SEGMENT_GRADIENTS,
    **LINEAR_ALGEBRA_GRADIENTS,
    **BAND_MATRIX_GRADIENTS,
    **DECOMPOSITION_GRADIENTS,
    **FOURIER_GRADIENTS,
    **NN_GRADIENTS,
    **POOLING_GRADIENTS,
    **NORMALIZATION_GRADIENTS,
    **IMAGE_GRADIENTS,
    **LIST_GRADIENTS,
    **SPARSE_GRADIENTS,
    **SPARSE_MATRIX_GRADIENTS,
    **QUANTIZATION_GRADIENTS,
    **RAGGED_GRADIENTS,
    **RANDOM_GRADIENTS,
    **SORTING_GRADIENTS,
    "Sum": _sum,
    "Mean": _mean,
    "Max": _extreme,
    "Min": _extreme,
    "EuclideanNorm": _euclidean_norm,
    "AddN": _add_n,
    "AccumulateNV2": _add_n,
    "Select": _select,
    "SelectV2": _select_v2,
    "MatMul": _mat_mul,
    "BatchMatMul": _batch_mat_mul,
    "BatchMatMulV2": _batch_mat_mul,
    "BatchMatMulV3": _batch_mat_mul,
    "Reshape": _reshape,
    "ExpandDims": _reshape,
    "Transpose": _transpose,
    "ConjugateTranspose": _transpose,
    "Pack": _pack,
    "Unpack": _unpack,
    "Concat": _concat,
    "ConcatV2": _concat,
    "Split": _split,
    "SplitV": _split_v,
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "Pad": _pad,
    "PadV2": _pad,
    "GatherNd": _gather_nd,
    "Reverse": _reverse,
    "ReverseV2": _reverse,
    "BroadcastTo": _broadcast_to,
    "IdentityN": _identity_n,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _cross_entropy,
    "BiasAdd": _bias_add,
    "MaxPool": _max_pool,
    "AvgPool": _avg_pool,
}

# Ops that have no gradient because their outputs are piecewise constant or do not depend on the
# values of the inputs. The output of StopGradient must be treated as constant.
NO_GRADIENT = frozenset((
    "Const", "Placeholder", "Shape", "ShapeN", "Rank", "Size", "StopGradient", "OnesLike",
    "ZerosLike",
    "Range", "LinSpace", "OneHot", "ArgMax", "ArgMin", "Less", "LessEqual", "Greater",
    "GreaterEqual", "Equal", "NotEqual", "ApproximateEqual", "LogicalAnd", "LogicalOr",
    "LogicalNot", "All", "Any", "Floor", "Ceil", "Round", "Rint", "FloorDiv",
    "TruncateDiv", "IsNan", "IsInf", "IsFinite", "RandomUniform", "RandomStandardNormal",
    "TruncatedNormal", "NoOp", "Assert", "ConcatOffset", "BroadcastGradientArgs",
    "InvertPermutation", "VarHandleOp",
))  # fmt: skip
