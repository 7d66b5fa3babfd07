"""Datasets, which describe how elements are produced, and the iterators that produce them.

A dataset is the value of a variant tensor and is immutable. An element is a tuple of tensors, one
for each component. Each pass over a dataset has its own iterator, which owns iterators of the
dataset's inputs; it may be used only while the lock of its IteratorResource is held.

All work runs in the thread that requests an element. A dataset starts no threads, so the parallel
and prefetching datasets produce the same elements as their sequential counterparts.

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
from runtime.framework.attr_value import AttributeValue
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import OpKernelContext, StepState
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.tensor_value import TensorValue

Element = tuple[TensorValue, ...]
# The state of a saved iterator: nested dicts, lists and tuples of numbers, elements and None.
State = Any

# Cardinalities that are not a number of elements.
INFINITE = -1
UNKNOWN = -2


def wrapped(number: int) -> int:
    """The number wrapped around to an int64, as TensorFlow's counts of elements are."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class DatasetIterator(abc.ABC):
    """One pass over a dataset; not thread-safe.

    `state` names the attributes that are saved in a checkpoint: numbers, elements, lists of them,
    and iterators of inputs (None for an iterator that has ended).
    """

    state: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def get_next(self, context: OpKernelContext) -> Element | None:
        """The next element; None at the end and at every later call."""

    def save(self) -> State:
        """The state from which `restore` continues in a new iterator of the same dataset."""
        return {name: _saved(getattr(self, name)) for name in self.state}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        """Continue from where `save` was called; may be called only on a new iterator."""
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
    """The node that created a dataset and its inputs, from which the dataset can be rebuilt."""

    node: Any  # a NodeView that also has the NodeDef, as `node_def`
    inputs: tuple[TensorValue, ...]


class Dataset(abc.ABC):
    """A description of how to produce elements, with a type and a partial shape per component.

    `kind` is the name of the dataset in TensorFlow's messages.
    """

    kind: ClassVar[str]
    origin: Origin | None = None

    def __init__(
        self, output_types: tuple[DataType, ...], output_shapes: tuple[PartialShape, ...]
    ) -> None:
        self.output_types = output_types
        self.output_shapes = output_shapes

    @classmethod
    def of_node(cls, node: Any, *inputs: Any, **attrs: AttributeValue) -> Self:
        """Construct the dataset with `node` as its origin; called when the class is a kernel."""
        given = inputs[1:] if inputs and isinstance(inputs[0], OpKernelContext) else inputs
        return cls(*inputs, **attrs).made_by(node, given)

    def made_by(self, node: Any, inputs: tuple[TensorValue, ...]) -> Self:
        """Set the origin of this dataset and return it."""
        self.origin = Origin(node, inputs)
        return self

    def step_for(self, step: StepState) -> StepState:
        """The step in which this dataset's functions can be called; `step` unless overridden."""
        return step

    @property
    def shape(self) -> tuple[int, ...]:
        """A dataset is a scalar tensor."""
        return ()

    @property
    def cardinality(self) -> int:
        """The number of elements, INFINITE or UNKNOWN, found without producing elements."""
        return UNKNOWN

    def computed_cardinality(self, context: OpKernelContext) -> int:
        """The cardinality, for which functions of the dataset may be run."""
        return self.cardinality

    @abc.abstractmethod
    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """A new iterator; `prefix` is its name in messages, with those of the enclosing ones."""

    def iterate(self, context: OpKernelContext, prefix: str = "Iterator::Root") -> DatasetIterator:
        """A new iterator inside the iterator whose name in messages is `prefix`."""
        return self.iterator(context, f"{prefix}::{self.kind}")

    @property
    def has_random_access(self) -> bool:
        """Whether `element_at` is supported."""
        return False

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """The element at an index in range; UnimplementedError without random access."""
        raise UnimplementedError(
            f"Random access is not implemented for dataset {self.kind}DatasetOp::Dataset"
        )

    @property
    def global_shuffle_problem(self) -> str:
        """The reason why a global shuffle of the dataset is not possible; "" when it is."""
        return ""

    def checked_element_at(self, context: OpKernelContext, index: int) -> Element:
        """The element at any index.

        Raises OutOfRangeError for an index out of range, FailedPreconditionError when the
        cardinality is infinite or unknown, UnimplementedError without random access.
        """
        if not self.has_random_access:
            return self.element_at(context, index)  # raises UnimplementedError
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
    """A dataset with one input dataset."""

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
        """That of the input, unless overridden."""
        return self.input.global_shuffle_problem

    @property
    def cardinality(self) -> int:
        """The cardinality of the input, unless overridden."""
        return self.input.cardinality


class AlignedDataset(UnaryDataset):
    """A dataset whose element at each index is the input's element at that index."""

    @property
    def has_random_access(self) -> bool:
        """Whether the input has random access."""
        return self.input.has_random_access

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """The input's element at the index."""
        return self.input.element_at(context, index)


class UnaryIterator(DatasetIterator):
    """An iterator with one input iterator, which it releases when the input has ended."""

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
    """The concatenated elements of datasets that are derived from the input's elements."""

    def __init__(self, dataset: UnaryDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._current: DatasetIterator | None = None

    @abc.abstractmethod
    def choose_next(self, context: OpKernelContext) -> bool:
        """Store, in saved attributes, the values from which `begin` derives the next dataset.

        False at the end of the input.
        """

    @abc.abstractmethod
    def begin(self, context: OpKernelContext) -> DatasetIterator:
        """A new iterator of the dataset that `choose_next` chose."""

    def get_next(self, context: OpKernelContext) -> Element | None:
        """The next element of the current dataset or, at its end, of the next non-empty one."""
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
        """The state, including that of the iterator of the current dataset."""
        current = None if self._current is None else self._current.save()
        return {**super().save(), "current": current}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        """Restore the state; the current dataset is derived again by `begin`."""
        super().restore(context, saved)
        if saved["current"] is not None:
            self._current = self.begin(context)
            self._current.restore(context, saved["current"])


class WindowElements(Dataset):
    """A dataset of a list of existing elements: a window, a group."""

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
        """Always true."""
        return True

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """The element at the index of the list."""
        return self.elements[index]

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """An iterator over the elements in order."""
        return IndexIterator(self)


class IndexIterator(DatasetIterator):
    """The elements of a dataset with random access, in order."""

    state = ("position",)

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._count = dataset.cardinality
        self.position = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        """The element at the current position; None at the end."""
        if self.position >= self._count:
            return None
        self.position += 1
        return self._dataset.element_at(context, self.position - 1)


def as_dataset(value: TensorValue) -> Dataset:
    """The dataset in a variant tensor; InvalidArgumentError when it holds another value."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Dataset):
        raise InvalidArgumentError("Tensor must be a Dataset object.")
    return value


def scalar_argument(value: TensorValue, name: str) -> Any:
    """The Python value of a scalar input; InvalidArgumentError when its rank is not 0."""
    array = np.asarray(value)
    if array.ndim:
        raise InvalidArgumentError(f"{name} must be a scalar")
    return array.item()
