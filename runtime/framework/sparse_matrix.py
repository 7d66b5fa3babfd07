"""Sparse matrices, and batches of them, as the values of variant tensors.

Guarantees: immutable; entries are sorted by batch, row and column.

TF: tensorflow/core/kernels/sparse/sparse_matrix.h (CSRSparseMatrix)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np


@dataclasses.dataclass(frozen=True, slots=True)
class SparseMatrix:
    """The entries of a batch of matrices; one matrix is a batch of 1 with `is_batch` False."""

    batches: np.ndarray  # int64 [entries]: the index of each entry's matrix in the batch
    rows: np.ndarray  # int64 [entries]: the row of each entry
    columns: np.ndarray  # int64 [entries]: the column of each entry
    values: np.ndarray  # [entries]: the value of each entry
    batch_size: int
    num_rows: int
    num_columns: int
    is_batch: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the variant tensor that holds the matrix or batch, which is a scalar."""
        return ()

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """The sizes `[rows, columns]`, or `[batch, rows, columns]` if `is_batch`."""
        sizes = self.num_rows, self.num_columns
        return (self.batch_size, *sizes) if self.is_batch else sizes

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the arrays of the entries."""
        return 0, (self.batches, self.rows, self.columns, self.values)

    def indices(self) -> np.ndarray:
        """Return the coordinates of the entries in `dense_shape`: int64 `[entries, 2 or 3]`."""
        axes = [self.batches, self.rows, self.columns]
        return np.stack(axes if self.is_batch else axes[1:], axis=1)

    def transposed(self) -> SparseMatrix:
        """Return the transposed matrix, or the batch of transposed matrices."""
        return from_coordinates(
            self.batches,
            self.columns,
            self.rows,
            self.values,
            (self.batch_size, self.num_columns, self.num_rows),
            self.is_batch,
        )

    def with_values(self, values: np.ndarray) -> SparseMatrix:
        """Return a matrix with the same coordinates and with the values `values` `[entries]`."""
        return dataclasses.replace(self, values=values)


def from_coordinates(
    batches: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    sizes: tuple[int, int, int],
    is_batch: bool,
) -> SparseMatrix:
    """Return the sparse matrix of entries that may be in any order.

    `sizes` are the batch size, the number of rows and the number of columns.
    """
    order = np.lexsort((columns, rows, batches))
    return SparseMatrix(
        batches[order], rows[order], columns[order], values[order], *sizes, is_batch
    )
