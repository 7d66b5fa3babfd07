"""Datasets and iterators over them.

A dataset is a value that can be opened any number of times; opening gives a function that returns
the next element. Functions of the graph run in the step that asks for the element, so what is
open keeps a `Caller` that is told the step before every element.

Guarantees: a dataset never changes; an iterator is thread-safe (one lock, held while an element
is made); an element that fails is skipped, the next call goes on behind it.

TF: tensorflow/core/framework/dataset.h (DatasetBase, IteratorBase)
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

from runtime.foundation.errors import FailedPreconditionError, InternalError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.resource_manager import Resource

Element = tuple[Any, ...]  # one tensor a component
Next = Callable[[], Element]  # raises EndOfSequence when there is no more
INFINITE, UNKNOWN = -1, -2  # cardinalities (TF: kInfiniteCardinality, kUnknownCardinality)


class EndOfSequence(Exception):  # noqa: N818 # TensorFlow's word, and no error
    """There is no next element."""


class Caller:
    """Runs functions of the graph for what is open, in the step at hand."""

    __slots__ = ("context",)

    def __init__(self, context: OpKernelContext | None = None) -> None:
        self.context = context

    def call(self, function: NameAttrList, *arguments: Any) -> Element:
        """The outputs of a function."""
        if self.context is None:
            raise InternalError("A dataset calls a function outside of any step")
        self.context.cancellation.check()
        return tuple(self.context.call_function(function, *arguments))


@dataclasses.dataclass(frozen=True, slots=True)
class Dataset:
    """How to open it, how many elements it has, and the types of their components."""

    open: Callable[[Caller], Next]
    cardinality: int
    output_types: tuple[DataType, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """A dataset is a scalar tensor."""
        return ()


class DatasetIterator(Resource):
    """A place in a dataset, which the session keeps from step to step."""

    type_name = "N10tensorflow4data16IteratorResourceE"

    def __init__(self, name: str, output_types: tuple[DataType, ...]) -> None:
        self.name = name
        self.output_types = output_types
        self._lock = threading.RLock()  # guards _next and what it has open
        self._caller = Caller()
        self._next: Next | None = None

    def start(self, dataset: Dataset) -> None:
        """Go to the beginning of `dataset`."""
        with self._lock:
            self._caller = Caller()
            self._next = dataset.open(self._caller)

    def get_next(self, context: OpKernelContext) -> Element:
        """The next element; EndOfSequence when there is none."""
        with self._lock:
            if self._next is None:
                raise FailedPreconditionError(
                    "GetNext() failed because the iterator has not been initialized. Ensure that "
                    "you have run the initializer operation for this iterator before getting the "
                    "next element."
                )
            self._caller.context = context
            try:
                return self._next()
            finally:
                self._caller.context = None

    def fork(self) -> None:
        """Places in a dataset cannot be copied."""
        return
