"""Iterators over datasets, and what takes elements of a dataset without one.

TF: tensorflow/core/kernels/data/{iterator_ops,dataset_ops}.cc
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import (
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from runtime.framework.attr_value import NameAttrList, raw_bytes
from runtime.framework.dataset import Dataset, Element, as_dataset, scalar_argument
from runtime.framework.dataset_graph import DatasetGraphBuilder, check_no_state
from runtime.framework.dtypes import DataType
from runtime.framework.iterator_resource import IteratorResource, check_shapes, check_types
from runtime.framework.iterator_state import decode_state, encode_state
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.optional import Optional
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.resource_manager import DEFAULT_CONTAINER, ResourceHandle, private_name
from runtime.framework.string_tensor import scalar_string, string_tensor
from runtime.kernels.boxing import box
from runtime.kernels.dataset_graphs import FAIL_ON_STATE, dataset_of

Types = tuple[DataType, ...]
Shapes = tuple[PartialShape, ...]
_MODERATE = b"\x08\x02"  # CardinalityOptions(compute_level=CARDINALITY_COMPUTE_MODERATE)
_numbers = itertools.count()  # next() is atomic


def _handle(
    context: OpKernelContext,
    container: str,
    shared_name: str,
    output_types: Types,
    output_shapes: Shapes,
) -> ResourceHandle:
    """The handle of the node's iterator, which is made at first use."""

    def make() -> ResourceHandle:
        name = shared_name or private_name(context.node.name)
        resource = context.resources.look_up_or_create(
            container, IteratorResource, name, lambda: IteratorResource(output_types, output_shapes)
        )
        check_types(resource.output_types, output_types)
        check_shapes(resource.output_shapes, output_shapes)
        return ResourceHandle(container or DEFAULT_CONTAINER, name, IteratorResource.type_name)

    handle: ResourceHandle = context.kernel_state(make)
    return handle


def iterator(
    context: OpKernelContext,
    *,
    shared_name: str,
    container: str,
    output_types: Types,
    output_shapes: Shapes,
) -> ResourceHandle:
    """A handle of an iterator that MakeIterator begins."""
    return _handle(context, container, shared_name, output_types, output_shapes)


def one_shot_iterator(
    context: OpKernelContext,
    *,
    shared_name: str,
    container: str,
    dataset_factory: NameAttrList,
    output_types: Types,
    output_shapes: Shapes,
) -> ResourceHandle:
    """A handle of an iterator over the dataset that a function makes, begun at first use."""
    handle = _handle(context, container, shared_name, output_types, output_shapes)

    def create() -> Dataset:
        outputs = context.call_function(dataset_factory)
        if len(outputs) != 1:
            raise InvalidArgumentError(
                "The `dataset_factory` function must return a single scalar of dtype DT_VARIANT."
            )
        return as_dataset(outputs[0])

    _resource(context, handle).make_once(context, create)
    return handle


def _anonymous(output_types: Types, output_shapes: Shapes) -> ResourceHandle:
    resource = IteratorResource(output_types, output_shapes)
    name = f"AnonymousIterator{next(_numbers)}"
    return ResourceHandle("", name, IteratorResource.type_name, resource=resource)


def anonymous_iterator(*, output_types: Types, output_shapes: Shapes) -> ResourceHandle:
    """AnonymousIterator, AnonymousIteratorV3: a new iterator that only its handle knows."""
    return _anonymous(output_types, output_shapes)


def anonymous_iterator_v2(
    *, output_types: Types, output_shapes: Shapes
) -> tuple[ResourceHandle, None]:
    """AnonymousIteratorV2: (the handle, its deleter)."""
    return _anonymous(output_types, output_shapes), None


def delete_iterator(handle: Any, deleter: Any) -> None:
    """DeleteIterator: nothing; an anonymous iterator lives as long as its handles."""


def _resource(context: OpKernelContext, handle: Any) -> IteratorResource:
    if isinstance(handle, np.ndarray) and handle.ndim == 0:
        handle = handle.item()
    if not isinstance(handle, ResourceHandle):
        raise InvalidArgumentError("Expected the handle of an iterator")
    if isinstance(handle.resource, IteratorResource):
        return handle.resource
    return context.resources.look_up(handle.container, IteratorResource, handle.name)


def make_iterator(context: OpKernelContext, dataset: Any, handle: Any) -> None:
    """MakeIterator: begin a pass over a dataset."""
    _resource(context, handle).make(context, as_dataset(dataset))


def iterator_get_next(
    context: OpKernelContext, handle: Any, *, output_types: Types, output_shapes: Shapes
) -> Element:
    """The next element; OutOfRangeError at the end."""
    element = _resource(context, handle).get_next(context)
    if element is None:
        raise OutOfRangeError("End of sequence")
    return _checked(element, output_types, output_shapes)


def _checked(element: Element, output_types: Types, output_shapes: Shapes) -> Element:
    """The element; InvalidArgumentError unless it is what the op was told to expect."""
    if len(element) != len(output_types):
        raise InvalidArgumentError(
            f"Number of components does not match: expected {len(output_types)} types but got "
            f"{len(element)}."
        )
    check_shapes(output_shapes, tuple(box(component).shape for component in element))
    return element


def iterator_get_next_as_optional(
    context: OpKernelContext, handle: Any, *, output_types: Types, output_shapes: Shapes
) -> Optional:
    """The next element in an optional, which is empty at the end."""
    element = _resource(context, handle).get_next(context)
    return Optional(element and _checked(element, output_types, output_shapes))


