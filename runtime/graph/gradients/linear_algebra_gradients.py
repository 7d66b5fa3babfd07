"""Gradient functions of linear algebra, of Einsum and of Fourier transforms.

TF: tensorflow/python/ops/linalg_grad.py, sparse_grad.py, spectral_ops.py
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from runtime.foundation.errors import UnimplementedError
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _product(
    ops: GradientNodes, a: Endpoint, b: Endpoint, adjoint_a: bool = False, adjoint_b: bool = False
) -> Endpoint:
    output: Endpoint = ops.BatchMatMulV2(a, b, adj_x=adjoint_a, adj_y=adjoint_b)
    return output


def _adjoint(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return the adjoint of each matrix: `[…, n, m]` becomes `[…, m, n]`, conjugated if complex."""
    rank = ops.Rank(x)
    last = ops.Sub(rank, ops.indices([1]))
    before = ops.Sub(rank, ops.indices([2]))
    rest = ops.Range(ops.indices(0), ops.Sub(rank, ops.indices(2)), ops.indices(1))
    order = ops.ConcatV2([rest, last, before], ops.indices(0))
    output: Endpoint = ops.conjugate(ops.Transpose(x, order))
    return output


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
        return [ops.Neg(_product(ops, y, _product(ops, grads[0], y, True)))]
    inner = _product(ops, grads[0], y, False, True)
    return [ops.Neg(_product(ops, y, inner, True))]


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
    middle = _lower(ops, _half_diagonal(ops, _product(ops, lower, grads[0], True)))
    solve = functools.partial(ops.MatrixTriangularSolve, lower, lower=True, adjoint=True)
    right = _adjoint(ops, solve(_adjoint(ops, middle)))  # Φ(Lᴴ dL) L⁻¹
    dx = solve(right)
    return [ops.Mul(ops.like(0.5, dx), ops.AddV2(dx, _adjoint(ops, dx)))]


