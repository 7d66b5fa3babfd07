"""Nodes that gradient functions of matrices share: products, adjoints, slices and shapes.

A matrix is the last two dimensions of a tensor, `[…, rows, columns]`.
"""

from __future__ import annotations

from runtime.graph.gradients.gradient_nodes import GradientNodes
from runtime.graph.node import Endpoint


def product(
    ops: GradientNodes, a: Endpoint, b: Endpoint, adjoint_a: bool = False, adjoint_b: bool = False
) -> Endpoint:
    """Return the products of the matrices a and b, or of their adjoints."""
    output: Endpoint = ops.BatchMatMulV2(a, b, adj_x=adjoint_a, adj_y=adjoint_b)
    return output


def adjoint(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return the adjoint of each matrix: `[…, n, m]` becomes `[…, m, n]`, conjugated if complex."""
    rank = ops.Rank(x)
    last = ops.Sub(rank, ops.indices([1]))
    before = ops.Sub(rank, ops.indices([2]))
    rest = ops.Range(ops.indices(0), ops.Sub(rank, ops.indices(2)), ops.indices(1))
    order = ops.ConcatV2([rest, last, before], ops.indices(0))
    output: Endpoint = ops.conjugate(ops.Transpose(x, order))
    return output


def batch_shape(ops: GradientNodes, x: Endpoint, rank: int = 2) -> Endpoint:
    """Return the shape of x without its last `rank` dimensions."""
    if rank == 0:
        whole: Endpoint = ops.Shape(x)
        return whole
    bounds = (ops.indices([0]), ops.indices([-rank]), ops.indices([1]))
    output: Endpoint = ops.StridedSlice(ops.Shape(x), *bounds, begin_mask=1)
    return output


def reduced_batch(ops: GradientNodes, dx: Endpoint, x: Endpoint, other: Endpoint) -> Endpoint:
    """Return `dx` summed to the shape of x.

    It is summed over the batch dimensions along which x was broadcast to fit `other`.
    """
    axes, _ = ops.BroadcastGradientArgs(batch_shape(ops, x), batch_shape(ops, other))
    output: Endpoint = ops.Reshape(ops.Sum(dx, axes), ops.Shape(x))
    return output


def tail_shape(ops: GradientNodes, x: Endpoint, count: int) -> Endpoint:
    """Return the sizes of the last `count` dimensions of x."""
    if count == 0:
        return ops.indices(())
    bounds = (ops.indices([-count]), ops.indices([0]), ops.indices([1]))
    output: Endpoint = ops.StridedSlice(ops.Shape(x), *bounds, end_mask=1)
    return output


def columns(ops: GradientNodes, x: Endpoint, begin: int | None, end: int | None) -> Endpoint:
    """Return `x[…, begin:end]`; None is an open end."""
    bounds = [ops.indices([0, each or 0]) for each in (begin, end)]
    masks = {"begin_mask": 2 * (begin is None), "end_mask": 2 * (end is None)}
    output: Endpoint = ops.StridedSlice(x, *bounds, ops.indices([1, 1]), ellipsis_mask=1, **masks)
    return output


def rows(ops: GradientNodes, x: Endpoint, begin: int | None, end: int | None) -> Endpoint:
    """Return `x[…, begin:end, :]`; None is an open end."""
    bounds = [ops.indices([0, each or 0, 0]) for each in (begin, end)]
    masks = {"begin_mask": 4 + 2 * (begin is None), "end_mask": 4 + 2 * (end is None)}
    ones = ops.indices([1, 1, 1])
    output: Endpoint = ops.StridedSlice(x, *bounds, ones, ellipsis_mask=1, **masks)
    return output


def row(ops: GradientNodes, x: Endpoint, index: int) -> Endpoint:
    """Return `x[…, index, :]`."""
    bounds = (ops.indices([0, index, 0]), ops.indices([0, index + 1, 0]), ops.indices([1, 1, 1]))
    masks = {"begin_mask": 4, "end_mask": 4, "shrink_axis_mask": 2, "ellipsis_mask": 1}
    output: Endpoint = ops.StridedSlice(x, *bounds, **masks)
    return output
