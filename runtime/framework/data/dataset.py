"""Datasets: values that say how elements are made, and the iterators that make them.

A dataset is the value of a variant tensor and never changes. An element is a tuple of tensors, one
a component. Each iteration has an iterator of its own, with iterators of the inputs inside it; an
iterator belongs to whoever holds the lock of its IteratorResource.

Everything runs in the thread that asks for an element: there are no threads behind a dataset, so
the parallel and prefetching kinds give what their sequential namesakes give.

TF: tensorflow/core/framework/dataset.h (DatasetBase, DatasetBaseIterator)
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, Self

import numpy as np

from runtime.foundation.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
)
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import OpKernelContext, StepState
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.tensor_value import TensorValue

Element = tuple[TensorValue, ...]
# What a saved iterator consists of: dicts, lists, tuples, numbers, tensors, None.
State = Any

# Cardinalities that are no number of elements.
INFINITE = -1
UNKNOWN = -2


def wrapped(number: int) -> int:
    """What an int64 holds after arithmetic that goes beyond it: TensorFlow's counts wrap."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class DatasetIterator(abc.ABC):
    """One pass over a dataset; for one thread at a time.

    `state` names the attributes that a checkpoint holds: numbers, elements, lists of them, and
    iterators of inputs (None for one that has ended).
    """

    state: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def get_next(self, context: OpKernelContext) -> Element | None:
        """The next element; None at the end, and again at every later call."""

    def save(self) -> State:
        """What `restore` needs to go on from here, in a new iterator of the same dataset."""
        return {name: _saved(getattr(self, name)) for name in self.state}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        """Go on from where `save` was called; called on a new iterator only."""
        for name in self.state:
            setattr(self, name, _restored(context, getattr(self, name), saved[name]))


def _saved(value: object) -> State:
    if isinstance(value, DatasetIterator):
        return value.save()
    return [_saved(each) for each in value] if isinstance(value, list) else value


def _restored(context: OpKernelContext, current: object, saved: State) -> object:
    if isinstance(current, DatasetIterator):
        if saved is None:
            return None
        current.restore(context, saved)
        return current
    if isinstance(current, list) and any(isinstance(each, DatasetIterator) for each in current):
        return [_restored(context, *pair) for pair in zip(current, saved, strict=True)]
    return saved


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """The node that made a dataset, and what it was given: enough to make it again."""

    node: Any  # with its NodeDef
    inputs: tuple[TensorValue, ...]


class Dataset(abc.ABC):
    """How to make elements of some types and (partial) shapes, one of each for a component.

    `kind` is what TensorFlow's messages call it.
    """

    kind: ClassVar[str]
    origin: Origin | None = None

    def __init__(
        self, output_types: tuple[DataType, ...], output_shapes: tuple[PartialShape, ...]
    ) -> None:
        self.output_types = output_types
        self.output_shapes = output_shapes

    @classmethod
    def of_node(cls, node: Any, *inputs: Any, **attrs: Any) -> Self:
        """A dataset that knows the node that makes it; what a kernel's class is called by."""
        given = inputs[1:] if inputs and isinstance(inputs[0], OpKernelContext) else inputs
        return cls(*inputs, **attrs).made_by(node, given)

    def made_by(self, node: Any, inputs: tuple[TensorValue, ...]) -> Self:
        """The same dataset, which knows where it comes from."""
        self.origin = Origin(node, inputs)
        return self

    def step_for(self, step: StepState) -> StepState:
        """A step that knows the functions of this dataset."""
        return step

    @property
    def shape(self) -> tuple[int, ...]:
        """A dataset is a scalar tensor."""
        return ()

    @property
    def cardinality(self) -> int:
        """How many elements there are, INFINITE or UNKNOWN; found without making any."""
        return UNKNOWN

    def computed_cardinality(self, context: OpKernelContext) -> int:
        """The cardinality, also where functions have to run to find it."""
        return self.cardinality

    @abc.abstractmethod
    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """A new iterator; `prefix` is its place among iterators, as messages show it."""

    def iterate(self, context: OpKernelContext, prefix: str = "Iterator::Root") -> DatasetIterator:
        """A new iterator inside the iterator called `prefix`."""
        return self.iterator(context, f"{prefix}::{self.kind}")

    @property
    def has_random_access(self) -> bool:
        """Whether `element_at` works."""
        return False

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """The element at an index that is in range."""
        raise UnimplementedError(
            f"Random access is not implemented for dataset {self.kind}DatasetOp::Dataset"
        )

    @property
    def global_shuffle_problem(self) -> str:
        """Why the elements can't be had in any order as they are; empty when they can."""
        return ""

    def checked_element_at(self, context: OpKernelContext, index: int) -> Element:
        """The element at any index; OutOfRangeError or FailedPreconditionError if none is there."""
        if not self.has_random_access:
            return self.element_at(context, index)  # says so
        count = self.cardinality
        if count < 0:
            known = "infinite" if count == INFINITE else "unknown"
            raise FailedPreconditionError(
                f"Dataset of type {self.kind}DatasetOp::Dataset has {known} cardinality, "
                "which does not support random access."
            )
        if not 0 <= index < count:
            raise OutOfRangeError(f"Index out of range [0, {count}):{index}")
        return self.element_at(context, index)


