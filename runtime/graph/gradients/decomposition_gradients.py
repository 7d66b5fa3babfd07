"""Gradient functions of matrix decompositions and of what is computed by one.

The gradients divide by differences of singular values or eigenvalues, so they are large where two
of these are close.

TF: tensorflow/python/ops/linalg_grad.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.foundation.errors import UnimplementedError
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, is_complex, type_of
from runtime.graph.gradients.matrix_nodes import (
    adjoint,
    batch_shape,
    columns,
    product,
    tail_shape,
)
from runtime.graph.node import Endpoint, Node

_TINY = 1e-20  # keeps the reciprocal of zero finite; TensorFlow's value


def _reciprocal(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return 1 / x, and 0 where x is 0."""
    squares = ops.AddV2(ops.Mul(x, x), ops.like(_TINY, x))
    output: Endpoint = ops.Mul(x, ops.Reciprocal(squares))
    return output


def _closeness(ops: GradientNodes, x: Endpoint) -> Endpoint:
    """Return the matrices `1 / (x[…, j] − x[…, i])` with zero diagonals, for x `[…, n]`."""
    gaps = ops.Sub(ops.ExpandDims(x, ops.indices(-2)), ops.ExpandDims(x, ops.indices(-1)))
    output: Endpoint = ops.MatrixSetDiag(_reciprocal(ops, gaps), ops.ZerosLike(x))
    return output


def _matrix_size(ops: GradientNodes, node: Node) -> tuple[int, int]:
    """Return the static (rows, columns) of a node's first input.

    Raises UnimplementedError if they are not known.
    """
    sizes = ops.static_sizes(node.inputs[0])
    if sizes is None or min(sizes[-2:]) < 0:
        raise UnimplementedError(
            f"The gradient of {node.op} requires matrices of static size; the shape of the input "
            f"of '{node.name}' is {'unknown' if sizes is None else list(sizes)}"
        )
    return sizes[-2], sizes[-1]


# --- singular values ------------------------------------------------------------------------------


