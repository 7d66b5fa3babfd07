"""Kernels for sparse matrices in variants: conversions, transposes, products with dense tensors.

TF: tensorflow/core/kernels/sparse/
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import COMPLEX_TYPES, SINGLE_AND_DOUBLE
from runtime.framework.sparse_matrix import SparseMatrix, from_coordinates
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.math.segment_math import reduce_rows


def _from_tensor(indices: np.ndarray, values: np.ndarray, sizes: tuple[int, ...]) -> SparseMatrix:
    rank = len(sizes)
    if rank not in (2, 3):
        raise InvalidArgumentError(f"SparseTensor must have rank 2 or 3, but found {rank}")
    if np.ndim(indices) != 2 or indices.shape[1] != rank:
        raise InvalidArgumentError(f"indices must be a matrix of {rank} columns")
    if values.shape != indices.shape[:1]:
        raise InvalidArgumentError("Number of elements of values and indices must be the same")
    if (indices < 0).any() or (indices >= np.array(sizes)).any():
        raise InvalidArgumentError("indices of a sparse matrix are out of bounds")
    check_allocation((sizes[0] if rank == 3 else 1, sizes[-2] + 1), np.int32)
    batches = indices[:, 0] if rank == 3 else np.zeros(len(indices), np.int64)
    batch_size = sizes[0] if rank == 3 else 1
    rows, columns = indices[:, -2], indices[:, -1]
    return from_coordinates(
        batches, rows, columns, values, (batch_size, sizes[-2], sizes[-1]), rank == 3
    )


def dense_to_csr_sparse_matrix(dense_input: np.ndarray, indices: np.ndarray) -> SparseMatrix:
    """DenseToCSRSparseMatrix: return a sparse matrix of elements of a dense tensor.

    `indices` names these elements; it is [n, 2] or, for a batch of matrices, [n, 3].
    """
    if np.ndim(dense_input) not in (2, 3) or np.ndim(indices) != 2:
        raise InvalidArgumentError(
            "dense must have rank 2 or 3 and indices rank 2, but they have ranks "
            f"{np.ndim(dense_input)} and {np.ndim(indices)}"
        )
    if indices.shape[1] != dense_input.ndim:
        raise InvalidArgumentError(f"indices must have {dense_input.ndim} columns")
    outside = (indices < 0) | (indices >= np.array(dense_input.shape))
    if outside.any():
        raise InvalidArgumentError("indices of a sparse matrix are out of bounds")
    return _from_tensor(indices, dense_input[tuple(indices.T)], dense_input.shape)


def sparse_tensor_to_csr_sparse_matrix(
    indices: np.ndarray, values: np.ndarray, dense_shape: np.ndarray
) -> SparseMatrix:
    """SparseTensorToCSRSparseMatrix: convert a sparse tensor of rank 2 or 3 to a sparse matrix."""
    return _from_tensor(indices, values, tuple(np.ravel(dense_shape).tolist()))


def check_sparse_matrix(
    value: TensorValue, dtype: np.dtype | None = None, name: str = "input"
) -> SparseMatrix:
    """Return the sparse matrix that a variant holds.

    Raises InvalidArgumentError if the variant holds another kind of value, or if the dtype is not
    `dtype`.
    """
    if not isinstance(value, SparseMatrix):
        raise InvalidArgumentError("Could not retrieve CSRSparseMatrix from Variant")
    if dtype is not None and value.values.dtype != dtype:
        raise InvalidArgumentError(
            f"dtype of {name} is not equal to 'type': {_type_name(value.values.dtype)} vs. "
            f"{_type_name(dtype)}"
        )
    return value


def _type_name(dtype: np.dtype) -> str:
    return from_numpy(dtype).tf_name


def csr_sparse_matrix_to_dense(
    sparse_input: SparseMatrix,
    *,
    type: DataType,  # the attribute's name
) -> np.ndarray:
    """CSRSparseMatrixToDense: convert the matrix, or the batch of matrices, to a dense tensor."""
    matrix = check_sparse_matrix(sparse_input, type.numpy)
    check_allocation(matrix.dense_shape, type.numpy)
    result = np.zeros(matrix.dense_shape, type.numpy)
    result[tuple(matrix.indices().T)] = matrix.values
    return result


def csr_sparse_matrix_to_sparse_tensor(
    sparse_matrix: SparseMatrix,
    *,
    type: DataType,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSRSparseMatrixToSparseTensor: convert the matrix to a sparse tensor.

    Return (indices [n, rank], values [n], dense shape [rank]).
    """
    matrix = check_sparse_matrix(sparse_matrix, type.numpy)
    return matrix.indices(), matrix.values, np.array(matrix.dense_shape, np.int64)


