"""Datasets whose elements are batches of their input's elements.

TF: tensorflow/core/kernels/data/{batch,padded_batch}_dataset_op.cc,
tensorflow/core/kernels/data/experimental/dense_to_sparse_batch_dataset_op.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import DataLossError, InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    UnaryDataset,
    UnaryIterator,
    scalar_argument,
)
from runtime.framework.dtypes import DataType, Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import (
    Shapes,
    is_fully_defined,
    shape_from_tensor,
)
from runtime.framework.shapes import shape_text
from runtime.kernels.array.boxing import box
from runtime.kernels.data.element_components import stack


class _BatchedDataset(UnaryDataset):
    """A dataset of batches, each of `batch_size` elements of the input."""

    def __init__(
        self,
        input_dataset: Dataset,
        batch_size: np.ndarray,
        drop_remainder: np.ndarray | bool,
        types: Types = (),
    ) -> None:
        super().__init__(input_dataset, types)
        self.batch_size = scalar_argument(batch_size, "batch_size")
        self.drop_remainder = bool(scalar_argument(drop_remainder, "drop_remainder"))
        if self.batch_size <= 0:
            raise InvalidArgumentError("Batch size must be greater than zero.")
        self.output_shapes = self.batched(self.input.output_shapes)

    def batched(self, shapes: Shapes) -> Shapes:
        """Return the shapes of batches whose elements have the shapes `shapes`."""
        size = self.batch_size if self.drop_remainder else -1
        return tuple(None if shape is None else (size, *shape) for shape in shapes)

    @property
    def cardinality(self) -> int:
        """The number of batches."""
        available = self.input.cardinality
        if available < 0:
            return available
        whole, rest = divmod(available, self.batch_size)
        return whole + bool(rest and not self.drop_remainder)

    def check(self, element: Element) -> None:
        """Raise an error if `element` does not fit into a batch.

        The check is made before the next element is requested.
        """

    def batch(self, elements: list[Element]) -> Element:
        """Return the elements stacked to one batch."""
        return tuple(stack(values) for values in zip(*elements, strict=True))

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the batches."""
        return _BatchIterator(self, context, prefix)