def _svd(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Svd: return the gradient of A = U S Vᴴ.

    Raises UnimplementedError if `full_matrices` is set and the sizes of a matrix differ by more
    than 1, or are not static. A tall matrix is differentiated through its adjoint Aᴴ = V S Uᴴ.
    """
    a = node.inputs[0]
    ds = ops.Cast(grads[0], DstT=type_of(a))
    if not node.attr("compute_uv"):
        _, u, v = ops.Svd(a, compute_uv=True, full_matrices=False)
        return [product(ops, u, product(ops, ops.MatrixDiag(ds), v, False, True))]
    m, n = _matrix_size(ops, node)
    if node.attr("full_matrices") and abs(m - n) > 1:
        raise UnimplementedError(
            "The gradient of Svd with full_matrices requires matrices whose sizes differ by at "
            f"most 1; '{node.name}' has {m} x {n}"
        )
    s = ops.Cast((node, 0), DstT=type_of(a))
    size = (min(m, n), max(m, n) if node.attr("full_matrices") else min(m, n))
    if m <= n:
        return [_wide_svd(ops, size, m == n, s, ds, ((node, 1), (node, 2)), (grads[1], grads[2]))]
    turned = _wide_svd(ops, size, False, s, ds, ((node, 2), (node, 1)), (grads[2], grads[1]))
    return [adjoint(ops, turned)]


def _wide_svd(
    ops: GradientNodes,
    size: tuple[int, int],
    is_square: bool,
    s: Endpoint,
    ds: Endpoint,
    vectors: tuple[Endpoint, Endpoint],
    gradients: tuple[Endpoint, Endpoint],
) -> Endpoint:
    """Return the gradient of an m × n matrix with m ≤ n, from those of s, u and v.

    `size` is (m, the number of columns of v), which is m or n.
    """
    (m, k), (u, v), (du, dv) = size, vectors, gradients
    v1, dv1 = columns(ops, v, 0, m), columns(ops, dv, 0, m)
    closeness = _closeness(ops, ops.Square(s))
    by_u = ops.Mul(closeness, product(ops, u, du, True))
    of_v = product(ops, v1, dv1, True)
    by_v = ops.Mul(closeness, of_v)
    values = ops.MatrixDiag(s)
    inverse = ops.MatrixDiag(_reciprocal(ops, s))
    middle = ops.AddV2(
        ops.MatrixDiag(ds),
        ops.AddV2(
            product(ops, ops.AddV2(by_u, adjoint(ops, by_u)), values),
            product(ops, values, ops.AddV2(by_v, adjoint(ops, by_v))),
        ),
    )
    if is_complex(s):  # the phase that u and v share
        phases = ops.MatrixDiag(ops.MatrixDiagPart(of_v))
        turn = product(ops, inverse, ops.Sub(adjoint(ops, phases), phases))
        middle = ops.AddV2(middle, ops.Mul(ops.like(0.5, s), turn))
    da = product(ops, u, product(ops, middle, v1, False, True))
    if is_square:
        return da
    rest = adjoint(ops, dv1)
    rest = ops.Sub(rest, product(ops, product(ops, rest, v1), v1, False, True))
    if k > m:
        v2, dv2 = columns(ops, v, m, k), columns(ops, dv, m, k)
        rest = ops.Sub(rest, product(ops, product(ops, v1, dv2, True), v2, False, True))
    output: Endpoint = ops.AddV2(da, product(ops, product(ops, u, inverse), rest))
    return output


# --- Qr, least squares ----------------------------------------------------------------------------


def _qr(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Qr: return the gradient of A = Q R (arXiv:2009.10071).

    A wide matrix [X, Y] has R = [U, V]: Y = Q V is linear, and X = Q U is square. Raises
    UnimplementedError for a tall matrix with `full_matrices`, and if the sizes are not static.
    """
    m, n = _matrix_size(ops, node)
    if m > n and node.attr("full_matrices"):
        raise UnimplementedError(
            "The gradient of Qr with full_matrices requires matrices with at most as many rows as "
            f"columns; '{node.name}' has {m} x {n}"
        )
    q, r = (node, 0), (node, 1)
    dq, dr = grads
    if m >= n:
        return [_tall_qr(ops, q, r, dq, dr)]
    y, dv = columns(ops, node.inputs[0], m, None), columns(ops, dr, m, None)
    dq = ops.AddV2(dq, product(ops, y, dv, False, True))
    dx = _tall_qr(ops, q, columns(ops, r, 0, m), dq, columns(ops, dr, 0, m))
    return [ops.ConcatV2([dx, product(ops, q, dv)], ops.indices(-1))]


def _tall_qr(ops: GradientNodes, q: Endpoint, r: Endpoint, dq: Endpoint, dr: Endpoint) -> Endpoint:
    def divided(x: Endpoint) -> Endpoint:  # x R⁻ᴴ
        solved = ops.MatrixTriangularSolve(r, adjoint(ops, x), lower=False, adjoint=False)
        return adjoint(ops, solved)

    qdq, rdr = product(ops, q, dq, True), product(ops, r, dr, False, True)
    skew = ops.AddV2(ops.Sub(qdq, adjoint(ops, qdq)), ops.Sub(rdr, adjoint(ops, rdr)))
    lower = ops.MatrixBandPart(skew, ops.indices(-1), ops.indices(0))
    inside = product(ops, q, ops.AddV2(dr, divided(lower)))
    outside = divided(ops.Sub(dq, product(ops, q, qdq)))
    da = ops.AddV2(inside, outside)
    if is_complex(q):  # R has a real diagonal: its imaginary part has no gradient
        diagonal = ops.MatrixDiagPart(ops.Sub(rdr, adjoint(ops, qdq)))
        half = ops.Sub(diagonal, ops.Conj(diagonal))
        imaginary = ops.MatrixDiag(ops.Mul(ops.like(0.5, half), half))
        da = ops.AddV2(da, divided(product(ops, q, adjoint(ops, imaginary))))
    output: Endpoint = da
    return output


def _matrix_solve_ls(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """MatrixSolveLs: return the gradients of the normal equations (AᵀA + λI) X = AᵀB.

    A matrix with more columns than rows has X = Aᵀ (AAᵀ + λI)⁻¹ B. Raises UnimplementedError if the
    attribute `fast` is false, or if the sizes are not static.
    """
    (a, b, weight), dx, x = node.inputs, grads[0], (node, 0)
    if not node.attr("fast"):
        raise UnimplementedError(f"The gradient of MatrixSolveLs '{node.name}' requires fast=True")
    m, n = _matrix_size(ops, node)
    is_wide = m < n
    gramian = product(ops, a, a, not is_wide, is_wide)
    diagonal = ops.MatrixDiagPart(gramian)
    weight = ops.Cast(weight, DstT=type_of(a))
    factor = ops.Cholesky(ops.MatrixSetDiag(gramian, ops.AddV2(diagonal, weight)))

    def solved(right: Endpoint) -> Endpoint:
        half = ops.MatrixTriangularSolve(factor, right, lower=True, adjoint=False)
        output: Endpoint = ops.MatrixTriangularSolve(factor, half, lower=True, adjoint=True)
        return output

    if is_wide:
        db, inner = solved(product(ops, a, dx)), solved(b)
        shared = product(ops, db, product(ops, inner, a, True))
        rest = ops.Sub(dx, product(ops, a, db, True))
        return [ops.Sub(product(ops, inner, rest, False, True), shared), db, None]
    z = solved(dx)
    both = product(ops, x, z, False, True)
    both = ops.AddV2(both, adjoint(ops, both))
    da = ops.Sub(product(ops, b, z, False, True), product(ops, a, both))
    return [da, product(ops, a, z), None]


# --- eigenvalues, roots ---------------------------------------------------------------------------


def _eig(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """Eig: return V⁻ᴴ (diag(de) + F ∘ (VᴴdV − VᴴV Re diag(VᴴdV))) Vᴴ (arXiv:1701.00392, 4.77).

    F has 1 / (eⱼ − eᵢ), conjugated, and a zero diagonal.
    """
    a, middle = node.inputs[0], ops.MatrixDiag(grads[0])
    if node.attr("compute_v"):
        e, v = (node, 0), (node, 1)
        turned = product(ops, v, grads[1], True)
        real = ops.MatrixDiagPart(turned)
        real = ops.Mul(ops.like(0.5, real), ops.AddV2(real, ops.Conj(real)))
        scaled = product(ops, product(ops, v, v, True), ops.MatrixDiag(real))
        mixed = ops.Mul(ops.Conj(_closeness(ops, e)), ops.Sub(turned, scaled))
        middle = ops.AddV2(middle, mixed)
    else:
        _, v = ops.Eig(a, compute_v=True, Tout=type_of(grads[0]))
    turned_v = adjoint(ops, v)
    da = ops.MatrixSolve(turned_v, product(ops, middle, turned_v))
    return [ops.Cast(da, DstT=type_of(a)) if type_of(a) is not type_of(da) else da]


def _kronecker(ops: GradientNodes, a: Endpoint, b: Endpoint) -> Endpoint:
    """Return the Kronecker products of square matrices `[…, n, n]`: `[…, n², n²]`."""
    batch, n, one = batch_shape(ops, a), tail_shape(ops, a, 1), ops.indices([1])
    left = ops.Reshape(a, ops.ConcatV2([batch, n, one, n, one], ops.indices(0)))
    right = ops.Reshape(b, ops.ConcatV2([batch, one, n, one, n], ops.indices(0)))
    square = ops.Mul(n, n)
    shape = ops.ConcatV2([batch, square, square], ops.indices(0))
    output: Endpoint = ops.Reshape(ops.Mul(left, right), shape)
    return output


def _matrix_square_root(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """MatrixSquareRoot: return dA, the solution of the Sylvester equation dR = Rᵀ dA + dA Rᵀ.

    It is solved as a linear system of the n² elements of dA, with Kronecker products.
    """
    root = (node, 0)
    shape, n = ops.Shape(root), tail_shape(ops, root, 1)
    transposed = ops.Conj(adjoint(ops, root)) if is_complex(root) else adjoint(ops, root)
    ones = ops.OnesLike(ops.MatrixDiagPart(root))
    eye = ops.MatrixDiag(ones)
    system = ops.AddV2(_kronecker(ops, eye, transposed), _kronecker(ops, root, eye))
    long = ops.ConcatV2([batch_shape(ops, root), ops.Mul(n, n), ops.indices([1])], ops.indices(0))
    given = adjoint(ops, grads[0])
    given = ops.Conj(given) if is_complex(root) else given
    found = ops.Reshape(ops.MatrixSolve(system, ops.Reshape(given, long)), shape)
    da = adjoint(ops, found)
    return [ops.Conj(da) if is_complex(root) else da]


DECOMPOSITION_GRADIENTS: dict[str, GradientFunction] = {
    "Svd": _svd,
    "Qr": _qr,
    "MatrixSolveLs": _matrix_solve_ls,
    "Eig": _eig,
    "MatrixSquareRoot": _matrix_square_root,
}
