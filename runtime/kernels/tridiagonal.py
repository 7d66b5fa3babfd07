"""Products with tridiagonal matrices, given as three diagonals.

TF: tensorflow/core/kernels/linalg/tridiagonal_matmul_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.kernels.linear_algebra import check_matrix
from runtime.kernels.register_types import COMPLEX_TYPES, SINGLE_AND_DOUBLE


def tridiagonal_mat_mul(
    superdiag: np.ndarray, maindiag: np.ndarray, subdiag: np.ndarray, rhs: np.ndarray
) -> np.ndarray:
    """TridiagonalMatMul: diagonals `[…, 1, m]` times `[…, m, n]`.

    The last element of the upper diagonal and the first of the lower one lie outside the matrix.
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


KERNELS = (
    KernelDef("TridiagonalMatMul", tridiagonal_mat_mul, {"T": SINGLE_AND_DOUBLE + COMPLEX_TYPES}),
)
