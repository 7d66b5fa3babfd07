"""Gradient functions of ops that select elements by their order: TopK, NthElement and others.

TF: tensorflow/python/ops/nn_grad.py; tensorflow_text/python/ops/mst_ops.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _size_of_part(
    ops: GradientNodes, shape: Endpoint, begin: int | None, end: int | None
) -> Endpoint:
    """Return the product of `shape[begin:end]`; None is an open end."""
    bounds = [ops.indices([each or 0]) for each in (begin, end)]
    masks = {"begin_mask": int(begin is None), "end_mask": int(end is None)}
    part = ops.StridedSlice(shape, *bounds, ops.indices([1]), **masks)
    output: Endpoint = ops.Prod(part, ops.indices([0]))
    return output


def _count(ops: GradientNodes, limit: Endpoint) -> Endpoint:
    output: Endpoint = ops.Range(ops.indices(0), limit, ops.indices(1))
    return output


def _chosen(ops: GradientNodes, node: Node, grads: Sequence[Endpoint], axis: int) -> Gradients:
    """Return zeros with the gradients of the chosen elements at their places.

    The second output of the op has the indices of the chosen elements along `axis`.
    """
    x = node.inputs[0]
    shape, after = ops.Shape(x), None if axis == -1 else axis + 1
    before = _size_of_part(ops, shape, None, axis)
    width = _size_of_part(ops, shape, axis, after)
    inner = ops.indices(1) if after is None else _size_of_part(ops, shape, after, None)
    cube = ops.Pack([before, ops.indices(-1), inner], axis=0)
    chosen = ops.Reshape(ops.Cast((node, 1), DstT=DataType.INT32), cube)
    lines = ops.Reshape(ops.Mul(_count(ops, before), width), ops.indices([-1, 1, 1]))
    places = ops.AddV2(ops.Mul(ops.AddV2(chosen, lines), inner), _count(ops, inner))
    spread = ops.ScatterNd(
        ops.Reshape(places, ops.indices([-1, 1])),
        ops.Reshape(grads[0], ops.indices([-1])),
        ops.Reshape(ops.Size(x), ops.indices([1])),
    )
    return [ops.Reshape(spread, shape), *([None] * (len(node.inputs) - 1))]


def _top_k(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return _chosen(ops, node, grads, -1)


def _approximate_top_k(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return _chosen(ops, node, grads, int(node.attr("reduction_dimension")))


def _nth_element(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Divide the gradient equally among all elements of a row that equal the result."""
    x, last = node.inputs[0], ops.indices(-1)
    hits = ops.Cast(ops.Equal(ops.ExpandDims((node, 0), last), x), DstT=type_of(x))
    share = ops.RealDiv(hits, ops.Sum(hits, ops.indices([-1]), keep_dims=True))
    return [ops.Mul(share, ops.ExpandDims(grads[0], last)), None]


def _isotonic_regression(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Replace the gradients of each segment of a row `[…, n]` by their mean.

    The second output of the op has the number of the segment of each element.
    """
    x, segments = node.inputs[0], (node, 1)
    shape = ops.Shape(x)
    width = _size_of_part(ops, shape, -1, None)
    rows = ops.Reshape(segments, ops.Pack([ops.indices(-1), width], axis=0))
    count = _size_of_part(ops, ops.Shape(rows), 0, 1)
    starts = ops.Reshape(ops.Mul(_count(ops, count), width), ops.indices([-1, 1]))
    ids = ops.Reshape(ops.AddV2(rows, starts), shape)
    size = ops.Size(x)
    total = ops.UnsortedSegmentSum(grads[0], ids, size)
    members = ops.UnsortedSegmentSum(ops.OnesLike(grads[0]), ids, size)
    mean = ops.DivNoNan(total, members)
    return [ops.Cast(ops.GatherV2(mean, ids, ops.indices(0)), DstT=type_of(x))]


def _max_spanning_tree(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Give the gradient of each tree `[batch]` to its arcs, which the second output has."""
    size = _size_of_part(ops, ops.Shape((node, 1)), 1, 2)
    one, zero = (ops.like(each, grads[0]) for each in (1, 0))
    is_taken = ops.OneHot((node, 1), size, one, zero)
    return [None, ops.Mul(is_taken, ops.Reshape(grads[0], ops.indices([-1, 1, 1])))]


SORTING_GRADIENTS: dict[str, GradientFunction] = {
    "TopK": _top_k,
    "TopKV2": _top_k,
    "ApproxTopK": _approximate_top_k,
    "NthElement": _nth_element,
    "IsotonicRegression": _isotonic_regression,
    "MaxSpanningTree": _max_spanning_tree,  # of TF Text, an op package
}
