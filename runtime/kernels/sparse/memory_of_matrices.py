"""What the kernels of sparse matrices allocate: positions of elements, and matrices made dense."""

from __future__ import annotations

import numpy as np

from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.sparse_matrix import SparseMatrix
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import elements, itemsize, numbers_in, shape_of, size_of

V = TensorValue
INDEX = 8
ENTRY = 20 * INDEX  # an element of a sparse matrix: its position, and orders of positions


def _matrix(value: V) -> SparseMatrix | None:
    found = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    return found if isinstance(found, SparseMatrix) else None


def _entries(*matrices: V) -> int:
    return sum(len(each.values) for each in map(_matrix, matrices) if each is not None)


def _cells(value: V) -> int:
    matrix = _matrix(value)
    return 0 if matrix is None else matrix.batch_size * matrix.num_rows * matrix.num_columns


def _rows(value: V) -> int:
    matrix = _matrix(value)
    return 0 if matrix is None else matrix.batch_size * (matrix.num_rows + 1)


def _width(value: V) -> int:
    matrix = _matrix(value)
    return 0 if matrix is None else matrix.values.itemsize


def _to_dense(sparse_input: V) -> int:
    return _cells(sparse_input) * _width(sparse_input) + _entries(sparse_input) * ENTRY


def _changed(sparse_matrix: V, index: V = None) -> int:
    return _entries(sparse_matrix) * (ENTRY + 2 * _width(sparse_matrix)) + 3 * INDEX * _rows(
        sparse_matrix
    )


def _from_dense(dense_input: V, indices: V) -> int:
    rows = shape_of(indices)[0]
    return rows * (ENTRY + 4 * itemsize(dense_input)) + 4 * size_of(indices)


def _from_tensor(indices: V, values: V, dense_shape: V) -> int:
    sizes = numbers_in(dense_shape)
    return elements(values) * (ENTRY + 4 * itemsize(values)) + 4 * size_of(indices) + 8 * len(sizes)


def _product(a: V, b: V) -> int:
    matrix = _matrix(a)
    if matrix is None:
        return 0
    width = shape_of(b)[-1] if shape_of(b) else 0
    largest = max(shape_of(b)[-2:], default=0)  # `b` may be transposed
    rows = matrix.batch_size * max(matrix.num_rows, matrix.num_columns)
    results = (rows * 3 + len(matrix.values) * 6) * max(width, largest) * itemsize(b)
    return results + len(matrix.values) * ENTRY + rows * 6 * INDEX + 3 * size_of(b)


def _sparse_product(a: V, b: V) -> int:
    left, right = _matrix(a), _matrix(b)
    if left is None or right is None:
        return 0
    batch = max(left.batch_size, right.batch_size)
    repeated = sum(
        len(each.values) * (batch if each.batch_size == 1 else 1) for each in (left, right)
    )
    # rows of `b` are found for each element of `a`; if they are too many, both are made dense
    rows, inner = (left.num_rows, left.num_columns), (right.num_rows, right.num_columns)
    sides = max(rows), max(inner)
    made_dense = batch * (
        left.num_rows * left.num_columns + right.num_rows * right.num_columns + sides[0] * sides[1]
    )
    pairs = min(_pairs(left, right, batch), 2 * made_dense)
    width = left.values.itemsize
    each = 16 * INDEX + 4 * width
    whole = made_dense * (2 * width + 20) if _pairs(left, right, batch) > 2 * made_dense else 0
    return repeated * ENTRY + pairs * each + whole + batch * sides[1] * 4 * INDEX


def _pairs(left: SparseMatrix, right: SparseMatrix, batch: int) -> int:
    return len(left.values) * min(len(right.values), max(right.num_rows, right.num_columns)) * batch


def _ordering(input: V) -> int:
    return 4 * _cells(input) + _entries(input) * ENTRY + _rows(input) * 6 * INDEX


def _cholesky(input: V, permutation: V) -> int:
    return _cells(input) * (5 * _width(input) + 6 + ENTRY) + _entries(input) * ENTRY


MATRICES: dict[str, MemoryNeed] = {
    "CSRSparseMatrixToDense": _to_dense,
    "CSRSparseMatrixToSparseTensor": _changed,
    "CSRSparseMatrixComponents": _changed,
    "Conj": _changed,
    "SparseMatrixNNZ": _changed,
    "SparseMatrixTranspose": _changed,
    "DenseToCSRSparseMatrix": _from_dense,
    "SparseTensorToCSRSparseMatrix": _from_tensor,
    "SparseMatrixMatMul": _product,
    "SparseMatrixSparseMatMul": _sparse_product,
    "SparseMatrixOrderingAMD": _ordering,
    "SparseMatrixSparseCholesky": _cholesky,
}