def iterator_to_string_handle(context: OpKernelContext, handle: Any) -> np.ndarray:
    """The handle as a string that other graphs may feed."""
    _resource(context, handle)
    proto = pb.ResourceHandleProto(
        device=handle.device,
        container=handle.container,
        name=handle.name,
        maybe_type_name=handle.type_name,
    )
    if handle.resource is not None:
        # Nobody else could find it under its name.
        name = f"_{handle.name}"
        context.resources.put(handle.container, name, handle.resource)
        proto.name = name
    return string_tensor([proto.SerializeToString(deterministic=True)], ())


def iterator_from_string_handle(
    context: OpKernelContext, string_handle: Any, *, output_types: Types, output_shapes: Shapes
) -> ResourceHandle:
    """The handle in a string; the iterator has to be there, with the types and shapes asked for."""
    try:
        proto = pb.ResourceHandleProto.FromString(scalar_string(string_handle))
    except DecodeError:
        raise InvalidArgumentError(
            "Could not parse string_handle as a valid ResourceHandle"
        ) from None
    handle = ResourceHandle(proto.container, proto.name, proto.maybe_type_name, proto.device)
    if handle.type_name != IteratorResource.type_name:
        raise InvalidArgumentError("Could not parse string_handle as a valid ResourceHandle")
    resource = context.resources.find(handle.container, IteratorResource, handle.name)
    if resource is None:
        raise NotFoundError(
            context.resources.missing_message(handle.container, handle.type_name, handle.name)
        )
    check_types(output_types, resource.output_types)
    check_shapes(output_shapes, resource.output_shapes)
    return handle


def iterator_get_device(context: OpKernelContext, handle: Any) -> np.ndarray:
    """The device of the iterator."""
    _resource(context, handle)
    return string_tensor([handle.device.encode()], ())


def serialize_iterator(
    context: OpKernelContext, handle: Any, *, external_state_policy: int
) -> pb.VariantTensorDataProto:
    """The state of an iterator as a variant, for a checkpoint."""
    resource = _resource(context, handle)
    dataset = resource.dataset
    if external_state_policy == FAIL_ON_STATE and dataset is not None:
        check_no_state(context, dataset)
    return encode_state(
        resource.save(), lambda dataset: DatasetGraphBuilder(context).build(dataset)
    )


def deserialize_iterator(context: OpKernelContext, handle: Any, serialized: Any) -> None:
    """Put an iterator where it was when it was saved; it has to be initialised."""
    if isinstance(serialized, np.ndarray) and serialized.ndim == 0:
        serialized = serialized.item()
    state = decode_state(serialized, functools.partial(dataset_of, context))
    _resource(context, handle).restore(context, state)


def dataset_cardinality(
    context: OpKernelContext, dataset: Any, *, cardinality_options: str
) -> np.int64:
    """The number of elements, −1 for infinite, −2 for unknown.

    The options may ask for functions to be run to find it.
    """
    source = as_dataset(dataset)
    if raw_bytes(cardinality_options) == _MODERATE:
        return np.int64(source.computed_cardinality(context))
    return np.int64(source.cardinality)


def experimental_dataset_cardinality(dataset: Any) -> np.int64:
    """The number of elements, −1 for infinite, −2 for unknown."""
    return np.int64(as_dataset(dataset).cardinality)


def dataset_to_single_element(
    context: OpKernelContext, dataset: Any, *, output_types: Types, output_shapes: Shapes
) -> Element:
    """The only element; InvalidArgumentError when there is none, or another."""
    source = as_dataset(dataset).iterate(context, "SingleElementIterator")
    element = source.get_next(context)
    if element is None:
        raise InvalidArgumentError("Dataset was empty.")
    _checked(element, output_types, output_shapes)
    if source.get_next(context) is not None:
        raise InvalidArgumentError("Dataset had more than one element.")
    return element


def get_element_at_index(
    context: OpKernelContext,
    dataset: Any,
    index: Any,
    *,
    output_types: Types,
    output_shapes: Shapes,
) -> Element:
    """The element at an index of a dataset with random access."""
    element = as_dataset(dataset).checked_element_at(context, scalar_argument(index, "index"))
    return _checked(element, output_types, output_shapes)


KERNELS = (
    KernelDef("AnonymousIterator", anonymous_iterator),
    KernelDef("AnonymousIteratorV2", anonymous_iterator_v2),
    KernelDef("AnonymousIteratorV3", anonymous_iterator),
    KernelDef("DatasetCardinality", dataset_cardinality),
    KernelDef("DatasetToSingleElement", dataset_to_single_element),
    KernelDef("DeleteIterator", delete_iterator),
    KernelDef("DeserializeIterator", deserialize_iterator),
    KernelDef("ExperimentalDatasetCardinality", experimental_dataset_cardinality),
    KernelDef("ExperimentalIteratorGetDevice", iterator_get_device),
    KernelDef("GetElementAtIndex", get_element_at_index),
    KernelDef("Iterator", iterator),
    KernelDef("IteratorFromStringHandle", iterator_from_string_handle),
    KernelDef("IteratorFromStringHandleV2", iterator_from_string_handle),
    KernelDef("IteratorGetDevice", iterator_get_device),
    KernelDef("IteratorGetNext", iterator_get_next),
    KernelDef("IteratorGetNextAsOptional", iterator_get_next_as_optional),
    KernelDef("IteratorGetNextSync", iterator_get_next),
    KernelDef("IteratorToStringHandle", iterator_to_string_handle),
    KernelDef("IteratorV2", iterator),
    KernelDef("MakeIterator", make_iterator),
    KernelDef("OneShotIterator", one_shot_iterator),
    KernelDef("SerializeIterator", serialize_iterator),
)
