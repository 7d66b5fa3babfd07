"""Datasets that ignore the errors of their input, or check the number of its elements.

TF: tensorflow/core/kernels/data/experimental/{ignore_errors,assert_cardinality}_dataset_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import (
    FailedPreconditionError,
    OpError,
)
from runtime.framework.data.dataset import (
    INFINITE,
    UNKNOWN,
    AlignedDataset,
    Dataset,
    DatasetIterator,
    Element,
    UnaryDataset,
    UnaryIterator,
    scalar_argument,
)
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes


class IgnoreErrorsDataset(UnaryDataset):
    """IgnoreErrorsDataset: the input's elements; elements that raise an error are left out."""

    kind = "IgnoreErrors"

    def __init__(
        self, input_dataset: Dataset, *, output_types: Types, output_shapes: Shapes
    ) -> None:
        super().__init__(input_dataset)

    @property
    def cardinality(self) -> int:
        """Always UNKNOWN, because the number of elements that will fail is not known."""
        return UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the elements that do not fail."""
        return _IgnoreErrorsIterator(self, context, prefix)


class _IgnoreErrorsIterator(UnaryIterator):
    def get_next(self, context: OpKernelContext) -> Element | None:
        while True:
            try:
                return self.next_input(context)
            except OpError:
                context.cancellation.check()


class AssertCardinalityDataset(AlignedDataset):
    """AssertCardinalityDataset: the input, which must have exactly `cardinality` elements."""

    kind = "AssertCardinality"

    def __init__(
        self,
        input_dataset: Dataset,
        cardinality: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        self._cardinality: int = scalar_argument(cardinality, "cardinality")

    @property
    def cardinality(self) -> int:
        """The expected number of elements."""
        return self._cardinality

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that checks the number of elements.

        The iterator raises FailedPreconditionError if the input has fewer or more elements than
        `cardinality`.
        """
        return _AssertCardinalityIterator(self, context, prefix)


class _AssertCardinalityIterator(UnaryIterator):
    state = ("input", "seen")

    def __init__(
        self, dataset: AssertCardinalityDataset, context: OpKernelContext, prefix: str
    ) -> None:
        super().__init__(dataset, context, prefix)
        self._expected = dataset.cardinality
        self.seen = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        element = self.next_input(context)
        self.seen += element is not None
        if element is None and self.seen != self._expected:
            raise self._failure("only ")
        if element is not None and self._expected != INFINITE and self.seen > self._expected:
            raise self._failure("at least ")
        return element

    def _failure(self, how: str) -> OpError:
        return FailedPreconditionError(
            f"Input dataset was expected to contain {_elements(self._expected)} "
            f"but contained {how}{_elements(self.seen)}."
        )


def _elements(count: int) -> str:
    if count == INFINITE:
        return "an infinite number of elements"
    return f"{count} element{'' if count == 1 else 's'}"


KERNELS = (
    KernelDef("AssertCardinalityDataset", AssertCardinalityDataset),
    KernelDef("ExperimentalIgnoreErrorsDataset", IgnoreErrorsDataset),
    KernelDef("IgnoreErrorsDataset", IgnoreErrorsDataset),
)
