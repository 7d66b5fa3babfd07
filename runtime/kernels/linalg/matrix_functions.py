"""Exponentials, logarithms and square roots of batches of square matrices `[…, n, n]`.

Logarithms and roots are computed from the eigendecomposition if the eigenvectors are well
conditioned, otherwise by the Newton iteration of Denman and Beavers. Both are computed in double
precision.

Sources: Higham, Functions of Matrices (2008), algorithms 6.29, 10.20 and 11.10.

TF: tensorflow/core/kernels/linalg/matrix_exponential_op.cc, matrix_logarithm_op.cc,
matrix_square_root_op.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import COMPLEX_TYPES, SINGLE_AND_DOUBLE
from runtime.kernels.linalg.linear_algebra import check_matrix

_WORST_EIGENVECTORS = 1e7  # decompositions are used up to this condition number
_ROOT_STEPS = 60
_MOST_ROOTS = 60
# Padé coefficients of degree 13 for the exponential; they are accurate up to the norm _PADE_NORM.
_PADE = np.array(
    [64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
     10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1],
    np.float64,
)  # fmt: skip
_PADE_NORM = 5.371920351148152
_QUADRATURE = 16  # points of the integral that gives the logarithm near the identity


def _checked(input: np.ndarray) -> np.ndarray:
    check_matrix(input)
    return input


def matrix_exponential(input: np.ndarray) -> np.ndarray:
    """MatrixExponential: return the exponentials, computed by scaling and squaring."""
    matrix = _checked(input).astype(np.result_type(input.dtype, np.float64))
    if not matrix.size:
        return input
    norms = np.abs(matrix).sum(axis=-2).max(axis=-1)
    # A matrix that is not finite gives NaN, but must not set the scale of the whole batch.
    largest = float(norms[np.isfinite(norms)].max(initial=0))
    squarings = max(0, int(np.ceil(np.log2(largest / _PADE_NORM)))) if largest else 0
    scaled = matrix / 2.0**squarings
    powers = [np.broadcast_to(np.eye(matrix.shape[-1]), matrix.shape)]
    square = scaled @ scaled
    for _ in range(6):
        powers.append(powers[-1] @ square)
    even = sum(c * power for c, power in zip(_PADE[::2], powers, strict=True))
    odd = scaled @ sum(c * power for c, power in zip(_PADE[1::2], powers, strict=True))
    result = np.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        result = result @ result
    return result.astype(input.dtype)


def _by_eigenvalues(
    function: Callable[[np.ndarray], np.ndarray], matrix: np.ndarray
) -> np.ndarray | None:
    """Return `function` of a complex matrix, computed from its eigenvalues.

    Returns None if the eigenvectors are ill-conditioned.
    """
    values, vectors = np.linalg.eig(matrix)
    if not np.linalg.cond(vectors) < _WORST_EIGENVECTORS:
        return None
    return (vectors * function(values)) @ np.linalg.inv(vectors)


def _newton_root(matrix: np.ndarray) -> np.ndarray:
    """Return the principal square root, computed by the iteration of Denman and Beavers."""
    root, inverse = matrix, np.eye(len(matrix), dtype=matrix.dtype)
    for _ in range(_ROOT_STEPS):
        following = (root + np.linalg.inv(inverse)) / 2
        inverse = (inverse + np.linalg.inv(root)) / 2
        done = np.abs(following - root).max() <= 1e-15 * np.abs(following).max()
        root = following
        if done:
            break
    return root


def _root(matrix: np.ndarray) -> np.ndarray:
    found = _by_eigenvalues(np.sqrt, matrix)
    return _newton_root(matrix) if found is None else found


def _logarithm(matrix: np.ndarray) -> np.ndarray:
    found = _by_eigenvalues(np.log, matrix)
    if found is not None:
        return found
    identity = np.eye(len(matrix), dtype=matrix.dtype)
    roots = 0
    while np.abs(matrix - identity).max() > 0.1 and roots < _MOST_ROOTS:
        matrix, roots = _newton_root(matrix), roots + 1
    rest = matrix - identity
    points, weights = np.polynomial.legendre.leggauss(_QUADRATURE)
    parts = [
        weight / 2 * np.linalg.solve(identity + (point + 1) / 2 * rest, rest)
        for point, weight in zip(points, weights, strict=True)
    ]
    return np.asarray(2.0**roots * sum(parts))


def _for_each_matrix(function: Callable[[np.ndarray], np.ndarray]) -> Kernel:
    """Return the kernel that applies `function` to each matrix.

    The result is NaN for a matrix for which the function does not exist, and for a real matrix
    whose result is not real.
    """

    def kernel(input: np.ndarray) -> np.ndarray:
        matrices = _checked(input).astype(np.complex128)
        result = np.full(input.shape, np.nan, input.dtype)
        for place in np.ndindex(input.shape[:-2]):
            check_task()
            try:
                with np.errstate(all="ignore"):
                    found = function(matrices[place])
            except np.linalg.LinAlgError:
                continue
            if input.dtype.kind == "c":
                result[place] = found
            elif np.abs(found.imag).max(initial=0) <= 1e-6 * np.abs(found).max(initial=0):
                result[place] = found.real
        return result

    return kernel


TYPES = SINGLE_AND_DOUBLE + COMPLEX_TYPES

KERNELS = (
    KernelDef("MatrixExponential", matrix_exponential, {"T": TYPES}, expensive=True),
    KernelDef(
        "MatrixLogarithm", _for_each_matrix(_logarithm), {"T": COMPLEX_TYPES}, expensive=True
    ),
    KernelDef("MatrixSquareRoot", _for_each_matrix(_root), {"T": TYPES}, expensive=True),
)
