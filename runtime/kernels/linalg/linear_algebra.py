"""Decompositions, inverses, determinants and solutions of batches of matrices `[…, m, n]`.

They are computed by LAPACK if numpy exposes the routine.

TF: tensorflow/core/kernels/linalg/
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import COMPLEX_TYPES, SINGLE_AND_DOUBLE
from runtime.framework.shapes import shape_text


def check_matrix(value: np.ndarray, square: bool = True, name: str = "Input tensor 0") -> None:
    """Raise InvalidArgumentError unless `value` is a matrix or a batch of matrices.

    If `square` is set, also raise unless the matrices are square.
    """
    if value.ndim < 2:
        raise InvalidArgumentError(f"{name} must have rank >= 2, got {value.ndim}")
    if square and value.shape[-1] != value.shape[-2]:
        raise InvalidArgumentError("Input matrix must be square.")


def adjoint_of(matrix: np.ndarray) -> np.ndarray:
    """Return the conjugate transpose of `matrix`."""
    return np.conjugate(matrix.swapaxes(-1, -2))


def _each_matrix(
    function: Callable[[np.ndarray], np.ndarray], input: np.ndarray, failed: np.ndarray
) -> np.ndarray:
    """Apply `function` to each matrix of `input`.

    If it raises LinAlgError for a matrix, the result for that matrix is `failed`.
    """
    result = np.empty_like(input)
    for place in np.ndindex(input.shape[:-2]):
        check_task()
        try:
            result[place] = function(input[place])
        except np.linalg.LinAlgError:
            result[place] = failed
    return result


def cholesky(input: np.ndarray) -> np.ndarray:
    """Cholesky: return the lower triangular factors L for which L Lᴴ is `input`.

    A matrix that is not positive definite gives NaN.
    """
    check_matrix(input)
    if not input.size:
        return input
    try:
        return np.linalg.cholesky(input)
    except np.linalg.LinAlgError:
        failed = np.tril(np.full(input.shape[-2:], np.nan, input.dtype))
        return _each_matrix(np.linalg.cholesky, input, failed)


def matrix_determinant(input: np.ndarray) -> np.ndarray:
    """MatrixDeterminant: return the determinants; 1 for matrices without elements."""
    check_matrix(input)
    determinants = np.asarray(np.linalg.det(input))
    return _with_nan_propagated(input, determinants).astype(input.dtype)


def log_matrix_determinant(input: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """LogMatrixDeterminant: return (signs, logarithms) of the determinants.

    The logarithms are of the absolute values.
    """
    check_matrix(input)
    sign, log_absolute = (
        _with_nan_propagated(input, np.asarray(x)) for x in np.linalg.slogdet(input)
    )
    return sign.astype(input.dtype), log_absolute.astype(input.dtype)


def _with_nan_propagated(matrices: np.ndarray, results: np.ndarray) -> np.ndarray:
    """Return `results` with NaN for each matrix that contains a NaN.

    LAPACK may take such a matrix for a singular one.
    """
    return np.where(np.isnan(matrices).any((-1, -2)), np.nan, results)


def matrix_inverse(input: np.ndarray, *, adjoint: bool) -> np.ndarray:
    """MatrixInverse: return the inverses of the matrices, or of their adjoints if `adjoint`.

    Raises InvalidArgumentError if a matrix is singular.
    """
    check_matrix(input)
    _check_first_pivot(input, "Input is not invertible.")
    try:
        return np.linalg.inv(adjoint_of(input) if adjoint else input)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError("Input is not invertible.") from None


def _check_first_pivot(matrices: np.ndarray, message: str) -> None:
    """Raise InvalidArgumentError with `message` if the first element of any matrix is NaN.

    TensorFlow takes the first pivot as the smallest until it finds a smaller one. A first NaN
    therefore stays, and a later NaN is never smaller.
    """
    if np.isnan(matrices[..., :1, :1]).any():
        raise InvalidArgumentError(message)


def half_matrix_inverse(input: np.ndarray, *, adjoint: bool) -> np.ndarray:
    """MatrixInverse in half precision: compute `matrix_inverse` in float32."""
    return matrix_inverse(input.astype(np.float32), adjoint=adjoint).astype(input.dtype)


def _check_solver(matrix: np.ndarray, rhs: np.ndarray) -> None:
    if matrix.ndim != rhs.ndim:
        raise InvalidArgumentError("All input tensors must have the same rank.")
    check_matrix(matrix, square=False)
    if matrix.shape[:-2] != rhs.shape[:-2]:
        raise InvalidArgumentError("All input tensors must have the same outer dimensions.")


def matrix_solve(matrix: np.ndarray, rhs: np.ndarray, *, adjoint: bool) -> np.ndarray:
    """MatrixSolve: return the X for which matrix · X = rhs.

    If `adjoint` is set, the adjoint of `matrix` is used. Raises InvalidArgumentError if a matrix is
    singular.
    """
    _check_solver(matrix, rhs)
    if matrix.shape[-1] != matrix.shape[-2]:
        raise InvalidArgumentError("First input (lhs) must be a square matrix.")
    if matrix.shape[-2] != rhs.shape[-2]:
        raise InvalidArgumentError("Input matrix and rhs are incompatible.")
    _check_first_pivot(matrix, "Input matrix is not invertible.")
    try:
        return np.linalg.solve(adjoint_of(matrix) if adjoint else matrix, rhs)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError("Input matrix is not invertible.") from None


def triangular_batch(
    matrix: np.ndarray, rhs: np.ndarray, unknowns: int, lower: bool, adjoint: bool
) -> tuple[int, ...]:
    """Return the batch dimensions of the solution of triangular equations.

    Raises InvalidArgumentError if the shapes of `matrix` and `rhs` do not fit, or if `rhs` does not
    have `unknowns` rows.
    """
    if unknowns != rhs.shape[-2]:
        raise InvalidArgumentError(
            f"In[0] mismatch In[1] shape: {unknowns} vs. {rhs.shape[-2]}: "
            f"{shape_text(matrix.shape)} {shape_text(rhs.shape)} {int(lower)} {int(adjoint)}"
        )
    try:
        return np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    except ValueError:
        raise InvalidArgumentError(
            "In[0] and In[1] must have compatible batch dimensions: "
            f"{shape_text(matrix.shape)} vs. {shape_text(rhs.shape)}"
        ) from None


def matrix_triangular_solve(
    matrix: np.ndarray, rhs: np.ndarray, *, lower: bool, adjoint: bool
) -> np.ndarray:
    """MatrixTriangularSolve: return the X for which matrix · X = rhs; batches broadcast.

    Only the lower triangle of `matrix` is read, or the upper one if `lower` is false. If `adjoint`
    is set, the adjoint of that triangle is used.
    """
    for index, each in enumerate((matrix, rhs)):
        if each.ndim < 2:
            raise InvalidArgumentError(f"In[{index}] ndims must be >= 2: {each.ndim}")
    rows, columns = matrix.shape[-2:]
    if rows != columns:
        raise InvalidArgumentError(
            f"In[0] matrices in the last dimensions must be square ({columns} =/= {rows})"
        )
    batch = triangular_batch(matrix, rhs, rows, lower, adjoint)
    triangle = adjoint_of(matrix) if adjoint else matrix
    forward = lower != adjoint
    solution = np.array(np.broadcast_to(rhs, (*batch, *rhs.shape[-2:])))
    for row in range(rows) if forward else range(rows - 1, -1, -1):
        check_task()
        solved = slice(None, row) if forward else slice(row + 1, None)
        known = np.matmul(triangle[..., row : row + 1, solved], solution[..., solved, :])
        solution[..., row, :] -= known[..., 0, :]
        solution[..., row, :] /= triangle[..., row, row, np.newaxis]
    return solution


def matrix_solve_ls(
    matrix: np.ndarray, rhs: np.ndarray, l2_regularizer: np.ndarray, *, fast: bool
) -> np.ndarray:
    """MatrixSolveLs: return the X that minimizes ‖matrix · X − rhs‖² + l2_regularizer · ‖X‖².

    If `fast` is false, the regularizer is ignored. If there are then several solutions, because
    columns are linearly dependent, X is the solution with the least norm.
    """
    _check_solver(matrix, rhs)
    rows, columns = matrix.shape[-2:]
    if rows != rhs.shape[-2]:
        raise InvalidArgumentError("Input matrix and rhs are incompatible.")
    if np.ndim(l2_regularizer):
        raise InvalidArgumentError(
            f"l2_regularizer must be scalar, got shape {shape_text(l2_regularizer.shape)}"
        )
    if not l2_regularizer >= 0:  # also true if it is NaN
        raise InvalidArgumentError("l2_regularizer must be >= 0.")
    with np.errstate(over="ignore"):
        weight = matrix.dtype.type(l2_regularizer)
    nothing = np.zeros((*matrix.shape[:-2], columns, rhs.shape[-1]), matrix.dtype)
    if not rows or not columns:
        return nothing
    if fast and np.isinf(weight):
        lost = ~np.isfinite(matrix).all(axis=(-2, -1), keepdims=True)
        lost = lost | ~np.isfinite(rhs).all(axis=-2, keepdims=True)
        return np.where(lost, matrix.dtype.type(np.nan), nothing)
    if not fast:
        lost = ~np.isfinite(matrix).all(axis=(-2, -1), keepdims=True)  # else LAPACK may not return
        solution = np.matmul(np.linalg.pinv(np.where(lost, 0, matrix)), rhs)
        return np.where(lost, matrix.dtype.type(0), solution)
    transposed = adjoint_of(matrix)
    small = np.eye(min(rows, columns), dtype=matrix.dtype) * weight
    try:
        if rows >= columns:
            return np.linalg.solve(transposed @ matrix + small, transposed @ rhs)
        return transposed @ np.linalg.solve(matrix @ transposed + small, rhs)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or "
            "provide a larger l2_regularizer > 0."
        ) from None


def self_adjoint_eig_v2(input: np.ndarray, *, compute_v: bool) -> tuple[np.ndarray, np.ndarray]:
    """SelfAdjointEigV2: return the eigenvalues, ascending, and the eigenvectors.

    Only the lower triangle of `input` is read. If `compute_v` is false, the second result is a
    scalar 0.
    """
    check_matrix(input)
    if not np.isfinite(input).all():
        raise InvalidArgumentError(
            "Self-adjoint eigen decomposition was not successful. The input might not be valid."
        )
    if not compute_v:
        return np.linalg.eigvalsh(input).astype(input.dtype), np.zeros((), input.dtype)
    values, vectors = np.linalg.eigh(input)
    return values.astype(input.dtype), vectors


def self_adjoint_eig(input: np.ndarray) -> np.ndarray:
    """SelfAdjointEig: return a row of eigenvalues above the eigenvectors, `[…, m + 1, m]`."""
    values, vectors = self_adjoint_eig_v2(input, compute_v=True)
    return np.concatenate([values[..., np.newaxis, :], vectors], axis=-2)


def cholesky_grad(l: np.ndarray, grad: np.ndarray) -> np.ndarray:  # noqa: E741 # the input's name
    """CholeskyGrad: return the gradient with respect to the factored matrices.

    `grad` is the gradient with respect to the Cholesky factors `l` of these matrices. The result is
    symmetric.
    """
    check_matrix(l)
    check_matrix(grad)
    if l.shape != grad.shape:
        raise InvalidArgumentError("Inputs to CholeskyGrad must have the same shape.")
    lower = np.tril(l)
    inner = np.tril(lower.swapaxes(-1, -2) @ np.tril(grad))
    inner -= inner * np.eye(l.shape[-1], dtype=l.dtype) / 2
    try:
        inverse = np.linalg.inv(lower)
    except np.linalg.LinAlgError:
        return np.full_like(l, np.nan)
    result = inverse.swapaxes(-1, -2) @ inner @ inverse
    return (result + result.swapaxes(-1, -2)) / 2


def eig(input: np.ndarray, *, compute_v: bool, Tout: DataType) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
    """Eig: return the complex eigenvalues and eigenvectors of general matrices.

    If `compute_v` is false, the second result is a scalar 0.
    """
    expected = np.result_type(input.dtype, np.complex64)
    if Tout.numpy != expected:
        raise InvalidArgumentError(
            f"Invalid output dtype {Tout.value} vs {from_numpy(expected).value}"
        )
    check_matrix(input)
    if not np.isfinite(input).all():
        raise InvalidArgumentError(
            "Eigen decomposition was not successful. The input might not be valid."
        )
    if not compute_v:
        return np.linalg.eigvals(input).astype(Tout.numpy), np.zeros((), Tout.numpy)
    values, vectors = np.linalg.eig(input)
    return values.astype(Tout.numpy), vectors.astype(Tout.numpy)


def qr(input: np.ndarray, *, full_matrices: bool) -> tuple[np.ndarray, np.ndarray]:
    """Qr: return Q with orthonormal columns and upper triangular R, for which Q R = input."""
    check_matrix(input, square=False)
    q, r = np.linalg.qr(input, mode="complete" if full_matrices else "reduced")
    return q, r


def half_qr(input: np.ndarray, *, full_matrices: bool) -> tuple[np.ndarray, np.ndarray]:
    """Qr in half precision: compute `qr` in float32."""
    q, r = qr(input.astype(np.float32), full_matrices=full_matrices)
    return q.astype(input.dtype), r.astype(input.dtype)


def svd(
    input: np.ndarray, *, compute_uv: bool, full_matrices: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Svd: return singular values s, descending, and the U and V for which U diag(s) Vᴴ = input.

    If a matrix has an element that is not finite, its three results are NaN. If `compute_uv` is
    false, U and V are scalars 0.
    """
    check_matrix(input, square=False)
    lost = ~np.isfinite(input).all(axis=(-2, -1), keepdims=True)  # else LAPACK might never return
    clean = np.where(lost, input.dtype.type(0), input) if lost.any() else input
    nothing = np.zeros((), input.dtype)
    if compute_uv:
        u, s, vh = np.linalg.svd(clean, full_matrices=full_matrices)
        results = (s.astype(input.dtype), u, adjoint_of(vh))
    else:
        values = np.linalg.svd(clean, compute_uv=False).astype(input.dtype)
        results = (values, nothing, nothing)
    if clean is input:
        return results
    nan = input.dtype.type(np.nan)
    values, *vectors = results
    u, v = (np.where(lost, nan, each) if each.ndim else each for each in vectors)
    return np.where(lost[..., 0], nan, values), u, v


