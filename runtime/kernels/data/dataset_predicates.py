"""Datasets that use a predicate to choose elements of their input.

TF: tensorflow/core/kernels/data/filter_dataset_op.cc,
tensorflow/core/kernels/data/experimental/take_while_dataset_op.cc
"""

from __future__ import annotations

from runtime.framework.attr_value import NameAttrList
from runtime.framework.data.captured_function import CapturedFunction
from runtime.framework.data.dataset import (
    UNKNOWN,
    Dataset,
    DatasetIterator,
    Element,
    UnaryDataset,
    UnaryIterator,
)
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.data.dataset_functions import check_parallelism


class PredicateDataset(UnaryDataset):
    """A dataset of the elements of the input that a predicate chooses."""

    def __init__(
        self,
        input_dataset: Dataset,
        *captures: TensorValue,
        predicate: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
        metadata: str,
    ) -> None:
        super().__init__(input_dataset)
        self.predicate = CapturedFunction(predicate, captures, metadata)


class FilterDataset(PredicateDataset):
    """FilterDataset: the input's elements for which the predicate is true."""

    kind = "Filter"

    @property
    def cardinality(self) -> int:
        """Always UNKNOWN, because the cardinality depends on the predicate."""
        return UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the elements for which the predicate is true."""
        return _FilterIterator(self, context, prefix)


class ParallelFilterDataset(FilterDataset):
    """ParallelFilterDataset: the same elements as FilterDataset."""

    kind = "ParallelFilter"

    def __init__(
        self,
        input_dataset: Dataset,
        *captures_and_calls: TensorValue,
        predicate: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
        metadata: str,
    ) -> None:
        *captures, num_parallel_calls = captures_and_calls
        check_parallelism(num_parallel_calls)
        super().__init__(
            input_dataset,
            *captures,
            predicate=predicate,
            output_types=output_types,
            output_shapes=output_shapes,
            metadata=metadata,
        )


class _PredicateIterator(UnaryIterator):
    def __init__(self, dataset: PredicateDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._predicate = dataset.predicate
        self._prefix = prefix

    def holds(self, context: OpKernelContext, element: Element) -> bool:
        """Return the predicate's value for `element`."""
        return self._predicate.truth(context, self._prefix, *element)


class _FilterIterator(_PredicateIterator):
    def get_next(self, context: OpKernelContext) -> Element | None:
        while (element := self.next_input(context)) is not None:
            if self.holds(context, element):
                return element
        return None


class TakeWhileDataset(PredicateDataset):
    """TakeWhileDataset: the elements before the first element for which the predicate is false."""

    kind = "TakeWhile"

    def __init__(
        self,
        input_dataset: Dataset,
        *captures: TensorValue,
        predicate: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(
            input_dataset,
            *captures,
            predicate=predicate,
            output_types=output_types,
            output_shapes=output_shapes,
            metadata="",
        )

    @property
    def cardinality(self) -> int:
        """Always UNKNOWN, because the cardinality depends on the predicate."""
        return UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the elements before the predicate is false for the first time."""
        return _TakeWhileIterator(self, context, prefix)


class _TakeWhileIterator(_PredicateIterator):
    def get_next(self, context: OpKernelContext) -> Element | None:
        element = self.next_input(context)
        if element is not None and not self.holds(context, element):
            self.input = None
            return None
        return element


KERNELS = (
    KernelDef("ExperimentalTakeWhileDataset", TakeWhileDataset),
    KernelDef("FilterDataset", FilterDataset),
    KernelDef("ParallelFilterDataset", ParallelFilterDataset),
    KernelDef("TakeWhileDataset", TakeWhileDataset),
)
