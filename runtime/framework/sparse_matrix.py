"""Sparse matrices, single or in a batch, that travel as variants.

Guarantees: immutable; entries are in order of batch, row and column.

TF: tensorflow/core/kernels/sparse/sparse_matrix.h (CSRSparseMatrix)
"""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, slots=True)
class SparseMatrix:
    """Entries by their coordinates; a single matrix is a batch of one with `is_batch` false."""

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
        """A variant of one matrix, or of a batch of them, is a scalar tensor."""
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
        """Rows and columns swapped."""
        return from_coordinates(
            self.batches,
            self.columns,
            self.rows,
            self.values,
            (self.batch_size, self.num_columns, self.num_rows),
            self.is_batch,
        )

    def with_values(self, values: np.ndarray) -> SparseMatrix:
        """The same places with other values."""
        return dataclasses.replace(self, values=values)


def from_coordinates(
    batches: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    sizes: tuple[int, int, int],
    is_batch: bool,
) -> SparseMatrix:
    """A sparse matrix of entries in any order; `sizes` are batch, rows and columns."""
    order = np.lexsort((columns, rows, batches))
    return SparseMatrix(
        batches[order], rows[order], columns[order], values[order], *sizes, is_batch
    )
