"""Datasets that apply functions to elements: map, map-and-batch, scan and reduce.

The parallel ops call the function for one element after another, in the order of the sequential
ops.

TF: tensorflow/core/kernels/data/{map,parallel_map,reduce}_dataset_op.cc,
tensorflow/core/kernels/data/experimental/{scan,map_and_batch}_dataset_op.cc
"""

from __future__ import annotations

from runtime.foundation.errors import InvalidArgumentError, OutOfRangeError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.data.captured_function import CapturedFunction, check_output_count
from runtime.framework.data.dataset import (
    UNKNOWN,
    Dataset,
    DatasetIterator,
    Element,
    UnaryDataset,
    UnaryIterator,
    as_dataset,
    scalar_argument,
    watched,
)
from runtime.framework.data.dataset_rewrites import check_repeated_shuffles
from runtime.framework.data.iterator_resource import check_shapes
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.data.element_components import stack


class MapDataset(UnaryDataset):
    """MapDataset: the results of the function `f` for each element of the input."""

    kind = "Map"

    def __init__(
        self,
        input_dataset: Dataset,
        *captures: TensorValue,
        f: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
        preserve_cardinality: bool,
        metadata: str,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        self.function = CapturedFunction(f, captures, metadata)
        self.preserve_cardinality = preserve_cardinality

    @property
    def cardinality(self) -> int:
        """The input's cardinality if `preserve_cardinality` is true, otherwise UNKNOWN.

        If `preserve_cardinality` is false, the function may end the sequence.
        """
        return self.input.cardinality if self.preserve_cardinality else UNKNOWN

    @property
    def has_random_access(self) -> bool:
        """Whether the input has random access."""
        return self.input.has_random_access

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the result of the function for the input's element at `index`."""
        return tuple(self.function(context, *self.input.element_at(context, index)))

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that applies the function to one element after another."""
        return _MapIterator(self, context, prefix)


class ParallelMapDataset(MapDataset):
    """ParallelMapDataset, ParallelMapDatasetV2: the same elements as MapDataset."""

    kind = "ParallelMapV2"

    def __init__(
        self,
        input_dataset: Dataset,
        *captures_and_calls: TensorValue,
        f: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
        preserve_cardinality: bool,
        metadata: str,
    ) -> None:
        *captures, num_parallel_calls = captures_and_calls
        check_parallelism(num_parallel_calls)
        super().__init__(
            input_dataset,
            *captures,
            f=f,
            output_types=output_types,
            output_shapes=output_shapes,
            preserve_cardinality=preserve_cardinality,
            metadata=metadata,
        )


def check_parallelism(num_parallel_calls: TensorValue) -> None:
    """Raise InvalidArgumentError unless `num_parallel_calls` is positive or −1.

    −1 means that the runtime chooses the number.
    """
    count = scalar_argument(num_parallel_calls, "num_parallel_calls")
    if count < 1 and count != -1:
        raise InvalidArgumentError("num_parallel_calls must be greater than zero.")


class _MapIterator(UnaryIterator):
    def __init__(self, dataset: MapDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self._prefix = prefix

    def get_next(self, context: OpKernelContext) -> Element | None:
        element = self.next_input(context)
        if element is None:
            return None
        function = self._dataset.function
        try:
            return tuple(function.with_error_context(context, self._prefix, *element))
        except OutOfRangeError as error:
            if not self._dataset.preserve_cardinality:
                return None
            # The caller would interpret OutOfRangeError as the end of the sequence.
            raise InvalidArgumentError(
                f"Function invocation produced OutOfRangeError: {error.message_without_node}",
                error.node,
            ) from None


class MapAndBatchDataset(MapDataset):
    """MapAndBatchDataset: batches of the results of the function `f` for each element."""

    kind = "MapAndBatch"

    def __init__(
        self,
        input_dataset: Dataset,
        *captures_and_sizes: TensorValue,
        f: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
        preserve_cardinality: bool,
    ) -> None:
        *captures, batch_size, num_parallel_calls, drop_remainder = captures_and_sizes
        check_parallelism(num_parallel_calls)
        super().__init__(
            input_dataset,
            *captures,
            f=f,
            output_types=output_types,
            output_shapes=output_shapes,
            preserve_cardinality=preserve_cardinality,
            metadata="",
        )
        self.batch_size = scalar_argument(batch_size, "batch_size")
        self.drop_remainder = scalar_argument(drop_remainder, "drop_remainder")
        if self.batch_size <= 0:
            raise InvalidArgumentError("batch_size must be greater than zero.")

    @property
    def cardinality(self) -> int:
        """The number of batches."""
        available = super().cardinality
        if available < 0:
            return available
        whole, rest = divmod(available, self.batch_size)
        return whole + bool(rest and not self.drop_remainder)

    @property
    def has_random_access(self) -> bool:
        """Always false: the batches are not available by index."""
        return False

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the batches."""
        return _MapAndBatchIterator(self, context, prefix)


class _MapAndBatchIterator(_MapIterator):
    def __init__(self, dataset: MapAndBatchDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._batch_size = dataset.batch_size
        self._drops_remainder = dataset.drop_remainder

    def get_next(self, context: OpKernelContext) -> Element | None:
        elements: list[Element] = []
        while len(elements) < self._batch_size:
            element = super().get_next(context)
            if element is None:
                break
            elements.append(element)
        if not elements or (self._drops_remainder and len(elements) < self._batch_size):
            return None
        return tuple(stack(values) for values in zip(*elements, strict=True))


class ScanDataset(UnaryDataset):
    """ScanDataset: the outputs of `f`, which maps (state, element) to (next state, output)."""

    kind = "Scan"

    def __init__(
        self,
        input_dataset: Dataset,
        *state_and_captures: TensorValue,
        f: NameAttrList,
        Tstate: Types,  # noqa: N803 # the attribute's name
        output_types: Types,
        output_shapes: Shapes,
        preserve_cardinality: bool,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        self.initial_state = state_and_captures[: len(Tstate)]
        self.function = CapturedFunction(f, state_and_captures[len(Tstate) :])
        self.preserve_cardinality = preserve_cardinality

    @property
    def cardinality(self) -> int:
        """The input's cardinality if `preserve_cardinality` is true, otherwise UNKNOWN.

        If `preserve_cardinality` is false, the function may end the sequence.
        """
        return self.input.cardinality if self.preserve_cardinality else UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the outputs of the function."""
        return _ScanIterator(self, context, prefix)


class _ScanIterator(UnaryIterator):
    state = ("input", "values")

    def __init__(self, dataset: ScanDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self.values: Element = dataset.initial_state

    def get_next(self, context: OpKernelContext) -> Element | None:
        element = self.next_input(context)
        if element is None:
            return None
        try:
            outputs = self._dataset.function(context, *self.values, *element)
        except OutOfRangeError as error:
            if not self._dataset.preserve_cardinality:
                return None
            raise InvalidArgumentError(
                f"Function invocation produced OutOfRangeError: {error.message_without_node}",
                error.node,
            ) from None
        count = len(self.values)
        check_output_count(outputs, count)
        self.values = tuple(outputs[:count])
        return tuple(outputs[count:])


def reduce_dataset(
    context: OpKernelContext,
    input_dataset: Dataset,
    *state_and_captures: TensorValue,
    f: NameAttrList,
    Tstate: Types,  # noqa: N803 # the attribute's name
    output_shapes: Shapes,
) -> tuple[TensorValue, ...]:
    """ReduceDataset: return the state after `f` has been applied to all elements.

    `f` maps (state, element) to the next state.
    """
    state = state_and_captures[: len(Tstate)]
    function = CapturedFunction(f, state_and_captures[len(Tstate) :])
    dataset = as_dataset(input_dataset)
    check_repeated_shuffles(dataset)
    iterator = watched(context, dataset.iterate(context, "Iterator::ReduceIterator"))
    while True:
        context.cancellation.check()
        element = iterator.get_next(context)
        if element is None:
            check_shapes(output_shapes, tuple(box(each).shape for each in state))
            return state
        outputs = function(context, *state, *element)
        check_output_count(outputs, len(Tstate))
        state = tuple(outputs)


KERNELS = (
    KernelDef("ExperimentalMapAndBatchDataset", MapAndBatchDataset),
    KernelDef("ExperimentalScanDataset", ScanDataset),
    KernelDef("MapAndBatchDataset", MapAndBatchDataset),
    KernelDef("MapDataset", MapDataset),
    KernelDef("ParallelMapDataset", ParallelMapDataset),
    KernelDef("ParallelMapDatasetV2", ParallelMapDataset),
    KernelDef("ReduceDataset", reduce_dataset),
    KernelDef("ScanDataset", ScanDataset),
)