def lu(input: np.ndarray, *, output_idx_type: DataType) -> tuple[np.ndarray, np.ndarray]:
    """Lu: return the triangular factors L and U, and the permutation of rows by partial pivoting.

    Both factors are in one matrix; the ones on the diagonal of L are not stored. Raises
    InvalidArgumentError if a matrix is singular.
    """
    check_matrix(input, name="Input tensor")
    _check_first_pivot(input, "Input is not invertible.")
    size = input.shape[-1]
    factors = np.array(input).reshape(int(np.prod(input.shape[:-2])), size, size)
    order = np.tile(np.arange(size), (len(factors), 1))
    batch = np.arange(len(factors))
    for column in range(size):
        check_task()
        pivot = column + np.argmax(np.abs(factors[:, column:, column]), axis=1)
        for array in (factors, order):
            upper, lower = array[batch, column].copy(), array[batch, pivot].copy()
            array[batch, column], array[batch, pivot] = lower, upper
        diagonal = factors[:, column, column]
        if (diagonal == 0).any():
            raise InvalidArgumentError("Input is not invertible.")
        factors[:, column + 1 :, column] /= diagonal[:, np.newaxis]
        factors[:, column + 1 :, column + 1 :] -= (
            factors[:, column + 1 :, column, np.newaxis]
            * factors[:, column, np.newaxis, column + 1 :]
        )
    return factors.reshape(input.shape), order.reshape(input.shape[:-1]).astype(
        output_idx_type.numpy
    )


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross: return the cross products of the vectors in the last dimension."""
    if np.shape(a) != np.shape(b):
        raise InvalidArgumentError(
            f"Both inputs must be of same shape: {shape_text(a.shape)} vs. {shape_text(b.shape)}"
        )
    if not np.ndim(a):
        raise InvalidArgumentError(f"Input must be at least 1D{shape_text(a.shape)}")
    if a.shape[-1] != 3:
        raise FailedPreconditionError("Cross-products are only defined for 3-element vectors.")
    after, before = [1, 2, 0], [2, 0, 1]
    return a[..., after] * b[..., before] - a[..., before] * b[..., after]


FUNCTIONS: dict[str, Kernel] = {
    "Cholesky": cholesky,
    "MatrixDeterminant": matrix_determinant,
    "LogMatrixDeterminant": log_matrix_determinant,
    "MatrixInverse": matrix_inverse,
    "MatrixSolve": matrix_solve,
    "MatrixTriangularSolve": matrix_triangular_solve,
    "MatrixSolveLs": matrix_solve_ls,
    "SelfAdjointEigV2": self_adjoint_eig_v2,
    "Eig": eig,
    "Qr": qr,
    "Svd": svd,
    "Lu": lu,
}
# The ops had these names before GraphDef version 13; old graphs still use them.
BATCH_NAMES: dict[str, Kernel] = {
    "BatchCholesky": cholesky,
    "BatchCholeskyGrad": cholesky_grad,
    "BatchMatrixDeterminant": matrix_determinant,
    "BatchMatrixInverse": matrix_inverse,
    "BatchMatrixSolve": matrix_solve,
    "BatchMatrixSolveLs": matrix_solve_ls,
    "BatchMatrixTriangularSolve": matrix_triangular_solve,
    "BatchSelfAdjointEig": self_adjoint_eig,
    "BatchSelfAdjointEigV2": self_adjoint_eig_v2,
    "BatchSvd": svd,
}

KERNELS: tuple[KernelDef, ...] = (
    *(
        KernelDef(op, function, {"T": SINGLE_AND_DOUBLE + COMPLEX_TYPES}, expensive=True)
        for op, function in FUNCTIONS.items()
    ),
    *(KernelDef(op, function, expensive=True) for op, function in BATCH_NAMES.items()),
    KernelDef("MatrixInverse", half_matrix_inverse, {"T": (DataType.HALF,)}, expensive=True),
    KernelDef("Qr", half_qr, {"T": (DataType.HALF,)}, expensive=True),
    KernelDef("CholeskyGrad", cholesky_grad, {"T": SINGLE_AND_DOUBLE}, expensive=True),
    KernelDef("Cross", cross),
    KernelDef("SelfAdjointEig", self_adjoint_eig, {"T": SINGLE_AND_DOUBLE}, expensive=True),
)
