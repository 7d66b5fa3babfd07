"""Sparse matrices, single or in a batch, as the values of variant tensors.

Guarantees: immutable; entries are sorted by batch, row and column.

TF: tensorflow/core/kernels/sparse/sparse_matrix.h (CSRSparseMatrix)
"""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, slots=True)
class SparseMatrix:
    """The entries and their coordinates; one matrix is a batch of 1 with `is_batch` False."""

    batches: np.ndarray  # int64 [entries]
    rows: np.ndarray  # int64 [entries]
    columns: np.ndarray  # int64 [entries]
    values: np.ndarray  # [entries]
    batch_size: int
    num_rows: int
    num_columns: int
    is_batch: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """A variant that holds a matrix, or a batch of them, is a scalar tensor."""
        return ()

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """[rows, columns] or [batch, rows, columns]."""
        sizes = self.num_rows, self.num_columns
        return (self.batch_size, *sizes) if self.is_batch else sizes

    def indices(self) -> np.ndarray:
        """Coordinates in the dense shape: int64 [entries, 2 or 3]."""
        axes = [self.batches, self.rows, self.columns]
        return np.stack(axes if self.is_batch else axes[1:], axis=1)

    def transposed(self) -> SparseMatrix:
        """The transposed matrix, or batch of matrices."""
        return from_coordinates(
            self.batches,
            self.columns,
            self.rows,
            self.values,
            (self.batch_size, self.num_columns, self.num_rows),
            self.is_batch,
        )

    def with_values(self, values: np.ndarray) -> SparseMatrix:
        """A matrix with the same coordinates and other values `[entries]`."""
        return dataclasses.replace(self, values=values)


def from_coordinates(
    batches: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    sizes: tuple[int, int, int],
    is_batch: bool,
) -> SparseMatrix:
    """The sparse matrix of entries in any order; `sizes` are batch size, rows and columns."""
    order = np.lexsort((columns, rows, batches))
    return SparseMatrix(
        batches[order], rows[order], columns[order], values[order], *sizes, is_batch
    )