def csr_sparse_matrix_components(
    csr_sparse_matrix: SparseMatrix,
    index: np.ndarray,
    *,
    type: DataType,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSRSparseMatrixComponents: return the row pointers, columns and values of one matrix.

    `index` is the index of the matrix in its batch.
    """
    matrix = check_sparse_matrix(csr_sparse_matrix, type.numpy)
    if np.ndim(index):
        raise InvalidArgumentError("index should be a scalar")
    if not 0 <= index < matrix.batch_size:
        raise InvalidArgumentError(f"index ({index}) not in [0, {matrix.batch_size})")
    inside = matrix.batches == index
    lengths = np.bincount(matrix.rows[inside], minlength=matrix.num_rows)
    pointers = np.zeros(matrix.num_rows + 1, np.int32)
    np.cumsum(lengths, out=pointers[1:])
    return pointers, matrix.columns[inside].astype(np.int32), matrix.values[inside]


def sparse_matrix_nnz(sparse_matrix: SparseMatrix) -> np.ndarray:
    """SparseMatrixNNZ: return the number of entries of each matrix."""
    matrix = check_sparse_matrix(sparse_matrix)
    counts = np.bincount(matrix.batches, minlength=matrix.batch_size).astype(np.int32)
    return counts if matrix.is_batch else counts.reshape(())


def sparse_matrix_transpose(
    input: SparseMatrix,
    *,
    conjugate: bool,
    type: DataType,
) -> SparseMatrix:
    """SparseMatrixTranspose: transpose the matrix; also conjugate it if `conjugate` is true."""
    matrix = check_sparse_matrix(input, type.numpy).transposed()
    return matrix.with_values(np.conjugate(matrix.values)) if conjugate else matrix


def conjugate(input: SparseMatrix) -> SparseMatrix:
    """Conj: conjugate the sparse matrix that a variant holds."""
    matrix = check_sparse_matrix(input)
    return matrix.with_values(np.conjugate(matrix.values))


def oriented(matrix: SparseMatrix, transpose: bool, adjoint: bool) -> SparseMatrix:
    """Return the matrix, its transpose if `transpose` is true, or its adjoint if `adjoint` is true.

    Raises InvalidArgumentError if both are true.
    """
    if transpose and adjoint:
        raise InvalidArgumentError("Only one of adjoint and transpose may be true.")
    if not (transpose or adjoint):
        return matrix
    turned = matrix.transposed()
    return turned.with_values(np.conjugate(turned.values)) if adjoint else turned


def sparse_matrix_mat_mul(
    a: SparseMatrix,
    b: np.ndarray,
    *,
    transpose_a: bool,
    transpose_b: bool,
    adjoint_a: bool,
    adjoint_b: bool,
    transpose_output: bool,
    conjugate_output: bool,
) -> np.ndarray:
    """SparseMatrixMatMul: multiply a sparse matrix by a dense matrix; the product is dense.

    The operands may also be batches of matrices.
    """
    left = oriented(check_sparse_matrix(a, b.dtype), transpose_a, adjoint_a)
    if transpose_b and adjoint_b:
        raise InvalidArgumentError("Only one of adjoint_b and transpose_b may be true.")
    if b.ndim != len(left.dense_shape):
        raise InvalidArgumentError("Ranks of the operands must be the same")
    right = b.swapaxes(-1, -2) if transpose_b or adjoint_b else b
    right = np.conjugate(right) if adjoint_b else right
    if (*left.dense_shape[:-2], left.num_columns) != right.shape[:-1]:
        raise InvalidArgumentError(
            f"Inner dimensions of the operands must agree: {left.dense_shape} vs. {right.shape}"
        )
    width = right.shape[-1]
    check_allocation((left.batch_size, left.num_rows, width), b.dtype)
    check_allocation((left.values.size, width), b.dtype)
    operand = right.reshape(left.batch_size * left.num_columns, width)
    products = left.values[:, np.newaxis] * operand[left.batches * left.num_columns + left.columns]
    places = left.batches * left.num_rows + left.rows
    total = reduce_rows(np.add, products, places, left.batch_size * left.num_rows, 0)
    result = total.reshape(*left.dense_shape[:-1], width)
    result = result.swapaxes(-1, -2) if transpose_output else result
    return np.conjugate(result) if conjugate_output else result


TYPES = SINGLE_AND_DOUBLE + COMPLEX_TYPES

KERNELS = (
    KernelDef("Conj", conjugate, {"T": (DataType.VARIANT,)}),
    KernelDef("CSRSparseMatrixComponents", csr_sparse_matrix_components, {"type": TYPES}),
    KernelDef("CSRSparseMatrixToDense", csr_sparse_matrix_to_dense, {"type": TYPES}),
    KernelDef("CSRSparseMatrixToSparseTensor", csr_sparse_matrix_to_sparse_tensor, {"type": TYPES}),
    KernelDef("DenseToCSRSparseMatrix", dense_to_csr_sparse_matrix, {"T": TYPES}),
    KernelDef("SparseMatrixMatMul", sparse_matrix_mat_mul, {"T": TYPES}, expensive=True),
    KernelDef("SparseMatrixNNZ", sparse_matrix_nnz),
    KernelDef("SparseMatrixTranspose", sparse_matrix_transpose, {"type": TYPES}),
    KernelDef("SparseTensorToCSRSparseMatrix", sparse_tensor_to_csr_sparse_matrix, {"T": TYPES}),
)
