"""Gradient functions of linear algebra and of Einsum.

TF: tensorflow/python/ops/linalg_grad.py, sparse_grad.py
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from runtime.foundation.errors import UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.gradients.matrix_nodes import (
    adjoint,
    batch_shape,
    product,
    reduced_batch,
    tail_shape,
)
from runtime.graph.node import Endpoint, Node


def _matrix(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return each element of x `[…]` as a matrix, with the shape `[…, 1, 1]`."""
    output: Endpoint = ops.ExpandDims(ops.ExpandDims(x, ops.indices(-1)), ops.indices(-1))
    return output


def _lower(ops: GradientNodes, x: Endpoint) -> Endpoint:
    output: Endpoint = ops.MatrixBandPart(x, ops.indices(-1), ops.indices(0))
    return output


def _half_diagonal(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return the matrices x with their diagonals multiplied by ½."""
    diagonal = ops.MatrixDiagPart(x)
    output: Endpoint = ops.MatrixSetDiag(x, ops.Mul(ops.like(0.5, x), diagonal))
    return output


# --- matrices -------------------------------------------------------------------------------------


def _matrix_inverse(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    y = (node, 0)
    if node.attr("adjoint"):
        return [ops.Neg(product(ops, y, product(ops, grads[0], y, True)))]
    inner = product(ops, grads[0], y, False, True)
    return [ops.Neg(product(ops, y, inner, True))]


def _matrix_determinant(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    inverse = ops.MatrixInverse(node.inputs[0], adjoint=True)
    factor = ops.Mul(grads[0], ops.conjugate((node, 0)))
    return [ops.Mul(_matrix(ops, factor), inverse)]


def _log_matrix_determinant(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Return the gradient that comes through the second output, the logarithm.

    The first output, the sign, is piecewise constant and has no gradient.
    """
    inverse = ops.MatrixInverse(node.inputs[0], adjoint=True)
    return [ops.Mul(_matrix(ops, grads[1]), inverse)]


def _cholesky(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Cholesky: return ½ (A + Aᴴ) with A = L⁻ᴴ Φ(Lᴴ dL) L⁻¹.

    L is the output of the op and dL the gradient with respect to L. Φ(M) is the lower triangle of
    M with the diagonal multiplied by ½.
    """
    lower = (node, 0)
    middle = _lower(ops, _half_diagonal(ops, product(ops, lower, grads[0], True)))
    solve = functools.partial(ops.MatrixTriangularSolve, lower, lower=True, adjoint=True)
    right = adjoint(ops, solve(adjoint(ops, middle)))  # Φ(Lᴴ dL) L⁻¹
    dx = solve(right)
    return [ops.Mul(ops.like(0.5, dx), ops.AddV2(dx, adjoint(ops, dx)))]


def _matrix_solve(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    a, is_adjoint = node.inputs[0], node.attr("adjoint")
    db = ops.MatrixSolve(a, grads[0], adjoint=not is_adjoint)
    left, right = ((node, 0), db) if is_adjoint else (db, (node, 0))
    return [ops.Neg(product(ops, left, right, False, True)), db]


def _matrix_triangular_solve(
    ops: GradientNodes, node: Node, grads: Sequence[Endpoint]
) -> Gradients:
    (a, b), is_adjoint, is_lower = node.inputs, node.attr("adjoint"), node.attr("lower")
    db = ops.MatrixTriangularSolve(a, grads[0], lower=is_lower, adjoint=not is_adjoint)
    left, right = ((node, 0), db) if is_adjoint else (db, (node, 0))
    da = ops.Neg(product(ops, left, right, False, True))
    band = (-1, 0) if is_lower else (0, -1)
    da = ops.MatrixBandPart(da, *(ops.indices(each) for each in band))
    return [reduced_batch(ops, da, a, b), reduced_batch(ops, db, b, a)]


def _self_adjoint_eig(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SelfAdjointEigV2: return a gradient that is zero above the diagonal, as in TensorFlow.

    The op reads only the lower triangle of its input.
    """
    if not node.attr("compute_v"):
        _, v = ops.SelfAdjointEigV2(node.inputs[0], compute_v=True)
        inner = ops.Mul(ops.ExpandDims(grads[0], ops.indices(-1)), adjoint(ops, v))
        return [_in_lower_half(ops, product(ops, v, inner))]
    e, v = (node, 0), (node, 1)
    gaps = ops.Sub(ops.ExpandDims(e, ops.indices(-2)), ops.ExpandDims(e, ops.indices(-1)))
    closeness = ops.DivNoNan(ops.OnesLike(gaps), gaps)
    mixed = ops.Mul(closeness, product(ops, v, grads[1], True))
    inner = ops.AddV2(ops.MatrixDiag(grads[0]), mixed)
    return [_in_lower_half(ops, product(ops, v, product(ops, inner, v, False, True)))]


def _in_lower_half(ops: GradientNodes, x: Endpoint) -> Endpoint:
    return _half_diagonal(ops, _lower(ops, ops.AddV2(x, adjoint(ops, x))))


def _sparse_product(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SparseTensorDenseMatMul: return the gradients of the sparse values and the dense operand."""
    indices, values, shape, b = node.inputs
    adjoint_a, adjoint_b = node.attr("adjoint_a"), node.attr("adjoint_b")
    db = ops.SparseTensorDenseMatMul(
        indices, values, shape, grads[0], adjoint_a=not adjoint_a, adjoint_b=False
    )
    rows, columns = ops.Unpack(indices, num=2, axis=1)
    if adjoint_a:
        rows, columns = columns, rows
    dense = adjoint(ops, b) if adjoint_b else b
    of_grad = ops.GatherV2(grads[0], rows, ops.indices(0))
    of_dense = ops.GatherV2(dense, columns, ops.indices(0))
    of_values = ops.Sum(ops.Mul(of_grad, ops.conjugate(of_dense)), ops.indices([1]))
    of_values = ops.conjugate(of_values) if adjoint_a else of_values
    return [None, of_values, None, adjoint(ops, db) if adjoint_b else db]


def _sparse_mat_mul(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SparseMatMul: return the gradients of MatMul; the op takes float32 and bfloat16 mixed."""
    ta, tb = node.attr("transpose_a"), node.attr("transpose_b")
    dtypes = [type_of(each) for each in node.inputs]
    a, b = (ops.Cast(each, DstT=DataType.FLOAT) for each in node.inputs)
    dy = grads[0]
    da = (
        ops.MatMul(b, dy, transpose_a=tb, transpose_b=True)
        if ta
        else ops.MatMul(dy, b, transpose_b=not tb)
    )
    db = (
        ops.MatMul(dy, a, transpose_a=True, transpose_b=ta)
        if tb
        else ops.MatMul(a, dy, transpose_a=not ta)
    )
    return [ops.Cast(each, DstT=dtype) for each, dtype in zip((da, db), dtypes, strict=True)]


# --- Einsum ---------------------------------------------------------------------------------------


def _einsum(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Einsum: for each operand, return an Einsum of the output's gradient and the other operand.

    Raises UnimplementedError if a label stands twice in one term of the equation.
    """
    terms, result = node.attr("equation").replace(" ", "").split("->")
    labels = terms.split(",")
    for term in [*labels, result]:
        plain = term.replace("...", "")
        if len(set(plain)) < len(plain):
            raise UnimplementedError(
                f"The gradient of Einsum with the equation '{node.attr('equation')}': "
                f"a label stands twice in '{term}'; expected each label once"
            )
    if len(labels) == 1:
        return [_einsum_operand(ops, grads[0], node.inputs[0], labels[0], result, None, "")]
    a, b = node.inputs
    return [
        _einsum_operand(ops, grads[0], a, labels[0], result, b, labels[1]),
        _einsum_operand(ops, grads[0], b, labels[1], result, a, labels[0]),
    ]


def _einsum_operand(
    ops: GradientNodes,
    dy: Endpoint,
    x: Endpoint,
    labels: str,
    result: str,
    other: Endpoint | None,
    other_labels: str,
) -> Endpoint:
    """Return the gradient of the operand `x`, whose term in the equation is `labels`.

    It is summed over the axes along which `x` was broadcast, and repeated along the axes of `x`
    that are in no other term.
    """
    known = set(result) | set(other_labels)
    plain = labels.replace("...", "")
    own_dots, dots = ("..." if "..." in each else "" for each in (labels, result))
    kept = "".join(label for label in plain if label in known)
    operands, terms = [dy], result
    if other is not None:
        operands, terms = [dy, ops.conjugate(other)], f"{result},{other_labels}"
    dx = ops.Einsum(operands, equation=f"{terms}->{dots}{kept}")
    for place in reversed(range(len(plain))):
        if plain[place] not in known:
            dx = ops.ExpandDims(dx, ops.indices(place - len(plain)))
    in_front = ops.Einsum([x], equation=f"{labels}->{own_dots}{plain}")
    if dots:
        batch = batch_shape(ops, in_front, len(plain))
        axes, _ = ops.BroadcastGradientArgs(batch, batch_shape(ops, dx, len(plain)))
        kept_shape = ops.ConcatV2([batch, tail_shape(ops, dx, len(plain))], ops.indices(0))
        dx = ops.Reshape(ops.Sum(dx, axes), kept_shape)
    dx = ops.BroadcastTo(dx, ops.Shape(in_front))
    output: Endpoint = ops.Einsum([dx], equation=f"{own_dots}{plain}->{labels}")
    return output


def _xla_einsum(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """XlaEinsum: as TensorFlow's, for equations in which no label is in one operand alone."""
    equation = node.attr("equation")
    terms, result = (equation.decode() if isinstance(equation, bytes) else equation).split("->")
    left, right = terms.split(",")
    a, b = node.inputs
    return [
        ops.XlaEinsum(grads[0], b, equation=f"{result},{right}->{left}"),
        ops.XlaEinsum(grads[0], a, equation=f"{result},{left}->{right}"),
    ]


def _xla_sharding(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    sharding, unspecified = node.attr("sharding"), node.attr("unspecified_dims")
    return [ops.XlaSharding(grads[0], sharding=sharding, unspecified_dims=unspecified)]


LINEAR_ALGEBRA_GRADIENTS: dict[str, GradientFunction] = {
    "MatrixInverse": _matrix_inverse,
    "MatrixDeterminant": _matrix_determinant,
    "LogMatrixDeterminant": _log_matrix_determinant,
    "Cholesky": _cholesky,
    "MatrixSolve": _matrix_solve,
    "MatrixTriangularSolve": _matrix_triangular_solve,
    "SelfAdjointEigV2": _self_adjoint_eig,
    "SparseTensorDenseMatMul": _sparse_product,
    "SparseMatMul": _sparse_mat_mul,
    "Einsum": _einsum,
    "XlaEinsum": _xla_einsum,
    "XlaSharding": _xla_sharding,
}
