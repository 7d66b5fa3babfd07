"""Datasets that combine the elements of several inputs.

TF: tensorflow/core/kernels/data/{concatenate,zip}_dataset_op.cc,
tensorflow/core/kernels/data/experimental/directed_interleave_dataset_op.cc
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import (
    InvalidArgumentError,
    OpError,
)
from runtime.framework.data.dataset import (
    INFINITE,
    UNKNOWN,
    Dataset,
    DatasetIterator,
    Element,
    as_dataset,
    wrapped,
)
from runtime.framework.dtypes import DataType, Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes, common_shape
from runtime.framework.tensor_value import TensorValue


def _common_shapes(datasets: Sequence[Dataset]) -> Shapes:
    """Return, for each component, the partial shape that the elements of all datasets have."""
    components = zip(*(each.output_shapes for each in datasets), strict=False)
    return tuple(functools.reduce(common_shape, shapes) for shapes in components)


class ConcatenateDataset(Dataset):
    """ConcatenateDataset: all elements of the first input, then all elements of the second."""

    kind = "Concatenate"

    def __init__(
        self,
        input_dataset: Dataset,
        another_dataset: Dataset,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        self.inputs = (as_dataset(input_dataset), as_dataset(another_dataset))
        super().__init__(output_types, _common_shapes(self.inputs))
        first, second = (each.output_types for each in self.inputs)
        if first != second:
            raise InvalidArgumentError(
                "input dataset and another dataset have different output_types "
                f"({_type_names(first)} vs. {_type_names(second)})"
            )

    @property
    def cardinality(self) -> int:
        """The sum of the inputs' cardinalities.

        INFINITE if an input is infinite, otherwise UNKNOWN if the cardinality of an input is
        unknown.
        """
        counts = [each.cardinality for each in self.inputs]
        special = next((each for each in (INFINITE, UNKNOWN) if each in counts), None)
        return wrapped(sum(counts)) if special is None else special

    @property
    def has_random_access(self) -> bool:
        """Whether both inputs have random access."""
        return all(each.has_random_access for each in self.inputs)

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the element at `index`, which counts through both datasets."""
        first, second = self.inputs
        count = first.cardinality
        if index < count:
            return first.element_at(context, index)
        return second.element_at(context, index - count)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the first and then the second dataset."""
        return _ConcatenateIterator(self, context, prefix)


def _type_names(types: Types) -> str:
    return ", ".join(each.tf_name for each in types)


class _ConcatenateIterator(DatasetIterator):
    state = ("inputs",)

    def __init__(self, dataset: ConcatenateDataset, context: OpKernelContext, prefix: str) -> None:
        self.inputs: list[DatasetIterator | None] = [
            each.iterate(context, f"{prefix}[{index}]") for index, each in enumerate(dataset.inputs)
        ]

    def get_next(self, context: OpKernelContext) -> Element | None:
        for index, each in enumerate(self.inputs):
            if each is None:
                continue
            context.cancellation.check()
            element = each.get_next(context)
            if element is not None:
                return element
            self.inputs[index] = None
        return None


class ZipDataset(Dataset):
    """ZipDataset: elements that consist of the components of one element of each input.

    The dataset ends when the first of the inputs ends.
    """

    kind = "Zip"

    def __init__(self, *inputs: TensorValue, output_types: Types, output_shapes: Shapes) -> None:
        self.inputs = [as_dataset(each) for each in inputs]
        shapes = tuple(shape for each in self.inputs for shape in each.output_shapes)
        super().__init__(output_types, shapes)

    @property
    def cardinality(self) -> int:
        """The cardinality of the shortest input."""
        counts = [each.cardinality for each in self.inputs]
        if UNKNOWN in counts:
            return UNKNOWN
        return min((count for count in counts if count != INFINITE), default=INFINITE)

    @property
    def has_random_access(self) -> bool:
        """Whether all inputs have random access."""
        return all(each.has_random_access for each in self.inputs)

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the components of the elements at `index` of all inputs."""
        parts = [each.element_at(context, index) for each in self.inputs]
        return tuple(component for part in parts for component in part)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that advances all inputs together."""
        return _ZipIterator(self, context, prefix)


class _ZipIterator(DatasetIterator):
    state = ("inputs", "is_finished")

    def __init__(self, dataset: ZipDataset, context: OpKernelContext, prefix: str) -> None:
        self.inputs = [
            each.iterate(context, f"{prefix}[{index}]") for index, each in enumerate(dataset.inputs)
        ]
        self.is_finished = False

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self.is_finished:
            return None
        context.cancellation.check()
        result: list[TensorValue] = []
        failure: OpError | None = None
        for position, each in enumerate(self.inputs):
            try:
                element = each.get_next(context)
            except OpError as error:
                failure = failure or error  # the other inputs advance too, to stay aligned
                continue
            if element is None:
                self.is_finished = failure is None
                # A cache in another input is complete only if that input is read to its end.
                for other in self.inputs[position + 1 :]:
                    other.get_next(context)
                break
            result += element
        if failure is not None:
            raise failure
        return None if self.is_finished else tuple(result)


class DirectedInterleaveDataset(Dataset):
    """DirectedInterleaveDataset: one element of the input at each index that `selector` returns."""

    kind = "DirectedInterleave"

    def __init__(
        self,
        selector: Dataset,
        *inputs: TensorValue,
        stop_on_empty_dataset: bool,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        self.inputs = [as_dataset(each) for each in inputs]
        super().__init__(output_types, _common_shapes(self.inputs))
        self.selector = as_dataset(selector)
        if self.selector.output_types != (DataType.INT64,):
            raise InvalidArgumentError(
                "The selector dataset must have a single component of type int64, got "
                f"{_type_names(self.selector.output_types)}"
            )
        self.stop_on_empty_dataset = stop_on_empty_dataset

    @property
    def cardinality(self) -> int:
        """INFINITE if an input is infinite, otherwise UNKNOWN."""
        counts = [each.cardinality for each in self.inputs]
        return INFINITE if INFINITE in counts else UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the selected elements."""
        return _DirectedInterleaveIterator(self, context, prefix)


