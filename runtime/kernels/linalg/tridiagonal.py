"""Products and linear equations of tridiagonal matrices, and banded triangular equations.

TF: tensorflow/core/kernels/linalg/tridiagonal_matmul_op.cc, tridiagonal_solve_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import COMPLEX_TYPES, SINGLE_AND_DOUBLE
from runtime.framework.shapes import shape_text
from runtime.kernels.linalg.linear_algebra import check_matrix, triangular_batch


def tridiagonal_mat_mul(
    superdiag: np.ndarray, maindiag: np.ndarray, subdiag: np.ndarray, rhs: np.ndarray
) -> np.ndarray:
    """TridiagonalMatMul: return the product of a tridiagonal matrix and `rhs` `[…, m, n]`.

    The three diagonals have the shape `[…, 1, m]`. The last element of `superdiag` and the first
    element of `subdiag` are ignored.
    """
    for place, each in enumerate((superdiag, maindiag, subdiag, rhs)):
        check_matrix(each, square=False, name=f"Input tensor {place}")
    for name, each in (("super", superdiag), ("main ", maindiag), ("sub", subdiag)):
        if each.shape != (*rhs.shape[:-2], 1, rhs.shape[-2]):
            raise InvalidArgumentError(f"Invalid {name}diagonal shape.")
    upper, main, lower = (each.swapaxes(-1, -2) for each in (superdiag, maindiag, subdiag))
    result = main * rhs
    result[..., :-1, :] += upper[..., :-1, :] * rhs[..., 1:, :]
    result[..., 1:, :] += lower[..., 1:, :] * rhs[..., :-1, :]
    return result


def tridiagonal_solve(
    diagonals: np.ndarray, rhs: np.ndarray, *, partial_pivoting: bool, perturb_singular: bool
) -> np.ndarray:
    """TridiagonalSolve: return the X for which A · X = rhs, where A is tridiagonal.

    `diagonals` `[…, 3, m]` are the upper, main and lower diagonal of A. A singular matrix gives
    NaN, as does a zero pivot if `partial_pivoting` is false. If `perturb_singular` is set, zero
    pivots are replaced by the machine epsilon times the largest element.
    """
    check_matrix(diagonals, square=False, name="Input tensor 0")
    if diagonals.ndim != rhs.ndim or diagonals.shape[:-2] != rhs.shape[:-2]:
        raise InvalidArgumentError("All input tensors must have the same rank.")
    if diagonals.shape[-2] != 3:
        raise InvalidArgumentError(
            "Expected diagonals to be provided as a matrix with 3 rows, got "
            f"{diagonals.shape[-2]} rows."
        )
    size = diagonals.shape[-1]
    if size != rhs.shape[-2]:
        raise InvalidArgumentError(
            "Expected the same number of left-hand sides and right-hand sides, got "
            f"{size} and {rhs.shape[-2]}."
        )
    if perturb_singular and not partial_pivoting:
        raise InvalidArgumentError(
            "Setting perturb_singular requires also setting partial_pivoting."
        )
    if not rhs.size:
        return rhs
    rows = _band_rows(diagonals)
    right = np.array(rhs)
    with np.errstate(all="ignore"):
        _eliminate(rows, right, partial_pivoting)
        pivots = rows[..., 0]
        if perturb_singular:
            tiny = np.finfo(pivots.dtype).eps * np.abs(diagonals).max(axis=(-1, -2))[..., None]
            pivots[...] = np.where(pivots == 0, tiny, pivots)
        for row in range(size - 1, -1, -1):
            check_task()
            for step in (1, 2):
                if row + step < size:
                    right[..., row, :] -= rows[..., row, step, None] * right[..., row + step, :]
            right[..., row, :] /= rows[..., row, 0, None]
    singular = (pivots == 0).any(axis=-1)
    right[singular] = np.nan
    return right


def _band_rows(diagonals: np.ndarray) -> np.ndarray:
    """Return, for each row, the main element, the two elements after it and the one before it.

    The shape is `[…, m, 4]`.
    """
    upper, main, lower = (diagonals[..., index, :] for index in range(3))
    rows = np.zeros((*main.shape, 4), diagonals.dtype)
    rows[..., 0] = main
    rows[..., :-1, 1] = upper[..., :-1]
    rows[..., 1:, 3] = lower[..., 1:]
    return rows


def _eliminate(rows: np.ndarray, right: np.ndarray, partial_pivoting: bool) -> None:
    """Bring `rows` and `right` to upper triangular form, by writing into both arrays.

    If `partial_pivoting` is set, neighbouring rows are swapped if that gives the larger pivot.
    """
    for row in range(rows.shape[-2] - 1):
        check_task()
        here = rows[..., row, :3].copy()
        below = np.stack(
            [rows[..., row + 1, 3], rows[..., row + 1, 0], rows[..., row + 1, 1]], axis=-1
        )
        rhs_here, rhs_below = right[..., row, :].copy(), right[..., row + 1, :].copy()
        if partial_pivoting:
            swap = (np.abs(below[..., 0]) > np.abs(here[..., 0]))[..., None]
            here, below = np.where(swap, below, here), np.where(swap, here, below)
            rhs_here, rhs_below = (
                np.where(swap, rhs_below, rhs_here), np.where(swap, rhs_here, rhs_below),
            )  # fmt: skip
        factor = np.where(below[..., 0] == 0, 0, below[..., 0] / here[..., 0])[..., None]
        below = below - factor * here
        rows[..., row, :3], right[..., row, :] = here, rhs_here
        rows[..., row + 1, :2] = below[..., 1:]
        right[..., row + 1, :] = rhs_below - factor * rhs_here


def banded_triangular_solve(
    matrix: np.ndarray, rhs: np.ndarray, *, lower: bool, adjoint: bool
) -> np.ndarray:
    """BandedTriangularSolve: return the X for which A · X = rhs.

    `matrix` `[…, k, m]` holds the bands of A as rows. The main diagonal is row 0 if A is lower
    triangular, and the last row if A is upper triangular.
    """
    for index, each in enumerate((matrix, rhs)):
        if each.ndim < 2:
            raise InvalidArgumentError(f"In[{index}] ndims must be >= 2: {each.ndim}")
    if not matrix.size:
        raise InvalidArgumentError(
            f"In[0] must not be an empty tensor: shape {shape_text(matrix.shape)}"
        )
    if not rhs.size:
        raise InvalidArgumentError(
            f"In[1] must not be an empty tensor: shape {shape_text(rhs.shape)}"
        )
    size, bands = matrix.shape[-1], min(matrix.shape[-2:])
    batch = triangular_batch(matrix, rhs, size, lower, adjoint)
    below = matrix if lower else matrix[..., ::-1, :]  # row d has the elements d off the diagonal
    if (below[..., 0, :] == 0).any():
        raise InvalidArgumentError("Input matrix is not invertible.")
    if adjoint:  # element (r, r ∓ d) becomes (r ∓ d, r)
        below = np.conjugate(below)
        shift = -1 if lower else 1
        below = np.stack([np.roll(below[..., d, :], shift * d, -1) for d in range(bands)], axis=-2)
    forward = lower != adjoint
    solution = np.array(np.broadcast_to(rhs, (*batch, *rhs.shape[-2:])))
    for row in range(size) if forward else range(size - 1, -1, -1):
        check_task()
        reach = min(bands - 1, row if forward else size - 1 - row)
        known = solution[..., row - reach : row, :][..., ::-1, :] if forward else (
            solution[..., row + 1 : row + 1 + reach, :]
        )  # fmt: skip
        factors = below[..., 1 : 1 + reach, row]
        solution[..., row, :] -= (factors[..., None, :] @ known)[..., 0, :]
        solution[..., row, :] /= below[..., 0, row, None]
    return solution


TYPES = {"T": SINGLE_AND_DOUBLE + COMPLEX_TYPES}

KERNELS = (
    KernelDef("BandedTriangularSolve", banded_triangular_solve, TYPES, expensive=True),
    KernelDef("TridiagonalMatMul", tridiagonal_mat_mul, TYPES),
    KernelDef("TridiagonalSolve", tridiagonal_solve, TYPES, expensive=True),
)
