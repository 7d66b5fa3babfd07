"""Datasets that split batches into rows or into batches of other sizes.

TF: tensorflow/core/kernels/data/experimental/{unbatch,rebatch}_dataset_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.data.dataset import (
    INFINITE,
    UNKNOWN,
    Dataset,
    DatasetIterator,
    Element,
    State,
    UnaryDataset,
    UnaryIterator,
    as_dataset,
    scalar_argument,
    wrapped,
)
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.kernels.array.boxing import box
from runtime.kernels.data.element_components import row

Batch = tuple[np.ndarray, ...]  # an element whose components consist of rows


class UnbatchDataset(UnaryDataset):
    """UnbatchDataset: the slices of the input's elements along their first dimension."""

    kind = "Unbatch"

    def __init__(
        self, input_dataset: Dataset, *, output_types: Types, output_shapes: Shapes
    ) -> None:
        shapes = as_dataset(input_dataset).output_shapes
        rows = tuple(None if shape is None else shape[1:] for shape in shapes)
        super().__init__(input_dataset, output_shapes=rows)

    @property
    def cardinality(self) -> int:
        """The number of slices, or UNKNOWN if the size of the batches is unknown."""
        available = self.input.cardinality
        if available in (INFINITE, UNKNOWN):
            return available
        sizes = {shape[0] for shape in self.input.output_shapes if shape} or {-1}
        return UNKNOWN if max(sizes) <= 0 else wrapped(available * max(sizes))

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the slices."""
        return _UnbatchIterator(self, context, prefix)


class _UnbatchIterator(UnaryIterator):
    state = ("input", "batch", "position")

    def __init__(self, dataset: UnbatchDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self.batch: Batch | None = None
        self.position = 0  # index in `batch` of the next slice

    def get_next(self, context: OpKernelContext) -> Element | None:
        while self.batch is None or self.position >= len(self.batch[0]):
            element = self.next_input(context)
            if element is None:
                self.batch = None
                return None
            self.batch = tuple(box(component) for component in element)
            self.position = 0
            _check_batch(self.batch)
        self.position += 1
        return tuple(row(component, self.position - 1) for component in self.batch)


def _check_batch(components: Batch) -> None:
    for index, component in enumerate(components):
        if not component.ndim:
            raise InvalidArgumentError(
                "Input element must have a non-scalar value in each component."
            )
        if len(component) != len(components[0]):
            raise InvalidArgumentError(
                "Input element must have the same batch size in each component. Component 0 had "
                f"size {len(components[0])} but component {index} had size, {len(component)}."
            )


class RebatchDataset(UnaryDataset):
    """RebatchDatasetV2: the rows of the input's batches, in batches of the sizes `batch_sizes`.

    The sizes are used in turn.
    """

    kind = "RebatchV2"

    def __init__(
        self,
        input_dataset: Dataset,
        batch_sizes: np.ndarray,
        drop_remainder: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        if np.ndim(batch_sizes) > 1:
            raise InvalidArgumentError("`batch_sizes` must be a scalar or a vector.")
        self.batch_sizes = np.ravel(batch_sizes).tolist()
        self.drop_remainder = bool(scalar_argument(drop_remainder, "drop_remainder"))

    @property
    def cardinality(self) -> int:
        """Always UNKNOWN, because the input's batches may have any sizes."""
        return UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the new batches.

        Raises InvalidArgumentError if `batch_sizes` is empty or contains a negative size.
        """
        if not self.batch_sizes or any(size < 0 for size in self.batch_sizes):
            raise InvalidArgumentError(
                f"A RebatchDataset needs batch sizes, none of them negative, got {self.batch_sizes}"
            )
        return _RebatchIterator(self, context, prefix)


class _RebatchIterator(UnaryIterator):
    state = ("input", "batch", "offset", "turn")

    def __init__(self, dataset: RebatchDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self.batch: Batch | None = None  # the input's batch from which rows are taken
        self.offset = 0  # index in `batch` of the first row that has not been returned
        self.turn = 0  # index into `batch_sizes`
        self._parts: list[Batch] = []  # of the next batch

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self.input is None and self.batch is None:
            return None
        wanted = self._dataset.batch_sizes[self.turn]
        parts = self._parts = []
        count = 0
        while count < wanted and self._has_rows(context):
            assert self.batch is not None
            stop = min(self.offset + wanted - count, len(self.batch[0]))
            parts.append(tuple(component[self.offset : stop] for component in self.batch))
            count += stop - self.offset
            self.offset = stop
        self._parts = []
        self.turn = (self.turn + 1) % len(self._dataset.batch_sizes)
        if count < wanted and (not count or self._dataset.drop_remainder):
            self.input = self.batch = None
            return None
        if not wanted:
            return self._empty()
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))

    def _has_rows(self, context: OpKernelContext) -> bool:
        while self.batch is None or self.offset >= len(self.batch[0]):
            element = self.next_input(context)
            if element is None:
                self.batch = None
                return False
            self.batch = tuple(box(component) for component in element)
            self.offset = 0
            _check_batch(self.batch)
        return True

    def _empty(self) -> Element:
        return tuple(
            np.zeros((0, *(max(size, 0) for size in (shape or ())[1:])), data_type.numpy)
            for data_type, shape in zip(
                self._dataset.output_types, self._dataset.output_shapes, strict=True
            )
        )

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        if self.batch is not None:
            self.batch = tuple(box(component) for component in self.batch)


class SplitBatchesDataset(UnaryDataset):
    """RebatchDataset: the input's batches, each split into `num_replicas` parts.

    If a batch cannot be split evenly, the last parts are smaller or empty. `use_fallback` selects
    how TensorFlow finds the batches in a pipeline; it does not change the parts.
    """

    kind = "Rebatch"

    def __init__(
        self,
        input_dataset: Dataset,
        num_replicas: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        self.num_replicas = scalar_argument(num_replicas, "num_replicas")
        if self.num_replicas <= 0:
            raise InvalidArgumentError("num_replicas must be greater than zero.")

    @property
    def cardinality(self) -> int:
        """UNKNOWN, as in TensorFlow."""
        return UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the parts."""
        return _SplitBatchesIterator(self, context, prefix)


class _SplitBatchesIterator(UnaryIterator):
    state = ("input", "batch", "part")

    def __init__(self, dataset: SplitBatchesDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._count = dataset.num_replicas
        self.batch: Batch | None = None
        self.part = 0  # index of the next part of the batch

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self.batch is None or self.part == self._count:
            element = self.next_input(context)
            if element is None:
                self.batch = None
                return None
            self.batch = tuple(box(component) for component in element)
            self.part = 0
            _check_batch(self.batch)
        size = -(-len(self.batch[0]) // self._count)
        start = self.part * size
        self.part += 1
        return tuple(component[start : start + size] for component in self.batch)


KERNELS = (
    KernelDef("ExperimentalRebatchDataset", SplitBatchesDataset),
    KernelDef("ExperimentalUnbatchDataset", UnbatchDataset),
    KernelDef("RebatchDataset", SplitBatchesDataset),
    KernelDef("RebatchDatasetV2", RebatchDataset),
    KernelDef("UnbatchDataset", UnbatchDataset),
)
