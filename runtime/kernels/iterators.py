"""Iterators over datasets.

TF: tensorflow/core/kernels/data/iterator_ops.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OutOfRangeError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dataset import Caller, DatasetIterator, Element, EndOfSequence
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.optional import Optional
from runtime.framework.resource_manager import DEFAULT_CONTAINER, ResourceHandle
from runtime.kernels.datasets import as_dataset
from runtime.kernels.resource_variables import as_handle

Types = tuple[DataType, ...]


def iterator(
    context: OpKernelContext, *, shared_name: str, container: str, output_types: Types
) -> ResourceHandle:
    """IteratorV2: the handle of the node's iterator, which MakeIterator starts."""
    name = shared_name or context.node.name
    context.resources.look_up_or_create(
        container, DatasetIterator, name, lambda: DatasetIterator(name, output_types)
    )
    return ResourceHandle(container or DEFAULT_CONTAINER, name, DatasetIterator.type_name)


def anonymous_iterator(*, output_types: Types) -> ResourceHandle:
    """AnonymousIteratorV3: an iterator that only its handle knows."""
    made = DatasetIterator("", output_types)
    return ResourceHandle("Anonymous", "", DatasetIterator.type_name, resource=made)


def one_shot_iterator(
    context: OpKernelContext,
    *,
    dataset_factory: NameAttrList,
    shared_name: str,
    container: str,
    output_types: Types,
) -> ResourceHandle:
    """OneShotIterator: an iterator that starts at first use, on what a function makes."""
    name = shared_name or context.node.name

    def make() -> DatasetIterator:
        made = DatasetIterator(name, output_types)
        made.start(as_dataset(context.call_function(dataset_factory)[0]))
        return made

    context.resources.look_up_or_create(container, DatasetIterator, name, make)
    return ResourceHandle(container or DEFAULT_CONTAINER, name, DatasetIterator.type_name)


def iterator_of(context: OpKernelContext, handle: Any) -> DatasetIterator:
    """The iterator of a handle; NotFoundError when there is none."""
    handle = as_handle(handle)
    if isinstance(handle.resource, DatasetIterator):
        return handle.resource
    return context.resources.look_up(handle.container, DatasetIterator, handle.name)


def make_iterator(context: OpKernelContext, dataset: Any, handle: Any) -> None:
    """MakeIterator: go to the beginning of a dataset."""
    source, found = as_dataset(dataset), iterator_of(context, handle)
    if source.output_types != found.output_types:
        raise InvalidArgumentError(
            f"Number of components does not match: expected {len(found.output_types)} types but "
            f"got {len(source.output_types)}."
            if len(source.output_types) != len(found.output_types)
            else "Data type mismatch between the iterator and the dataset"
        )
    found.start(source)


def iterator_get_next(context: OpKernelContext, handle: Any) -> Element:
    """IteratorGetNext: the next element; OutOfRangeError at the end."""
    try:
        return iterator_of(context, handle).get_next(context)
    except EndOfSequence:
        raise OutOfRangeError("End of sequence") from None


def iterator_get_next_as_optional(context: OpKernelContext, handle: Any) -> Optional:
    """IteratorGetNextAsOptional: the next element, or nothing at the end."""
    try:
        return Optional(iterator_of(context, handle).get_next(context))
    except EndOfSequence:
        return Optional()


def dataset_to_single_element(context: OpKernelContext, dataset: Any) -> Element:
    """DatasetToSingleElement: the only element of a dataset."""
    upstream = as_dataset(dataset).open(Caller(context))
    try:
        element = upstream()
    except EndOfSequence:
        raise InvalidArgumentError("Dataset was empty.") from None
    try:
        upstream()
    except EndOfSequence:
        return element
    raise InvalidArgumentError("Dataset had more than one element.")


def iterator_to_string_handle(handle: Any) -> np.ndarray:
    """IteratorToStringHandle: a string that names the iterator in this session."""
    found = as_handle(handle)
    return np.array(f"{found.container}\n{found.name}".encode(), object)


def iterator_from_string_handle(string_handle: Any) -> ResourceHandle:
    """IteratorFromStringHandleV2: the handle that a string names."""
    text = bytes(np.asarray(string_handle, object).item()).decode("utf-8", "replace")
    container, separator, name = text.partition("\n")
    if not separator:
        raise InvalidArgumentError("string_handle is not the handle of an iterator")
    return ResourceHandle(container, name, DatasetIterator.type_name)


KERNELS = (
    KernelDef("AnonymousIteratorV3", anonymous_iterator),
    KernelDef("DatasetToSingleElement", dataset_to_single_element),
    KernelDef("Iterator", iterator),
    KernelDef("IteratorFromStringHandle", iterator_from_string_handle),
    KernelDef("IteratorFromStringHandleV2", iterator_from_string_handle),
    KernelDef("IteratorGetNext", iterator_get_next),
    KernelDef("IteratorGetNextAsOptional", iterator_get_next_as_optional),
    KernelDef("IteratorGetNextSync", iterator_get_next),
    KernelDef("IteratorToStringHandle", iterator_to_string_handle),
    KernelDef("IteratorV2", iterator),
    KernelDef("MakeIterator", make_iterator),
    KernelDef("OneShotIterator", one_shot_iterator),
)