class _BatchIterator(UnaryIterator):
    def __init__(self, dataset: _BatchedDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self._elements: list[Element] = []  # of the next batch

    def get_next(self, context: OpKernelContext) -> Element | None:
        elements = self._elements = []
        while len(elements) < self._dataset.batch_size:
            element = self.next_input(context)
            if element is None:
                break
            self._dataset.check(element)
            elements.append(element)
        self._elements = []
        is_partial = len(elements) < self._dataset.batch_size
        if not elements or (is_partial and self._dataset.drop_remainder):
            return None
        return self._dataset.batch(elements)


class BatchDataset(_BatchedDataset):
    """BatchDataset, BatchDatasetV2: batches of stacked elements, which must have equal shapes."""

    kind = "BatchV2"

    def __init__(
        self,
        input_dataset: Dataset,
        batch_size: np.ndarray,
        drop_remainder: np.ndarray | bool = False,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, batch_size, drop_remainder)

    @property
    def has_random_access(self) -> bool:
        """Whether the input has random access."""
        return self.input.has_random_access

    @property
    def global_shuffle_problem(self) -> str:
        """The reason why the batches cannot be shuffled globally, or "" if they can be shuffled.

        If `drop_remainder` is false, the last batch may be smaller and must remain the last.
        """
        if self.drop_remainder:
            return super().global_shuffle_problem
        return (
            f"{self.kind}DatasetOp::Dataset does not support global shuffling with "
            "`drop_remainder=False`."
        )

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the batch at `index`, which must be in range."""
        start = index * self.batch_size
        stop = min(start + self.batch_size, self.input.cardinality)
        return self.batch([self.input.element_at(context, each) for each in range(start, stop)])


class ParallelBatchDataset(_BatchedDataset):
    """ParallelBatchDataset: the same batches as BatchDatasetV2."""

    kind = "ParallelBatch"

    def __init__(
        self,
        input_dataset: Dataset,
        batch_size: np.ndarray,
        num_parallel_calls: np.ndarray,
        drop_remainder: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, batch_size, drop_remainder)


class PaddedBatchDataset(_BatchedDataset):
    """PaddedBatchDataset, PaddedBatchDatasetV2: batches of elements that are padded to one size."""

    kind = "PaddedBatchV2"

    def __init__(
        self,
        input_dataset: Dataset,
        batch_size: np.ndarray,
        *shapes_values_and_drop: np.ndarray,
        N: int,  # noqa: N803 # the attribute's name
        output_shapes: Shapes,
    ) -> None:
        padded_shapes = shapes_values_and_drop[:N]
        self._padding = shapes_values_and_drop[N : 2 * N]
        drop_remainder = shapes_values_and_drop[2 * N :] or (False,)
        super().__init__(input_dataset, batch_size, drop_remainder[0])
        if any(np.ndim(shape) != 1 for shape in padded_shapes):
            raise InvalidArgumentError("All padded shapes must be vectors")
        self._padded_shapes = tuple(shape_from_tensor(shape) or () for shape in padded_shapes)
        self.output_shapes = self.batched(self._padded_shapes)
        if len(self.input.output_types) != N:
            raise InvalidArgumentError(
                "Number of padded shapes must equal the number of components in the input "
                f"dataset's elements: {N} vs. {len(self.input.output_types)}"
            )
        for value, wanted in zip(self._padding, self.input.output_types, strict=True):
            if np.ndim(value):
                raise InvalidArgumentError("All padding values must be scalars")
            if wanted != DataType.VARIANT and box(value).dtype != wanted.numpy:
                raise InvalidArgumentError(
                    "Mismatched type between padding value "
                    f"and input dataset's component {wanted.tf_name}"
                )

    def batch(self, elements: list[Element]) -> Element:
        """Return the elements padded and stacked to one batch."""
        return tuple(
            self._pad(index, [box(value) for value in values])
            for index, values in enumerate(zip(*elements, strict=True))
        )

    def _pad(self, index: int, values: list[np.ndarray]) -> np.ndarray:
        wanted = self._padded_shapes[index]
        for value in values:
            if value.ndim != len(wanted):
                raise InvalidArgumentError(
                    "All elements in a batch must have the same rank as the padded shape for "
                    f"component{index}: expected rank {len(wanted)} but got element with rank "
                    f"{value.ndim}"
                )
        sizes = tuple(
            max(value.shape[axis] for value in values) if size < 0 else size
            for axis, size in enumerate(wanted)
        )
        check_allocation((len(values), *sizes), values[0].dtype)
        batch = np.empty((len(values), *sizes), values[0].dtype)
        batch[...] = self._padding[index]
        for number, value in enumerate(values):
            if any(size > limit for size, limit in zip(value.shape, sizes, strict=True)):
                raise DataLossError("Attempted to pad to a smaller size than the input element.")
            where: tuple[int | slice, ...] = (number, *map(slice, value.shape))
            batch[where] = value if sizes else value.item() if value.dtype.hasobject else value
        return batch


class DenseToSparseBatchDataset(_BatchedDataset):
    """DenseToSparseBatchDataset: batches as sparse tensors, in which each element is a row.

    No dimension of an element may be larger than in `row_shape`.
    """

    kind = "DenseToSparseBatch"

    def __init__(
        self,
        input_dataset: Dataset,
        batch_size: np.ndarray,
        row_shape: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, batch_size, False, output_types)
        self.output_shapes = output_shapes
        if len(self.input.output_types) != 1:
            raise InvalidArgumentError(
                "DenseToSparseBatchDataset only supports inputs with a single component."
            )
        self._row_shape = shape_from_tensor(row_shape) or ()
        if is_fully_defined(self._row_shape) and math.prod(self._row_shape) >= 1 << 63:
            raise InvalidArgumentError(
                f"Shape {shape_text(self._row_shape)} would have more than 2**63 - 1 elements"
            )

    def check(self, element: Element) -> None:
        """Raise InvalidArgumentError if the rank of `element` is not the rank of `row_shape`.

        Raises DataLossError if a dimension of `element` is larger than in `row_shape`.
        """
        shape = box(element[0]).shape
        if len(shape) != len(self._row_shape):
            raise InvalidArgumentError(self._problem(shape, "incompatible with"))
        if any(0 <= limit < size for size, limit in zip(shape, self._row_shape, strict=True)):
            raise DataLossError(self._problem(shape, "larger than"))

    def _problem(self, shape: tuple[int, ...], how: str) -> str:
        return (
            f"Input element had shape ({shape_text(shape)}) that is {how} the row shape "
            f"({shape_text(self._row_shape)})."
        )

    def batch(self, elements: list[Element]) -> Element:
        """Return the batch as a vector of three variants: indices, values and dense shape."""
        rows = [box(element[0]) for element in elements]
        sizes = self._sizes(rows)
        indices = []
        for number, values in enumerate(rows):
            grid = np.indices(values.shape, np.int64).reshape(values.ndim, -1).T
            batch_index = np.full((len(grid), 1), number, np.int64)
            indices.append(np.concatenate((batch_index, grid), 1))
        packed = np.empty(3, object)
        packed[0] = np.concatenate(indices)
        packed[1] = np.concatenate([values.ravel() for values in rows])
        packed[2] = np.array((len(rows), *sizes), np.int64)
        return (packed,)

    def _sizes(self, rows: list[np.ndarray]) -> list[int]:
        return [
            size if size >= 0 else max(values.shape[axis] for values in rows)
            for axis, size in enumerate(self._row_shape)
        ]


KERNELS = (
    KernelDef("BatchDataset", BatchDataset),
    KernelDef("BatchDatasetV2", BatchDataset),
    KernelDef("DenseToSparseBatchDataset", DenseToSparseBatchDataset),
    KernelDef("ExperimentalDenseToSparseBatchDataset", DenseToSparseBatchDataset),
    KernelDef("PaddedBatchDataset", PaddedBatchDataset),
    KernelDef("PaddedBatchDatasetV2", PaddedBatchDataset),
    KernelDef("ParallelBatchDataset", ParallelBatchDataset),
)
