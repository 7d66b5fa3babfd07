"""Kernels for products of two sparse matrices, sparse Cholesky factors, and orderings of rows.

The fill-in of a factor is its entries that are zero in the matrix; a good ordering keeps it small.

TF: tensorflow/core/kernels/sparse/sparse_mat_mul_op.cc, sparse_cholesky_op.cc,
sparse_ordering_amd_op.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.sparse_matrix import SparseMatrix, from_coordinates
from runtime.kernels.sparse.sparse_matrices import TYPES, check_sparse_matrix, oriented

# dense arithmetic is faster if there are more products than this for each dense element
_DENSE_FACTOR = 2


def sparse_matrix_sparse_mat_mul(
    a: SparseMatrix,
    b: SparseMatrix,
    *,
    type: DataType,  # the attribute's name
    transpose_a: bool,
    transpose_b: bool,
    adjoint_a: bool,
    adjoint_b: bool,
) -> SparseMatrix:
    """SparseMatrixSparseMatMul: multiply two sparse matrices; the product is sparse.

    A batch of one matrix is repeated to match the other batch. A sum that happens to be zero
    remains an entry.
    """
    for name, transpose, adjoint in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
        if transpose and adjoint:
            raise InvalidArgumentError(
                f"Only one of adjoint_{name} and transpose_{name} may be true."
            )
    for name, value in (("a", a), ("b", b)):
        check_sparse_matrix(value, type.numpy, name)
    left, right = oriented(a, transpose_a, adjoint_a), oriented(b, transpose_b, adjoint_b)
    if left.is_batch != right.is_batch or left.num_columns != right.num_rows:
        raise InvalidArgumentError(
            "Inner product dimensions of A and B do not agree.  Shapes are: "
            f"{shape_text(a.dense_shape)} vs. {shape_text(b.dense_shape)}"
        )
    if left.batch_size != right.batch_size and 1 not in (left.batch_size, right.batch_size):
        raise InvalidArgumentError(
            "Batch sizes of A and B are not compatible.  Batch sizes are: "
            f"{left.batch_size} vs. {right.batch_size}"
        )
    batch = max(left.batch_size, right.batch_size)
    left, right = _repeated(left, batch), _repeated(right, batch)
    starts, lengths = _matches(left, right)
    count = int(lengths.sum())
    sizes = (batch, left.num_rows, right.num_columns)
    dense = (*sizes[:2], left.num_columns), (batch, left.num_columns, sizes[2]), sizes
    if count > _DENSE_FACTOR * sum(map(_elements, dense)):
        return _dense_product(left, right, sizes)
    check_allocation((count, 4), np.int64)
    left_entries = np.repeat(np.arange(len(lengths)), lengths)
    right_entries = np.arange(count) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    rows = left.batches[left_entries] * sizes[1] + left.rows[left_entries]
    places = rows * sizes[2] + right.columns[right_entries]
    unique, inverse = np.unique(places, return_inverse=True)
    values = np.zeros(len(unique), type.numpy)
    np.add.at(values, inverse, left.values[left_entries] * right.values[right_entries])
    return _from_positions(unique, values, sizes, left.is_batch)


def _elements(sizes: Sequence[int]) -> int:
    return sizes[0] * sizes[1] * sizes[2]


def _repeated(matrix: SparseMatrix, batch: int) -> SparseMatrix:
    """Return `matrix` with its batch repeated to size `batch`.

    The batch must be one or that size.
    """
    if matrix.batch_size == batch:
        return matrix
    count = len(matrix.values)
    return SparseMatrix(
        np.repeat(np.arange(batch), count),
        np.tile(matrix.rows, batch),
        np.tile(matrix.columns, batch),
        np.tile(matrix.values, batch),
        batch, matrix.num_rows, matrix.num_columns, matrix.is_batch,
    )  # fmt: skip


def _matches(left: SparseMatrix, right: SparseMatrix) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of `left`, find the entries of `right` to multiply it by.

    Return (index of the first of these entries, number of these entries).
    """
    rows = right.batches * right.num_rows + right.rows
    counts = np.bincount(rows, minlength=right.batch_size * right.num_rows)
    wanted = left.batches * right.num_rows + left.columns
    return (np.cumsum(counts) - counts)[wanted], counts[wanted]


def _from_positions(
    places: np.ndarray, values: np.ndarray, sizes: tuple[int, int, int], is_batch: bool
) -> SparseMatrix:
    """Make a sparse matrix of entries at row-major positions, which must be ascending."""
    rows, columns = np.divmod(places, sizes[2])
    batches, rows = np.divmod(rows, sizes[1])
    return SparseMatrix(batches, rows, columns, values, *sizes, is_batch)


def _dense_product(
    left: SparseMatrix, right: SparseMatrix, sizes: tuple[int, int, int]
) -> SparseMatrix:
    values = _dense(left, left.values) @ _dense(right, right.values)
    ones = (np.ones(len(each.values), np.float32) for each in (left, right))
    meets = _dense(left, next(ones)) @ _dense(right, next(ones))
    places = np.flatnonzero(meets)
    return _from_positions(places, values.ravel()[places], sizes, left.is_batch)


def _dense(matrix: SparseMatrix, values: np.ndarray) -> np.ndarray:
    sizes = matrix.batch_size, matrix.num_rows, matrix.num_columns
    check_allocation(sizes, values.dtype)
    result = np.zeros(sizes, values.dtype)
    result[matrix.batches, matrix.rows, matrix.columns] = values
    return result


