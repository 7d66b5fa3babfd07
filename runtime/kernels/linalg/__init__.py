"""Kernels of linear algebra: products, decompositions and functions of matrices."""

MODULES: tuple[str, ...] = (
    "einsum",
    "linear_algebra",
    "matmul",
    "matrix_functions",
    "tridiagonal",
)
