"""Datasets that map each element to a dataset and join the elements of these datasets.

TF: tensorflow/core/kernels/data/{flat_map,interleave,parallel_interleave}_dataset_op.cc
"""

from __future__ import annotations

import os

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.data.captured_function import CapturedFunction
from runtime.framework.data.dataset import (
    INFINITE,
    UNKNOWN,
    ConcatenatingIterator,
    Dataset,
    DatasetIterator,
    Element,
    State,
    UnaryDataset,
    UnaryIterator,
    scalar_argument,
    wrapped,
)
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.data.dataset_functions import check_parallelism


class FlatMapDataset(UnaryDataset):
    """FlatMapDataset: the elements of the datasets that `f` returns, one dataset after another."""

    kind = "FlatMap"

    def __init__(
        self,
        input_dataset: Dataset,
        *captures: TensorValue,
        f: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
        metadata: str,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        self.function = CapturedFunction(f, captures, metadata)

    @property
    def cardinality(self) -> int:
        """Always UNKNOWN, because the function may return datasets of any cardinality."""
        return UNKNOWN

    def computed_cardinality(self, context: OpKernelContext) -> int:
        """Return the sum of the cardinalities of the datasets that the function returns.

        Calls the function for every element of the input, unless the input is infinite.
        """
        if self.input.computed_cardinality(context) == INFINITE:
            return INFINITE
        elements, total = self.input.iterate(context), 0
        while (element := elements.get_next(context)) is not None:
            context.cancellation.check()
            made = self.function.dataset(context, "Cardinality", *element)
            count = made.computed_cardinality(context)
            if count < 0:
                return count
            total += count
        return wrapped(total)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over one dataset after another."""
        return _FlatMapIterator(self, context, prefix)


class _FlatMapIterator(ConcatenatingIterator):
    state = ("input", "element", "index")

    def __init__(self, dataset: FlatMapDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._function = dataset.function
        self._prefix = prefix
        self.element: Element | None = None  # the element from which `f` made the current dataset
        self.index = 0  # index of the next dataset

    def choose_next(self, context: OpKernelContext) -> bool:
        self.element = self.next_input(context)
        self.index += self.element is not None
        return self.element is not None

    def begin(self, context: OpKernelContext) -> DatasetIterator:
        assert self.element is not None
        return self._function.iterate(context, self._prefix, self.index - 1, *self.element)


class InterleaveDataset(UnaryDataset):
    """InterleaveDataset: the elements of datasets that `f` returns, taken in turn.

    `block_length` elements are taken from each of `cycle_length` datasets.
    """

    kind = "Interleave"

    def __init__(
        self,
        input_dataset: Dataset,
        *captures_and_sizes: TensorValue,
        f: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
        metadata: str,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        *captures, cycle_length, block_length = captures_and_sizes
        self.function = CapturedFunction(f, tuple(captures), metadata)
        self.cycle_length = scalar_argument(cycle_length, "cycle_length")
        self.block_length = scalar_argument(block_length, "block_length")
        self.check_lengths()
        self.has_chosen_length = self.cycle_length == -1
        if self.has_chosen_length:
            self.cycle_length = os.cpu_count() or 1

    def check_lengths(self) -> None:
        """Raise InvalidArgumentError if `cycle_length` or `block_length` is not valid.

        Overridden for ops with other messages.
        """
        if self.cycle_length <= 0 and self.cycle_length != -1:
            raise InvalidArgumentError("cycle_length must be greater than zero.")
        if self.block_length <= 0:
            raise InvalidArgumentError("block_length must be greater than zero.")

    @property
    def cardinality(self) -> int:
        """Always UNKNOWN, because the function may return datasets of any cardinality."""
        return UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator that takes blocks from several datasets in turn."""
        return _InterleaveIterator(self, context, prefix)


# Parallel op → names of the inputs that follow `cycle_length` and `block_length`.
_BUFFERS = ("buffer_output_elements", "prefetch_input_elements")
_TUNING_INPUTS: dict[str, tuple[str, ...]] = {
    "ExperimentalParallelInterleaveDataset": ("sloppy", *_BUFFERS),
    "LegacyParallelInterleaveDatasetV2": _BUFFERS,
    "ParallelInterleaveDataset": ("sloppy", *_BUFFERS),
    "ParallelInterleaveDatasetV2": ("num_parallel_calls",),
    "ParallelInterleaveDatasetV3": ("num_parallel_calls",),
    "ParallelInterleaveDatasetV4": (*_BUFFERS, "num_parallel_calls"),
}
_LEGACY = (
    "ExperimentalParallelInterleaveDataset",
    "LegacyParallelInterleaveDatasetV2",
    "ParallelInterleaveDataset",
)


class ParallelInterleaveDataset(InterleaveDataset):
    """The parallel interleave ops: datasets with the same elements as InterleaveDataset.

    The inputs for numbers of threads and sizes of buffers are checked and otherwise ignored.
    """

    kind = "ParallelInterleaveV4"

    def __init__(
        self,
        context: OpKernelContext,
        input_dataset: Dataset,
        *captures_and_sizes: TensorValue,
        f: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
        metadata: str,
    ) -> None:
        self._is_legacy = context.node.op in _LEGACY
        names = _TUNING_INPUTS[context.node.op]
        super().__init__(
            input_dataset,
            *captures_and_sizes[: -len(names)],
            f=f,
            output_types=output_types,
            output_shapes=output_shapes,
            metadata=metadata,
        )
        for name, given in zip(names, captures_and_sizes[-len(names) :], strict=True):
            self._check_tuning(name, scalar_argument(given, name))

    def check_lengths(self) -> None:
        """Raise InvalidArgumentError if `cycle_length` or `block_length` is not valid.

        The legacy ops do not accept −1 as `cycle_length`.
        """
        if self._is_legacy and self.cycle_length <= 0:
            raise InvalidArgumentError("`cycle_length` must be > 0")
        if self.cycle_length <= 0 and self.cycle_length != -1:
            raise InvalidArgumentError(
                "`cycle_length` must be `tf.data.AUTOTUNE` or greater than 0 but is "
                f"{self.cycle_length}"
            )
        if self.block_length <= 0:
            raise InvalidArgumentError("`block_length` must be > 0")

    def _check_tuning(self, name: str, value: int) -> None:
        if name == "num_parallel_calls":
            self._check_calls(value)
        if name not in _BUFFERS or (value == -1 and not self._is_legacy):
            return
        least, bound = (1, "> 0") if name == "buffer_output_elements" else (0, ">= 0")
        if value >= least:
            return
        if self._is_legacy:
            raise InvalidArgumentError(f"`{name}` must be {bound}")
        raise InvalidArgumentError(f"`{name}` must be `tf.data.AUTOTUNE` or {bound} but is {value}")

    def _check_calls(self, count: int) -> None:
        check_parallelism(count)
        if count > self.cycle_length and not self.has_chosen_length:
            raise InvalidArgumentError(
                "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either "
                "`tf.data.AUTOTUNE` or a value less than or equal to `cycle_length`. However, "
                f"`num_parallel_calls` is {count} and `cycle_length` is {self.cycle_length}"
            )

    @property
    def cardinality(self) -> int:
        """INFINITE if the input is infinite, otherwise UNKNOWN."""
        return INFINITE if self.input.cardinality == INFINITE else UNKNOWN


class ExperimentalParallelInterleaveDataset(ParallelInterleaveDataset):
    """ExperimentalParallelInterleaveDataset, which has no attribute `metadata`."""

    def __init__(
        self,
        context: OpKernelContext,
        input_dataset: Dataset,
        *captures_and_sizes: TensorValue,
        f: NameAttrList,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(
            context,
            input_dataset,
            *captures_and_sizes,
            f=f,
            output_types=output_types,
            output_shapes=output_shapes,
            metadata="",
        )


class _InterleaveIterator(UnaryIterator):
    state = ("input", "elements", "indices", "cycle_index", "block_index", "index")

    def __init__(self, dataset: InterleaveDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self._prefix = prefix
        self._current: list[DatasetIterator | None] = []  # at most `cycle_length` iterators
        self.elements: list[Element | None] = []  # the input's element for each current dataset
        self.indices: list[int] = []  # the index of each current dataset
        self.cycle_index = 0
        self.block_index = 0
        self.index = 0  # index of the next dataset

    def get_next(self, context: OpKernelContext) -> Element | None:
        while self.input is not None or any(self._current):
            self._fill_slot(context)
            current = self._current[self.cycle_index] if self._is_filled() else None
            if current is None:
                self._next_in_cycle()
                continue
            context.cancellation.check()
            result = current.get_next(context)
            if result is None:
                self._current[self.cycle_index] = self.elements[self.cycle_index] = None
                self._next_in_cycle()
                continue
            self.block_index += 1
            if self.block_index == self._dataset.block_length:
                self._next_in_cycle()
            return result
        return None

    def _is_filled(self) -> bool:
        return self.cycle_index < len(self._current)

    def _fill_slot(self, context: OpKernelContext) -> None:
        """Start the next dataset at the current position of the cycle, if no dataset is there."""
        if self._is_filled() and self._current[self.cycle_index] is not None:
            return
        element = self.next_input(context)
        if element is None:
            return
        if not self._is_filled():
            self._current.append(None)
            self.elements.append(None)
            self.indices.append(0)
        self.index += 1
        self.elements[self.cycle_index] = element
        self.indices[self.cycle_index] = self.index - 1
        self._current[self.cycle_index] = self._begin(context, self.cycle_index)

    def _begin(self, context: OpKernelContext, slot: int) -> DatasetIterator:
        element = self.elements[slot]
        assert element is not None
        return self._dataset.function.iterate(context, self._prefix, self.indices[slot], *element)

    def _next_in_cycle(self) -> None:
        self.block_index = 0
        self.cycle_index = (self.cycle_index + 1) % self._dataset.cycle_length
        if self.input is None and not self._is_filled():
            self.cycle_index = 0  # no dataset starts anymore, so the rest of the cycle is empty

    def save(self) -> State:
        current = [None if each is None else each.save() for each in self._current]
        return {**super().save(), "current": current}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        self._current = []
        for slot, each in enumerate(saved["current"]):
            current = None if each is None else self._begin(context, slot)
            if current is not None:
                current.restore(context, each)
            self._current.append(current)


KERNELS = (
    KernelDef("FlatMapDataset", FlatMapDataset),
    KernelDef("InterleaveDataset", InterleaveDataset),
    KernelDef("ExperimentalParallelInterleaveDataset", ExperimentalParallelInterleaveDataset),
    KernelDef("LegacyParallelInterleaveDatasetV2", ParallelInterleaveDataset),
    KernelDef("ParallelInterleaveDataset", ParallelInterleaveDataset),
    KernelDef("ParallelInterleaveDatasetV2", ParallelInterleaveDataset),
    KernelDef("ParallelInterleaveDatasetV3", ParallelInterleaveDataset),
    KernelDef("ParallelInterleaveDatasetV4", ParallelInterleaveDataset),
)
