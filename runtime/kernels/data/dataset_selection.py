"""Datasets that select elements of their input, or repeat it.

TF: tensorflow/core/kernels/data/{take,skip,repeat}_dataset_op.cc,
tensorflow/core/kernels/data/experimental/unique_dataset_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.data.dataset import (
    INFINITE,
    UNKNOWN,
    AlignedDataset,
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
from runtime.kernels.data.element_components import nested_text


class TakeDataset(AlignedDataset):
    """TakeDataset: the first `count` elements, or all elements if `count` is negative."""

    kind = "Take"

    def __init__(
        self,
        input_dataset: Dataset,
        count: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)
        self.count = scalar_argument(count, "count")

    @property
    def cardinality(self) -> int:
        """The smaller of `count` and the input's cardinality, or UNKNOWN if that is unknown.

        As in TensorFlow, −1 is the only negative `count` that means all elements here.
        """
        available = self.input.cardinality
        if available == UNKNOWN or self.count == INFINITE:
            return available
        return self.count if available == INFINITE else min(available, self.count)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the first `count` elements."""
        return _TakeIterator(self, context, prefix)


class _TakeIterator(UnaryIterator):
    state = ("input", "taken")

    def __init__(self, dataset: TakeDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._count = dataset.count
        self.taken = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        if 0 <= self._count <= self.taken:
            self.input = None
            return None
        element = self.next_input(context)
        self.taken += element is not None
        return element


class SkipDataset(UnaryDataset):
    """SkipDataset: the elements after the first `count`, or no elements if `count` is negative."""

    kind = "Skip"

    def __init__(
        self,
        input_dataset: Dataset,
        count: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)
        self.count = scalar_argument(count, "count")

    @property
    def cardinality(self) -> int:
        """The number of elements that are not skipped."""
        available = self.input.cardinality
        if available < 0:
            return available
        return 0 if self.count < 0 else max(0, available - self.count)

    @property
    def has_random_access(self) -> bool:
        """Whether the input has random access."""
        return self.input.has_random_access

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the input's element at `index` + `count`."""
        return self.input.element_at(context, index + self.count)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the elements that are not skipped."""
        return _SkipIterator(self, context, prefix)


class _SkipIterator(UnaryIterator):
    state = ("input", "skipped")

    def __init__(self, dataset: SkipDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._count = dataset.count
        self.skipped = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self._count < 0:
            self.input = None
        while self.skipped < self._count:
            if self.next_input(context) is None:
                return None
            self.skipped += 1
        return self.next_input(context)


class RepeatDataset(UnaryDataset):
    """RepeatDataset: the input's elements `count` times, or endlessly if `count` is negative."""

    kind = "Repeat"

    def __init__(
        self,
        input_dataset: Dataset,
        count: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset)
        self.count = scalar_argument(count, "count")

    @property
    def cardinality(self) -> int:
        """The input's cardinality times `count`, or INFINITE if the repetition is endless."""
        available = self.input.cardinality
        if self.count < 0:
            return 0 if available == 0 else INFINITE
        if self.count == 0:
            return 0
        return available if available < 0 else wrapped(available * self.count)

    @property
    def has_random_access(self) -> bool:
        """Whether the input has random access."""
        return self.input.has_random_access

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the input's element at `index` modulo the input's cardinality."""
        return self.input.element_at(context, index % self.input.cardinality)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the repeated input."""
        return _RepeatIterator(self, context, prefix)


class _RepeatIterator(DatasetIterator):
    state = ("rounds", "is_round_empty", "input")

    def __init__(self, dataset: RepeatDataset, context: OpKernelContext, prefix: str) -> None:
        self._dataset = dataset
        self._prefix = prefix
        self.rounds = 0  # number of completed passes over the input
        self.is_round_empty = True  # whether the current pass has returned no element
        self.input: DatasetIterator | None = None if dataset.count == 0 else self._begin(context)

    def _begin(self, context: OpKernelContext) -> DatasetIterator:
        return self._dataset.input.iterate(context, self._prefix)

    def get_next(self, context: OpKernelContext) -> Element | None:
        while self.input is not None:
            context.cancellation.check()
            element = self.input.get_next(context)
            if element is not None:
                self.is_round_empty = False
                return element
            self.rounds += 1
            count = self._dataset.count
            # An endless repetition ends if the input is empty.
            is_last = self.is_round_empty if count < 0 else self.rounds >= count
            self.input = None if is_last else self._begin(context)
            self.is_round_empty = True
        return None


class UniqueDataset(UnaryDataset):
    """UniqueDataset: each distinct element of the input once, at its first occurrence."""

    kind = "Unique"

    def __init__(
        self, input_dataset: Dataset, *, output_types: Types, output_shapes: Shapes
    ) -> None:
        super().__init__(input_dataset)
        if len(self.input.output_types) != 1:
            raise InvalidArgumentError(
                "UniqueDataset only supports inputs with a single component."
            )

    @property
    def cardinality(self) -> int:
        """Always UNKNOWN, because the cardinality depends on the elements."""
        return UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the first occurrence of each element."""
        return _UniqueIterator(self, context, prefix)


class _UniqueIterator(UnaryIterator):
    state = ("input", "seen")

    def __init__(self, dataset: UniqueDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self.seen: list[Element] = []
        self._known: set[bytes] = set()

    def get_next(self, context: OpKernelContext) -> Element | None:
        while (element := self.next_input(context)) is not None:
            key = nested_text(element[0])
            if key not in self._known:
                self._known.add(key)
                self.seen.append(element)
                return element
        return None

    def restore(self, context: OpKernelContext, saved: State) -> None:
        super().restore(context, saved)
        self._known = {nested_text(element[0]) for element in self.seen}


KERNELS = (
    KernelDef("ExperimentalUniqueDataset", UniqueDataset),
    KernelDef("RepeatDataset", RepeatDataset),
    KernelDef("SkipDataset", SkipDataset),
    KernelDef("TakeDataset", TakeDataset),
    KernelDef("UniqueDataset", UniqueDataset),
)