def _matrix_solve(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    a, is_adjoint = node.inputs[0], node.attr("adjoint")
    db = ops.MatrixSolve(a, grads[0], adjoint=not is_adjoint)
    left, right = ((node, 0), db) if is_adjoint else (db, (node, 0))
    return [ops.Neg(_product(ops, left, right, False, True)), db]


def _matrix_triangular_solve(
    ops: GradientNodes, node: Node, grads: Sequence[Endpoint]
) -> Gradients:
    (a, b), is_adjoint, is_lower = node.inputs, node.attr("adjoint"), node.attr("lower")
    db = ops.MatrixTriangularSolve(a, grads[0], lower=is_lower, adjoint=not is_adjoint)
    left, right = ((node, 0), db) if is_adjoint else (db, (node, 0))
    da = ops.Neg(_product(ops, left, right, False, True))
    band = (-1, 0) if is_lower else (0, -1)
    da = ops.MatrixBandPart(da, *(ops.indices(each) for each in band))
    return [_reduced_batch(ops, da, a, b), _reduced_batch(ops, db, b, a)]


def _batch(ops: GradientNodes, x: Endpoint, rank: int = 2) -> Endpoint:
    """Return the shape of x without its last `rank` dimensions."""
    if rank == 0:
        whole: Endpoint = ops.Shape(x)
        return whole
    bounds = (ops.indices([0]), ops.indices([-rank]), ops.indices([1]))
    output: Endpoint = ops.StridedSlice(ops.Shape(x), *bounds, begin_mask=1)
    return output


def _reduced_batch(ops: GradientNodes, dx: Endpoint, x: Endpoint, other: Endpoint) -> Endpoint:
    """Return `dx` summed to the shape of x.

    It is summed over the batch dimensions along which x was broadcast to fit `other`.
    """
    axes, _ = ops.BroadcastGradientArgs(_batch(ops, x), _batch(ops, other))
    output: Endpoint = ops.Reshape(ops.Sum(dx, axes), ops.Shape(x))
    return output


def _self_adjoint_eig(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SelfAdjointEigV2: return a gradient that is zero above the diagonal, as in TensorFlow.

    The op reads only the lower triangle of its input.
    """
    if not node.attr("compute_v"):
        _, v = ops.SelfAdjointEigV2(node.inputs[0], compute_v=True)
        inner = ops.Mul(ops.ExpandDims(grads[0], ops.indices(-1)), _adjoint(ops, v))
        return [_in_lower_half(ops, _product(ops, v, inner))]
    e, v = (node, 0), (node, 1)
    gaps = ops.Sub(ops.ExpandDims(e, ops.indices(-2)), ops.ExpandDims(e, ops.indices(-1)))
    closeness = ops.DivNoNan(ops.OnesLike(gaps), gaps)
    mixed = ops.Mul(closeness, _product(ops, v, grads[1], True))
    inner = ops.AddV2(ops.MatrixDiag(grads[0]), mixed)
    return [_in_lower_half(ops, _product(ops, v, _product(ops, inner, v, False, True)))]


def _in_lower_half(ops: GradientNodes, x: Endpoint) -> Endpoint:
    return _half_diagonal(ops, _lower(ops, ops.AddV2(x, _adjoint(ops, x))))


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
    dense = _adjoint(ops, b) if adjoint_b else b
    of_grad = ops.GatherV2(grads[0], rows, ops.indices(0))
    of_dense = ops.GatherV2(dense, columns, ops.indices(0))
    of_values = ops.Sum(ops.Mul(of_grad, ops.conjugate(of_dense)), ops.indices([1]))
    of_values = ops.conjugate(of_values) if adjoint_a else of_values
    return [None, of_values, None, _adjoint(ops, db) if adjoint_b else db]


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
        batch = _batch(ops, in_front, len(plain))
        axes, _ = ops.BroadcastGradientArgs(batch, _batch(ops, dx, len(plain)))
        kept_shape = ops.ConcatV2([batch, _tail(ops, dx, len(plain))], ops.indices(0))
        dx = ops.Reshape(ops.Sum(dx, axes), kept_shape)
    dx = ops.BroadcastTo(dx, ops.Shape(in_front))
    output: Endpoint = ops.Einsum([dx], equation=f"{own_dots}{plain}->{labels}")
    return output


def _tail(ops: GradientNodes, x: Endpoint, count: int) -> Endpoint:
    """Return the sizes of the last `count` dimensions of x."""
    if count == 0:
        return ops.indices(())
    bounds = (ops.indices([-count]), ops.indices([0]), ops.indices([1]))
    output: Endpoint = ops.StridedSlice(ops.Shape(x), *bounds, end_mask=1)
    return output


# --- Fourier transforms ---------------------------------------------------------------------------

_INVERSES = {"FFT": "IFFT", "FFT2D": "IFFT2D", "FFT3D": "IFFT3D"}
_RANKS = {"FFT": 1, "FFT2D": 2, "FFT3D": 3}


def _fourier(forward: str, ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    size = ops.Prod(_tail(ops, grads[0], _RANKS[forward]), ops.indices([0]))
    size = ops.Cast(size, DstT=type_of(grads[0]))
    if node.op == forward:
        return [ops.Mul(ops.add(_INVERSES[forward], grads[0]), size)]
    return [ops.RealDiv(ops.add(forward, grads[0]), size)]


def _fourier_gradients() -> dict[str, GradientFunction]:
    return {
        op: functools.partial(_fourier, forward)
        for forward, inverse in _INVERSES.items()
        for op in (forward, inverse)
    }


LINEAR_ALGEBRA_GRADIENTS: dict[str, GradientFunction] = {
    "MatrixInverse": _matrix_inverse,
    "MatrixDeterminant": _matrix_determinant,
    "LogMatrixDeterminant": _log_matrix_determinant,
    "Cholesky": _cholesky,
    "MatrixSolve": _matrix_solve,
    "MatrixTriangularSolve": _matrix_triangular_solve,
    "SelfAdjointEigV2": _self_adjoint_eig,
    "SparseTensorDenseMatMul": _sparse_product,
    "Einsum": _einsum,
    **_fourier_gradients(),
}
