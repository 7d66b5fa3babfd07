"""Gradient functions of tridiagonal and banded matrices, which are given by their diagonals.

TF: tensorflow/python/ops/linalg_grad.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes
from runtime.graph.gradients.matrix_nodes import adjoint, product, reduced_batch, row, rows
from runtime.graph.node import Endpoint, Node


def _row_above(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return x `[…, n, k]` with every row replaced by the next one, and zeros as the last row."""
    zeros = ops.ZerosLike(rows(ops, x, 0, 1))
    output: Endpoint = ops.ConcatV2([rows(ops, x, 1, None), zeros], ops.indices(-2))
    return output


def _row_below(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return x `[…, n, k]` with every row replaced by the previous one; zeros are the first row."""
    zeros = ops.ZerosLike(rows(ops, x, 0, 1))
    output: Endpoint = ops.ConcatV2([zeros, rows(ops, x, None, -1)], ops.indices(-2))
    return output


def _tridiagonal_product(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """TridiagonalMatMul: the diagonals are `[…, 1, n]`, the right side is `[…, n, k]`."""
    above, main, below = (adjoint(ops, each) for each in node.inputs[:3])
    right, dy = ops.conjugate(node.inputs[3]), grads[0]

    def row_sums(x: Endpoint) -> Endpoint:
        total = ops.Sum(ops.Mul(x, dy), ops.indices([-1]))
        output: Endpoint = ops.ExpandDims(total, ops.indices(-2))
        return output

    of_right = ops.AddV2(
        ops.AddV2(_row_below(ops, ops.Mul(above, dy)), ops.Mul(main, dy)),
        _row_above(ops, ops.Mul(below, dy)),
    )
    shifted = (_row_above(ops, right), right, _row_below(ops, right))
    return [*map(row_sums, shifted), of_right]


def _tridiagonal_solve(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """TridiagonalSolve: solve with the transposed matrix; complex numbers are not conjugated.

    The diagonals are `[…, 3, n]`: superdiagonal, diagonal and subdiagonal.
    """
    diagonals, x = node.inputs[0], (node, 0)
    column = ops.indices(-1)
    above, main, below = (ops.ExpandDims(row(ops, diagonals, index), column) for index in range(3))
    turned = ops.ConcatV2([_row_above(ops, below), main, _row_below(ops, above)], column)
    attrs = {name: node.attr(name) for name in ("partial_pivoting", "perturb_singular")}
    of_right = ops.TridiagonalSolve(_transposed(ops, turned), grads[0], **attrs)
    shifted = (_row_above(ops, x), x, _row_below(ops, x))
    parts = [ops.Neg(ops.Sum(ops.Mul(of_right, each), ops.indices([-1]))) for each in shifted]
    return [ops.Pack(parts, axis=-2), of_right]


def _transposed(ops: GradientNodes, x: Endpoint) -> Endpoint:
    return ops.conjugate(adjoint(ops, x))


def _banded_triangular_solve(
    ops: GradientNodes, node: Node, grads: Sequence[Endpoint]
) -> Gradients:
    (a, b), is_adjoint, is_lower = node.inputs, node.attr("adjoint"), node.attr("lower")
    db = ops.BandedTriangularSolve(a, grads[0], lower=is_lower, adjoint=not is_adjoint)
    left, right = ((node, 0), db) if is_adjoint else (db, (node, 0))
    full = ops.Neg(product(ops, left, right, False, True))
    shape = ops.Shape(a)
    bands = ops.StridedSlice(
        shape, ops.indices([-2]), ops.indices([-1]), ops.indices([1]), shrink_axis_mask=1
    )
    reach, zero = ops.Sub(bands, ops.indices(1)), ops.indices(0)
    limits = [ops.Neg(reach), zero] if is_lower else [zero, reach]
    k = ops.Pack(limits, axis=0)
    da = ops.MatrixDiagPartV3(full, k, ops.like(0, full), align="LEFT_RIGHT")
    return [reduced_batch(ops, da, a, b), reduced_batch(ops, db, b, a)]


BAND_MATRIX_GRADIENTS: dict[str, GradientFunction] = {
    "TridiagonalMatMul": _tridiagonal_product,
    "TridiagonalSolve": _tridiagonal_solve,
    "BandedTriangularSolve": _banded_triangular_solve,
}
