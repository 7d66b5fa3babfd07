"""Gradient functions of segment ops: sum, mean, product, maximum and minimum of rows.

TF: tensorflow/python/ops/math_grad.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _gather_rows(ops: GradientNodes, values: Endpoint, ids: Endpoint) -> Endpoint:
    output: Endpoint = ops.GatherV2(values, ids, ops.indices(0))
    return output


def _gather_rows_or_zeros(ops: GradientNodes, values: Endpoint, ids: Endpoint) -> Endpoint:
    """Return `values[ids]`, with zeros for each negative id, which belongs to no segment."""
    zero = ops.ZerosLike(ids)
    found = _gather_rows(ops, values, ops.Maximum(ids, zero))
    return _select_rows(ops, ops.GreaterEqual(ids, zero), found, ops.ZerosLike(found))


def _select_rows(ops: GradientNodes, of_ids: Endpoint, a: Endpoint, b: Endpoint) -> Endpoint:
    """Return the rows of `a` for which the condition `of_ids` is true, else the rows of `b`.

    `of_ids` has one boolean per segment id.
    """
    missing = ops.Sub(ops.Rank(a), ops.Rank(of_ids))
    ones = ops.Fill(ops.Reshape(missing, ops.indices([1])), ops.indices(1))
    shape = ops.ConcatV2([ops.Shape(of_ids), ones], ops.indices(0))
    output: Endpoint = ops.SelectV2(ops.Reshape(of_ids, shape), a, b)
    return output


def _segment_sum(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [_gather_rows(ops, grads[0], node.inputs[1]), None]


def _segment_mean(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, ids = node.inputs
    begin, end = ops.indices([1]), ops.Reshape(ops.Rank(x), ops.indices([1]))
    ones = ops.Fill(ops.Sub(end, begin), ops.indices(1))
    shape = ops.ConcatV2([ops.Shape(ids), ones], ops.indices(0))
    counts = ops.SegmentSum(ops.Fill(shape, ops.like(1, x)), ids)
    return [_gather_rows(ops, ops.RealDiv(grads[0], counts), ids), None]


def _segment_extreme(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SegmentMax and Min: divide the gradient among the elements that equal the segment's result.

    All of these elements get equal shares.
    """
    x, ids = node.inputs
    is_extreme = ops.Equal(x, _gather_rows(ops, (node, 0), ids))
    counts = ops.SegmentSum(ops.Cast(is_extreme, DstT=type_of(x)), ids)
    share = _gather_rows(ops, ops.RealDiv(grads[0], counts), ids)
    return [ops.SelectV2(is_extreme, share, ops.ZerosLike(share)), None]


def _unsorted_sum(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [_gather_rows_or_zeros(ops, grads[0], node.inputs[1]), None, None]


def _unsorted_extreme(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, ids, count = node.inputs
    # An element that belongs to no segment may be equal to 0 here, but its share is zero.
    is_extreme = ops.Equal(x, _gather_rows_or_zeros(ops, (node, 0), ids))
    counts = ops.UnsortedSegmentSum(ops.Cast(is_extreme, DstT=type_of(x)), ids, count)
    share = _gather_rows_or_zeros(ops, ops.RealDiv(grads[0], counts), ids)
    return [ops.SelectV2(is_extreme, share, ops.ZerosLike(share)), None, None]


def _product(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SegmentProd: multiply the gradient by the product of the other elements of the segment.

    If a segment has one zero, only the zero has a gradient other than 0; if it has several zeros,
    all gradients are 0.
    """
    x, ids, *count = node.inputs
    sum_op, product_op = (
        ("UnsortedSegmentSum", "UnsortedSegmentProd") if count else ("SegmentSum", "SegmentProd")
    )
    rows = _gather_rows_or_zeros if count else _gather_rows
    zero = ops.ZerosLike(x)
    is_zero = ops.Equal(x, zero)
    zeros = ops.add(sum_op, ops.Cast(is_zero, DstT=DataType.INT32), ids, *count)
    has_many = ops.Greater(zeros, ops.indices(1))
    dy = ops.SelectV2(has_many, ops.ZerosLike(grads[0]), grads[0])
    rest = ops.add(product_op, ops.SelectV2(is_zero, ops.OnesLike(x), x), ids, *count)
    others = ops.SelectV2(is_zero, rows(ops, rest, ids), ops.RealDiv(rows(ops, (node, 0), ids), x))
    dx = ops.Mul(rows(ops, dy, ids), others)
    return [dx, None, *([None] * len(count))]


def _sparse(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SparseSegmentSum, Mean and SqrtN: add the op `…Grad` that computes the gradient of `x`.

    The ops `…WithNumSegments` have an additional input, the number of segments.
    """
    x, indices, ids = node.inputs[:3]
    op = f"{node.op.removesuffix('WithNumSegments')}Grad"
    first = (ops.indices([0]), ops.indices([1]), ops.indices([1]))
    rows = ops.StridedSlice(ops.Shape(x), *first, shrink_axis_mask=1)
    dx = ops.add(op, grads[0], indices, ids, rows)
    return [dx, *([None] * (len(node.inputs) - 1))]


SEGMENT_GRADIENTS: dict[str, GradientFunction] = {
    "SegmentSum": _segment_sum,
    "SegmentMean": _segment_mean,
    "SegmentMax": _segment_extreme,
    "SegmentMin": _segment_extreme,
    "SegmentProd": _product,
    "UnsortedSegmentSum": _unsorted_sum,
    "UnsortedSegmentMax": _unsorted_extreme,
    "UnsortedSegmentMin": _unsorted_extreme,
    "UnsortedSegmentProd": _product,
    **{
        f"SparseSegment{kind}{suffix}": _sparse
        for kind in ("Sum", "Mean", "SqrtN")
        for suffix in ("", "WithNumSegments")
    },
}