class UnaryDataset(Dataset):
    """A dataset made of one other."""

    def __init__(
        self,
        input_dataset: TensorValue,
        output_types: tuple[DataType, ...] = (),
        output_shapes: tuple[PartialShape, ...] = (),
    ) -> None:
        self.input = as_dataset(input_dataset)
        super().__init__(
            output_types or self.input.output_types, output_shapes or self.input.output_shapes
        )

    @property
    def global_shuffle_problem(self) -> str:
        """As the input, unless said otherwise."""
        return self.input.global_shuffle_problem

    @property
    def cardinality(self) -> int:
        """That of the input, unless said otherwise."""
        return self.input.cardinality


class AlignedDataset(UnaryDataset):
    """A dataset whose element at an index is its input's."""

    @property
    def has_random_access(self) -> bool:
        """As the input."""
        return self.input.has_random_access

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """The input's element."""
        return self.input.element_at(context, index)


class UnaryIterator(DatasetIterator):
    """An iterator over one input, which it drops at the end."""

    state: ClassVar[tuple[str, ...]] = ("input",)

    def __init__(self, dataset: UnaryDataset, context: OpKernelContext, prefix: str) -> None:
        self.input: DatasetIterator | None = dataset.input.iterate(context, prefix)

    def next_input(self, context: OpKernelContext) -> Element | None:
        """The next element of the input, or None at its end."""
        if self.input is None:
            return None
        context.cancellation.check()
        element = self.input.get_next(context)
        if element is None:
            self.input = None
        return element


class ConcatenatingIterator(UnaryIterator, abc.ABC):
    """The elements of datasets that are made from the input, one dataset after another."""

    def __init__(self, dataset: UnaryDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._current: DatasetIterator | None = None

    @abc.abstractmethod
    def choose_next(self, context: OpKernelContext) -> bool:
        """Note in the state what the next dataset is made of; False at the end."""

    @abc.abstractmethod
    def begin(self, context: OpKernelContext) -> DatasetIterator:
        """The dataset of what was chosen, from its start."""

    def get_next(self, context: OpKernelContext) -> Element | None:
        """The next element of the current dataset, or the first of one that has any."""
        while True:
            if self._current is not None:
                context.cancellation.check()
                result = self._current.get_next(context)
                if result is not None:
                    return result
                self._current = None
            if not self.choose_next(context):
                return None
            self._current = self.begin(context)

    def save(self) -> State:
        """With the place in the current dataset."""
        current = None if self._current is None else self._current.save()
        return {**super().save(), "current": current}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        """With the current dataset made anew."""
        super().restore(context, saved)
        if saved["current"] is not None:
            self._current = self.begin(context)
            self._current.restore(context, saved["current"])


class WindowElements(Dataset):
    """A dataset of elements that are there: a window, a group."""

    kind = "Window"

    def __init__(
        self,
        elements: list[Element],
        output_types: tuple[DataType, ...],
        output_shapes: tuple[PartialShape, ...],
    ) -> None:
        super().__init__(output_types, output_shapes)
        self.elements = elements

    @property
    def cardinality(self) -> int:
        """The number of elements."""
        return len(self.elements)

    @property
    def has_random_access(self) -> bool:
        """All elements are at hand."""
        return True

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """The element itself."""
        return self.elements[index]

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """The elements in order."""
        return IndexIterator(self)


class IndexIterator(DatasetIterator):
    """The elements of a dataset with random access, in order."""

    state = ("position",)

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._count = dataset.cardinality
        self.position = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        """The element at the position."""
        if self.position >= self._count:
            return None
        self.position += 1
        return self._dataset.element_at(context, self.position - 1)


def as_dataset(value: TensorValue) -> Dataset:
    """The dataset in a variant tensor; InvalidArgumentError when there is something else."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Dataset):
        raise InvalidArgumentError("Tensor must be a Dataset object.")
    return value


def scalar_argument(value: TensorValue, name: str) -> Any:
    """The Python value of a scalar input; InvalidArgumentError when it has another rank."""
    array = np.asarray(value)
    if array.ndim:
        raise InvalidArgumentError(f"{name} must be a scalar")
    return array.item()
