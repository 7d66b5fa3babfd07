"""Iterators as resources, to which the handles of IteratorGetNext and similar ops refer.

Guarantees: thread-safe. A lock is held while an element is produced, so that elements are produced
one at a time, in the order in which the calls get the lock.

TF: tensorflow/core/kernels/data/iterator_ops.h (IteratorResource)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.framework.data.dataset import Dataset, DatasetIterator, Element, State
from runtime.framework.data.dataset_rewrites import check_repeated_shuffles
from runtime.framework.data.element_growth import ElementGrowth
from runtime.framework.dtypes import DataType
from runtime.framework.growth_limit import GrowthLimit
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.partial_shapes import PartialShape, is_compatible
from runtime.framework.resource_manager import Resource
from runtime.framework.shapes import shape_text

T = TypeVar("T")


class IteratorResource(Resource):
    """An iterator and the dataset that it iterates over; both are None until `make` is called."""

    type_name = "N10tensorflow4data16IteratorResourceE"

    def __init__(
        self, output_types: tuple[DataType, ...], output_shapes: tuple[PartialShape, ...]
    ) -> None:
        self.output_types = output_types
        self.output_shapes = output_shapes
        # Guards _dataset and _iterator. Reentrant, because a function of the dataset, which runs
        # while the lock is held, may use this iterator.
        self._lock = threading.RLock()
        self._dataset: Dataset | None = None
        self._iterator: DatasetIterator | None = None
        self._growth = ElementGrowth(self._lock)

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the dataset and of what the iterator keeps."""
        return self._growth.held()

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Let `limit` limit what the iterator keeps."""
        self._growth.limit(limit, is_managed=True)

    def make(self, context: OpKernelContext, dataset: Dataset) -> None:
        """Start a pass over `dataset`.

        Raises InvalidArgumentError if the dataset's types or shapes do not match `output_types` or
        `output_shapes`.
        """
        check_repeated_shuffles(dataset)
        check_types(self.output_types, dataset.output_types)
        check_shapes(self.output_shapes, dataset.output_shapes)
        with self._lock:
            if not self._growth.is_limited:  # the manager may not have an anonymous iterator
                self._growth.limit(context.resources.limit, is_managed=False)
            self._iterator = dataset.iterate(context)
            self._dataset = dataset
            self._growth.start(self._iterator, dataset)

    def make_once(self, context: OpKernelContext, create: Callable[[], Dataset]) -> None:
        """Start a pass over the dataset that `create` returns, unless a pass was started before."""
        with self._lock:
            if self._iterator is None:
                self.make(context, create())

    def get_next(self, context: OpKernelContext) -> Element | None:
        """Return the next element, or None at the end.

        Raises FailedPreconditionError if no pass has been started, ResourceExhaustedError if the
        resources of the session would hold too many bytes.
        """
        with self._lock:
            if self._iterator is None:
                raise FailedPreconditionError(
                    "GetNext() failed because the iterator has not been initialized. Ensure that "
                    "you have run the initializer operation for this iterator before getting the "
                    "next element."
                )
            self._growth.note_call()
            if self._growth.is_limited:
                context.elements = self._growth
            return self._iterator.get_next(context)

    @property
    def dataset(self) -> Dataset | None:
        """The dataset of the current pass, or None if no pass has been started."""
        return self._dataset

    def save(self) -> State:
        """Return the state of the pass.

        Raises FailedPreconditionError if no pass has been started.
        """
        with self._lock:
            if self._iterator is None:
                raise FailedPreconditionError(
                    "Save() failed because the iterator has not been initialized. Ensure that you "
                    "have run the initializer operation for this iterator before saving it."
                )
            return self._iterator.save()

    def restore(self, context: OpKernelContext, state: State) -> None:
        """Continue from a saved state of a pass over the dataset that was last given to `make`.

        Raises FailedPreconditionError if no pass has been started.
        """
        with self._lock:
            if self._dataset is None:
                raise FailedPreconditionError(
                    "Restore() failed because the iterator has not been initialized. Ensure that "
                    "you have run the initializer operation for this iterator before restoring it."
                )
            iterator = self._dataset.iterate(context)
            iterator.restore(context, state)
            self._iterator = iterator
            self._growth.start(iterator, self._dataset)


def check_types(expected: tuple[DataType, ...], actual: tuple[DataType, ...]) -> None:
    """Raise InvalidArgumentError if the types are not equal, unless `expected` is empty."""
    for index, (one, other) in enumerate(_pairs(expected, actual, "types")):
        if one != other:
            raise InvalidArgumentError(
                f"Data type mismatch at component {index}: expected {one.tf_name} but got "
                f"{other.tf_name}."
            )


def check_shapes(expected: tuple[PartialShape, ...], actual: tuple[PartialShape, ...]) -> None:
    """Raise InvalidArgumentError if the shapes are incompatible, unless `expected` is empty."""
    for index, (one, other) in enumerate(_pairs(expected, actual, "shapes")):
        if not is_compatible(one, other):
            raise InvalidArgumentError(
                f"Incompatible shapes at component {index}: expected {shape_text(one)} but got "
                f"{shape_text(other)}."
            )


def _pairs(expected: Sequence[T], actual: Sequence[T], what: str) -> Iterable[tuple[T, T]]:
    """Return (expected, actual) for each component, or nothing if `expected` is empty.

    Raises InvalidArgumentError if the numbers of components differ; `what` is the word for the
    components in the message.
    """
    if expected and len(expected) != len(actual):
        raise InvalidArgumentError(
            f"Number of components does not match: expected {len(expected)} {what} but got "
            f"{len(actual)}."
        )
    return zip(expected, actual, strict=bool(expected))
