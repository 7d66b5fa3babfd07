"""Datasets, which describe how elements are produced, and the iterators that produce them.

A dataset is the value of a variant tensor and is immutable. An element is a tuple of tensors, one
for each component. Each pass over a dataset has its own iterator, which owns the iterators of the
dataset's inputs. An iterator may be used only while the lock of its IteratorResource is held.

All work runs in the thread that requests an element. A dataset starts no threads, so the parallel
and prefetching datasets produce the same elements as their sequential counterparts.

TF: tensorflow/core/framework/dataset.h (DatasetBase, DatasetBaseIterator)
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from runtime.foundation.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
)
from runtime.framework.attr_value import AttributeValue
from runtime.framework.data.element_growth import ElementGrowth
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import OpKernelContext, StepState
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.tensor_value import TensorValue

Element = tuple[TensorValue, ...]
R = TypeVar("R")
# The state of a saved iterator: nested dicts, lists and tuples of numbers, elements and None.
State = Any

# TensorFlow's values of a cardinality that are not a number of elements.
INFINITE = -1
UNKNOWN = -2


def wrapped(number: int) -> int:
    """Return `number` wrapped around to an int64, because TensorFlow's counts wrap around."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class DatasetIterator(abc.ABC):
    """One pass over a dataset; not thread-safe.

    `state` names the attributes that are saved in a checkpoint. Their values are numbers, elements,
    lists of these, and iterators of inputs (None for an iterator that has ended).
    """

    state: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def get_next(self, context: OpKernelContext) -> Element | None:
        """Return the next element, or None at the end of the pass and at every later call."""

    def held(self) -> tuple[int, Iterable[object]]:
        """Return everything that the iterator refers to."""
        return 0, list(vars(self).values())

    def save(self) -> State:
        """Return the state from which `restore` continues in a new iterator of the same dataset."""
        return {name: _saved(getattr(self, name)) for name in self.state}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        """Continue from the state `saved`, which `save` returned.

        Must be called only on a new iterator of the same dataset.
        """
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
    """The node that created a dataset, and the node's inputs.

    The dataset can be rebuilt from the node and the inputs.
    """

    node: Any  # a NodeView whose attribute `node_def` is the NodeDef
    inputs: tuple[TensorValue, ...]

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the inputs; the node belongs to the graph."""
        return 0, self.inputs


class Dataset(abc.ABC):
    """A description of how to produce elements, with a type and a partial shape per component.

    `kind` is the name of the dataset in TensorFlow's error messages.
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
        """Construct the dataset and set `node` and `inputs` as its origin.

        If a dataset class is registered as a kernel, this method is called in place of the
        constructor.
        """
        given = inputs[1:] if inputs and isinstance(inputs[0], OpKernelContext) else inputs
        return cls(*inputs, **attrs).made_by(node, given)

    def made_by(self, node: Any, inputs: tuple[TensorValue, ...]) -> Self:
        """Set the origin of this dataset and return the dataset."""
        self.origin = Origin(node, inputs)
        return self

    def held(self) -> tuple[int, Iterable[object]]:
        """Return everything that the dataset refers to."""
        return 0, list(vars(self).values())

    def step_for(self, step: StepState) -> StepState:
        """Return the step in which this dataset's functions can be called.

        Returns `step` itself, unless a subclass overrides the method.
        """
        return step

    @property
    def shape(self) -> tuple[int, ...]:
        """The empty shape, because a dataset is the value of a scalar tensor."""
        return ()

    @property
    def cardinality(self) -> int:
        """The number of elements, INFINITE or UNKNOWN; determined without producing any element."""
        return UNKNOWN

    def computed_cardinality(self, context: OpKernelContext) -> int:
        """Return the cardinality; unlike `cardinality`, this may call the dataset's functions."""
        return self.cardinality

    @abc.abstractmethod
    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return a new iterator.

        `prefix` is the iterator's name in messages; it begins with the names of the enclosing
        iterators.
        """

    def iterate(self, context: OpKernelContext, prefix: str = "Iterator::Root") -> DatasetIterator:
        """Return a new iterator inside the iterator whose name in messages is `prefix`."""
        return self.iterator(context, f"{prefix}::{self.kind}")

    @property
    def has_random_access(self) -> bool:
        """Whether `element_at` is supported."""
        return False

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the element at `index`, which must be in range.

        Raises UnimplementedError if the dataset has no random access.
        """
        raise UnimplementedError(
            f"Random access is not implemented for dataset {self.kind}DatasetOp::Dataset"
        )

    @property
    def global_shuffle_problem(self) -> str:
        """The reason why the dataset cannot be shuffled globally, or "" if it can be shuffled."""
        return ""

    def checked_element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the element at `index`, which may be any number.

        Raises OutOfRangeError if `index` is out of range, FailedPreconditionError if the
        cardinality is infinite or unknown, UnimplementedError if the dataset has no random access.
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
        """The reason why the input cannot be shuffled globally, unless overridden."""
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
        """Return the input's element at `index`."""
        return self.input.element_at(context, index)


