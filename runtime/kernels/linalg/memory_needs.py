"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple.
"""

from __future__ import annotations

import math

from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.linalg.einsum import make_plan
from runtime.kernels.memory_sizes import (
    broadcast_shape,
    dense,
    elements,
    itemsize,
    shape_of,
    size_of,
)

V = TensorValue
DOUBLE = 8  # bytes; products of integers that are exact in float64 are computed in it


def _product(left: V, right: V, rows: int, columns: int, batch: int, width: int) -> int:
    """Return what a product of matrices needs: results, and both sides in another type."""
    dtype = getattr(left, "dtype", None)
    if dtype is not None and dtype.kind in "iu":
        return batch * rows * columns * 3 * DOUBLE + elements(left, right) * DOUBLE
    is_half = width == 2
    results = batch * rows * columns * (2 * width if is_half else width)
    if is_half:
        return 2 * results + 4 * elements(left, right)
    return results + size_of(left, right)


def _sides(left: V, right: V, *, is_left_turned: bool, is_right_turned: bool) -> tuple[int, int]:
    """Return the rows and columns of a product; (0, 0) if the matrices do not fit.

    The kernel then raises its error before it makes a product, however large that would be.
    """
    rows, inner = shape_of(left)[-2:][:: -1 if is_left_turned else 1]
    other, columns = shape_of(right)[-2:][:: -1 if is_right_turned else 1]
    return (rows, columns) if inner == other else (0, 0)


def _mat_mul(a: V, b: V, *, transpose_a: bool, transpose_b: bool) -> int:
    rows, columns = _sides(a, b, is_left_turned=transpose_a, is_right_turned=transpose_b)
    return _product(a, b, rows, columns, 1, itemsize(a))


def _batch_mat_mul(x: V, y: V, *, adj_x: bool, adj_y: bool) -> int:
    rows, columns = _sides(x, y, is_left_turned=adj_x, is_right_turned=adj_y)
    batch = math.prod(broadcast_shape(shape_of(x)[:-2], shape_of(y)[:-2]))
    return _product(x, y, rows, columns, batch, itemsize(x))


def _batch_mat_mul_v3(x: V, y: V, *, Tout: DataType, adj_x: bool, adj_y: bool) -> int:
    rows, columns = _sides(x, y, is_left_turned=adj_x, is_right_turned=adj_y)
    batch = math.prod(broadcast_shape(shape_of(x)[:-2], shape_of(y)[:-2]))
    width = max(Tout.numpy.itemsize, 4)
    return 3 * batch * rows * columns * width + 2 * elements(x, y) * width


def _einsum(*inputs: V, equation: str) -> int:
    plan = make_plan(equation, tuple(len(shape_of(each)) for each in inputs))
    sizes: dict[str | int, int] = {}
    for labels, value in zip(plan.inputs, inputs, strict=True):
        for label, size in zip(labels, shape_of(value), strict=True):
            sizes[label] = max(size, sizes.get(label, 0))
    width = max(itemsize(inputs[0]), 4)
    product = math.prod(sizes[label] for label in plan.distinct_output)
    output = math.prod(sizes[label] for label in plan.output)
    return (3 * product + 2 * output) * width + 4 * elements(*inputs) * width


def _triangular_solve(matrix: V, rhs: V) -> int:
    batch = broadcast_shape(shape_of(matrix)[:-2], shape_of(rhs)[:-2])
    solution = dense((*batch, *shape_of(rhs)[-2:]), itemsize(rhs))
    return 2 * solution + 3 * size_of(matrix) + 2 * dense(batch, itemsize(rhs))


def _solve_ls(matrix: V, rhs: V, l2_regularizer: V) -> int:
    *batch, _rows, columns = shape_of(matrix)
    solution = dense((*batch, columns, shape_of(rhs)[-1]), itemsize(matrix))
    return 4 * solution + 14 * size_of(matrix) + 2 * size_of(rhs)


def _qr(input: V, *, full_matrices: bool) -> int:
    *batch, rows, columns = shape_of(input)
    width = max(itemsize(input), 4)
    side = rows if full_matrices else min(rows, columns)
    return 3 * dense((*batch, rows, side), width) + 6 * elements(input) * width


def _svd(input: V, *, compute_uv: bool, full_matrices: bool) -> int:
    *batch, rows, columns = shape_of(input)
    width, least = itemsize(input), min(rows, columns)
    vectors = rows * (rows if full_matrices else least) + columns * (
        columns if full_matrices else least
    )
    # a matrix is decomposed in working memory of its own
    found = 3 * math.prod(batch) * vectors * width if compute_uv else 0
    return found + 6 * size_of(input)


def _lu(input: V) -> int:
    return 4 * size_of(input) + 4 * DOUBLE * (elements(input) // max(shape_of(input)[-1], 1))


def _of_each_matrix(input: V) -> int:
    # one matrix at a time, in complex128; points and weights of a quadrature at the first call
    rows, columns = shape_of(input)[-2:]
    return (1 << 20) + 16 * elements(input) + size_of(input) + 40 * 16 * rows * columns


def _exponential(input: V) -> int:
    return 24 * elements(input) * max(itemsize(input), DOUBLE) * (2 if itemsize(input) == 8 else 1)


def _self_adjoint_eig(input: V) -> int:
    # the eigenvalues are one more row above the vectors
    return 8 * (size_of(input) + math.prod(shape_of(input)[:-1]) * itemsize(input))


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "MatMul": _mat_mul,
    "BatchMatMul": _batch_mat_mul,
    "BatchMatMulV2": _batch_mat_mul,
    "BatchMatMulV3": _batch_mat_mul_v3,
    "Einsum": _einsum,
    **dict.fromkeys(
        ("BandedTriangularSolve", "BatchMatrixTriangularSolve", "MatrixTriangularSolve"),
        _triangular_solve,
    ),
    **dict.fromkeys(("BatchMatrixSolveLs", "MatrixSolveLs"), _solve_ls),
    **dict.fromkeys(("BatchSelfAdjointEig", "SelfAdjointEig"), _self_adjoint_eig),
    "Qr": _qr,
    **dict.fromkeys(("BatchSvd", "Svd"), _svd),
    "Lu": _lu,
    "MatrixExponential": _exponential,
    "MatrixLogarithm": _of_each_matrix,
    "MatrixSquareRoot": _of_each_matrix,
}

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(
        (
            "BatchMatrixDeterminant", "LogMatrixDeterminant", "MatrixDeterminant",
        ),
        4,
    ),
    **dict.fromkeys(
        (
            "BatchCholesky", "BatchCholeskyGrad", "Cholesky", "BatchMatrixInverse",
                "BatchMatrixSolve", "BatchSelfAdjointEigV2", "CholeskyGrad", "Cross",
                "MatrixInverse", "MatrixSolve",
            "SelfAdjointEigV2", "TridiagonalMatMul", "TridiagonalSolve",
        ),
        8,
    ),
    "Eig": 16,
}  # fmt: skip