def _check_square(matrix: SparseMatrix) -> None:
    if matrix.num_rows != matrix.num_columns:
        raise InvalidArgumentError(
            f"sparse matrix must be square; got: {matrix.num_rows} != {matrix.num_columns}"
        )


def _symmetric_patterns(matrix: SparseMatrix) -> np.ndarray:
    """Return where the lower triangles and their mirror images have entries: bool [batch, n, n]."""
    lower = _dense(matrix, np.ones(len(matrix.values), bool))
    lower &= np.tri(matrix.num_rows, dtype=bool)
    return lower | lower.swapaxes(-1, -2)


def sparse_matrix_ordering_amd(input: SparseMatrix) -> np.ndarray:
    """SparseMatrixOrderingAMD: return a permutation for a sparse Cholesky factorization.

    The permutation keeps the fill-in of the factor small. The method is minimum degree: the next
    node is the node with the fewest remaining neighbours.
    """
    matrix = check_sparse_matrix(input)
    _check_square(matrix)
    size = matrix.num_rows
    orders = np.empty((matrix.batch_size, size), np.int32)
    for order, graph in zip(orders, _symmetric_patterns(matrix), strict=True):
        np.fill_diagonal(graph, False)
        degrees = graph.sum(axis=1)
        for step in range(size):
            check_task()
            chosen = int(np.argmin(degrees))
            order[step] = chosen
            neighbours = np.flatnonzero(graph[chosen])
            graph[np.ix_(neighbours, neighbours)] = True
            graph[neighbours, neighbours] = False
            graph[chosen, :] = graph[:, chosen] = False
            degrees[neighbours] = graph[neighbours].sum(axis=1)
            degrees[chosen] = size + 1
    return orders if matrix.is_batch else orders[0]


def sparse_matrix_sparse_cholesky(
    input: SparseMatrix,
    permutation: np.ndarray,
    *,
    type: DataType,
) -> SparseMatrix:
    """SparseMatrixSparseCholesky: return the Cholesky factor L of the permuted matrix.

    Only the lower triangle of the matrix is read.
    """
    matrix = check_sparse_matrix(input, type.numpy)
    _check_square(matrix)
    order = np.asarray(permutation)
    if order.ndim + 1 != len(matrix.dense_shape):
        raise InvalidArgumentError(
            "sparse matrix must have the same rank as permutation; got: "
            f"{len(matrix.dense_shape)} != {order.ndim} + 1."
        )
    size = matrix.num_rows
    if order.shape[-1] != size:
        raise InvalidArgumentError(
            "permutation must have the same number of elements in each batch as the number of "
            f"rows in sparse matrix; got: {order.shape[-1]} != {size}"
        )
    if matrix.is_batch and len(order) != matrix.batch_size:
        raise InvalidArgumentError(
            "permutation must have the same batch size as sparse matrix; got: "
            f"{len(order)} != {matrix.batch_size}"
        )
    orders = order.reshape(matrix.batch_size, size)
    lower = np.tril(_dense(matrix, matrix.values))
    full = lower + np.conjugate(np.tril(lower, -1)).swapaxes(-1, -2)
    patterns = _symmetric_patterns(matrix)
    parts = []
    for index, each in enumerate(orders):
        factor = _cholesky_factor(full[index], each, index)
        rows, columns = np.nonzero(_factor_pattern(patterns[index][np.ix_(each, each)]))
        parts.append((np.full(len(rows), index), rows, columns, factor[rows, columns]))
    empty = np.zeros(0, np.int64)
    batches, rows, columns, values = (
        (np.concatenate(each) for each in zip(*parts, strict=True)) if parts else [empty] * 4
    )
    sizes = (matrix.batch_size, size, size)
    return from_coordinates(
        batches, rows, columns, values.astype(type.numpy), sizes, matrix.is_batch
    )


def _cholesky_factor(matrix: np.ndarray, order: np.ndarray, index: int) -> np.ndarray:
    try:
        if not np.array_equal(np.sort(order), np.arange(len(matrix))):
            raise np.linalg.LinAlgError
        return np.linalg.cholesky(matrix[np.ix_(order, order)])
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(
            f"Sparse Cholesky factorization failed for batch index {index}. The input might not "
            "be valid."
        ) from None


def _factor_pattern(pattern: np.ndarray) -> np.ndarray:
    """Return where the Cholesky factor of a matrix has entries, with the fill-in.

    `pattern` says where the matrix has entries; it is overwritten.
    """
    np.fill_diagonal(pattern, True)
    for step in range(len(pattern)):
        check_task()
        below = step + 1 + np.flatnonzero(pattern[step + 1 :, step])
        pattern[np.ix_(below, below)] = True
    return np.tril(pattern)


KERNELS = (
    KernelDef("SparseMatrixOrderingAMD", sparse_matrix_ordering_amd, expensive=True),
    KernelDef(
        "SparseMatrixSparseCholesky", sparse_matrix_sparse_cholesky, {"type": TYPES}, expensive=True
    ),
    KernelDef(
        "SparseMatrixSparseMatMul", sparse_matrix_sparse_mat_mul, {"type": TYPES}, expensive=True
    ),
)