class UnaryIterator(DatasetIterator):
    """An iterator with one input iterator, which is released when it has ended."""

    state: ClassVar[tuple[str, ...]] = ("input",)

    def __init__(self, dataset: UnaryDataset, context: OpKernelContext, prefix: str) -> None:
        self.input: DatasetIterator | None = dataset.input.iterate(context, prefix)

    def next_input(self, context: OpKernelContext) -> Element | None:
        """Return the next element of the input, or None if the input has ended."""
        if self.input is None:
            return None
        context.cancellation.check()
        element = self.input.get_next(context)
        if element is None:
            self.input = None
        else:
            note_element(context, element)
        return element


class ConcatenatingIterator(UnaryIterator, abc.ABC):
    """An iterator over several datasets in sequence, each derived from elements of the input."""

    def __init__(self, dataset: UnaryDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._current: DatasetIterator | None = None

    @abc.abstractmethod
    def choose_next(self, context: OpKernelContext) -> bool:
        """Choose the next dataset; return False if the input has ended.

        An override must store the values from which `begin` derives the dataset in attributes that
        `state` names, because `restore` calls `begin` again.
        """

    @abc.abstractmethod
    def begin(self, context: OpKernelContext) -> DatasetIterator:
        """Return a new iterator over the dataset that `choose_next` chose."""

    def get_next(self, context: OpKernelContext) -> Element | None:
        """Return the next element, or None after the last dataset has ended."""
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
        """Return the state, which includes the state of the current dataset's iterator."""
        current = None if self._current is None else self._current.save()
        return {**super().save(), "current": current}

    def restore(self, context: OpKernelContext, saved: State) -> None:
        """Restore the state; the current dataset is derived again by `begin`."""
        super().restore(context, saved)
        if saved["current"] is not None:
            self._current = self.begin(context)
            self._current.restore(context, saved["current"])


class WindowElements(Dataset):
    """A dataset whose elements are given as a list, for example the elements of a window."""

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
        """Return the element at `index` of the list."""
        return self.elements[index]

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the elements in order."""
        return IndexIterator(self)


class IndexIterator(DatasetIterator):
    """An iterator over a dataset with random access, in the order of the indices."""

    state = ("position",)

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._count = dataset.cardinality
        self.position = 0

    def get_next(self, context: OpKernelContext) -> Element | None:
        """Return the element at the current position, or None at the end."""
        if self.position >= self._count:
            return None
        self.position += 1
        return self._dataset.element_at(context, self.position - 1)


def note_element(context: OpKernelContext, element: Element) -> None:
    """Note an element that the calling iterator may keep.

    Raises ResourceExhaustedError if the resources of the session hold too many bytes.
    """
    growth = getattr(context, "elements", None)  # the slot may be empty
    if growth is not None:
        growth.note(element)


def watched(context: OpKernelContext, root: R, *others: object) -> R:
    """Return `root`, an iterator or a dataset that only the kernel of `context` reads.

    What it and `others` keep while it produces elements is limited as if they were a resource of
    the session.
    """
    growth = ElementGrowth()
    growth.limit(context.resources.limit, is_managed=False)
    if growth.is_limited:
        growth.start(root, *others)
        context.elements = growth
    return root


def as_dataset(value: TensorValue) -> Dataset:
    """Return the dataset in a variant tensor.

    Raises InvalidArgumentError if `value` is not a scalar that holds a dataset.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Dataset):
        raise InvalidArgumentError("Tensor must be a Dataset object.")
    return value


def scalar_argument(value: TensorValue, name: str) -> Any:
    """Return the Python value of the scalar input `value`.

    Raises InvalidArgumentError, whose message calls the input `name`, if its rank is not 0.
    """
    array = np.asarray(value)
    if array.ndim:
        raise InvalidArgumentError(f"{name} must be a scalar")
    return array.item()