class ExperimentalDirectedInterleaveDataset(DirectedInterleaveDataset):
    """ExperimentalDirectedInterleaveDataset: it goes on when an input has no more elements."""

    def __init__(
        self,
        selector: Dataset,
        *inputs: TensorValue,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(
            selector,
            *inputs,
            stop_on_empty_dataset=False,
            output_types=output_types,
            output_shapes=output_shapes,
        )


class _DirectedInterleaveIterator(DatasetIterator):
    state = ("selector", "inputs")

    def __init__(
        self, dataset: DirectedInterleaveDataset, context: OpKernelContext, prefix: str
    ) -> None:
        self._stops_on_empty = dataset.stop_on_empty_dataset
        self.selector: DatasetIterator | None = dataset.selector.iterate(context, prefix)
        self.inputs: list[DatasetIterator | None] = [
            each.iterate(context, f"{prefix}[{index}]") for index, each in enumerate(dataset.inputs)
        ]

    def get_next(self, context: OpKernelContext) -> Element | None:
        while self.selector is not None:
            context.cancellation.check()
            selected = self.selector.get_next(context)
            if selected is None or not any(self.inputs):
                break
            index = self._checked(int(np.asarray(selected[0])))
            source = self.inputs[index]
            if source is None:
                continue
            element = source.get_next(context)
            if element is not None:
                return element
            self.inputs[index] = None
            if self._stops_on_empty:
                break
        self.selector = None
        return None

    def _checked(self, index: int) -> int:
        if not 0 <= index < len(self.inputs):
            raise InvalidArgumentError(
                f"Selector index out of range: {index} >= {len(self.inputs)}"
            )
        return index


KERNELS = (
    KernelDef("ConcatenateDataset", ConcatenateDataset),
    KernelDef("DirectedInterleaveDataset", DirectedInterleaveDataset),
    KernelDef("ExperimentalDirectedInterleaveDataset", ExperimentalDirectedInterleaveDataset),
    KernelDef("ZipDataset", ZipDataset),
)
