"""Iterators over datasets, and ops that read a dataset's elements without an iterator.

TF: tensorflow/core/kernels/data/{iterator_ops,dataset_ops}.cc
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

import protos as pb
from runtime.foundation.errors import (
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from runtime.framework.attr_value import NameAttrList, raw_bytes
from runtime.framework.data.dataset import Dataset, Element, as_dataset, scalar_argument, watched
from runtime.framework.data.dataset_graph import DatasetGraphBuilder, check_no_state
from runtime.framework.data.iterator_resource import IteratorResource, check_shapes, check_types
from runtime.framework.data.iterator_state import decode_state, encode_state
from runtime.framework.data.optional import Optional
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resource_op_kernel import (
    handle_from_string,
    handle_to_string,
    resource_handle,
)
from runtime.framework.string_tensor import string_tensor
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.data.dataset_graphs import FAIL_ON_STATE, dataset_of

_MODERATE = b"\x08\x02"  # CardinalityOptions(compute_level=CARDINALITY_COMPUTE_MODERATE)
_anonymous_ids = itertools.count()  # makes names unique; next() is atomic, so no lock is needed


def _handle(
    context: OpKernelContext,
    container: str,
    shared_name: str,
    output_types: Types,
    output_shapes: Shapes,
) -> ResourceHandle:
    """Return the handle of the node's iterator, which is created at first use."""

    def check(resource: IteratorResource) -> None:
        check_types(resource.output_types, output_types)
        check_shapes(resource.output_shapes, output_shapes)

    return resource_handle(
        context,
        container,
        shared_name,
        IteratorResource,
        lambda _: IteratorResource(output_types, output_shapes),
        check,
    )


def iterator(
    context: OpKernelContext,
    *,
    shared_name: str,
    container: str,
    output_types: Types,
    output_shapes: Shapes,
) -> ResourceHandle:
    """Iterator, IteratorV2: return a handle of an iterator, which MakeIterator initializes."""
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
    """OneShotIterator: return a handle of an iterator over the dataset that a function returns.

    The function `dataset_factory` is called, and the iterator initialized, at the first use only.
    """
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
    name = f"AnonymousIterator{next(_anonymous_ids)}"
    return ResourceHandle("", name, IteratorResource.type_name, resource=resource)


def anonymous_iterator(*, output_types: Types, output_shapes: Shapes) -> ResourceHandle:
    """AnonymousIterator, AnonymousIteratorV3: return the only handle of a new iterator."""
    return _anonymous(output_types, output_shapes)


def anonymous_iterator_v2(
    *, output_types: Types, output_shapes: Shapes
) -> tuple[ResourceHandle, None]:
    """AnonymousIteratorV2: return (the only handle of a new iterator, its deleter)."""
    return _anonymous(output_types, output_shapes), None


def delete_iterator(handle: ResourceHandle, deleter: TensorValue) -> None:
    """DeleteIterator: do nothing, because an anonymous iterator lives as long as its handles."""


def _resource(context: OpKernelContext, handle: ResourceHandle) -> IteratorResource:
    if isinstance(handle, np.ndarray) and handle.ndim == 0:
        handle = handle.item()
    if not isinstance(handle, ResourceHandle):
        raise InvalidArgumentError("Expected the handle of an iterator")
    if isinstance(handle.resource, IteratorResource):
        return handle.resource
    return context.resources.look_up(handle.container, IteratorResource, handle.name)


def make_iterator(context: OpKernelContext, dataset: Dataset, handle: ResourceHandle) -> None:
    """MakeIterator: start a pass of the iterator over `dataset`."""
    _resource(context, handle).make(context, as_dataset(dataset))


def iterator_get_next(
    context: OpKernelContext, handle: ResourceHandle, *, output_types: Types, output_shapes: Shapes
) -> Element:
    """IteratorGetNext, IteratorGetNextSync: return the next element.

    Raises OutOfRangeError at the end of the sequence.
    """
    element = _resource(context, handle).get_next(context)
    if element is None:
        raise OutOfRangeError("End of sequence")
    return _checked(element, output_types, output_shapes)


def _checked(element: Element, output_types: Types, output_shapes: Shapes) -> Element:
    """Return `element` if it has the declared number and shapes of components.

    Raises InvalidArgumentError otherwise.
    """
    if len(element) != len(output_types):
        raise InvalidArgumentError(
            f"Number of components does not match: expected {len(output_types)} types but got "
            f"{len(element)}."
        )
    check_shapes(output_shapes, tuple(box(component).shape for component in element))
    return element


def iterator_get_next_as_optional(
    context: OpKernelContext, handle: ResourceHandle, *, output_types: Types, output_shapes: Shapes
) -> Optional:
    """IteratorGetNextAsOptional: return the next element as an optional.

    At the end of the sequence, the optional has no value.
    """
    element = _resource(context, handle).get_next(context)
    return Optional(element and _checked(element, output_types, output_shapes))


def iterator_to_string_handle(context: OpKernelContext, handle: ResourceHandle) -> np.ndarray:
    """IteratorToStringHandle: return the handle as a string, which can be fed to other graphs."""
    _resource(context, handle)
    name: str = handle.name
    if handle.resource is not None:
        # The resource manager does not hold an anonymous iterator yet.
        name = f"_{name}"
        context.resources.put(handle.container, name, handle.resource)
    return handle_to_string(handle, name)


def iterator_from_string_handle(
    context: OpKernelContext,
    string_handle: np.ndarray,
    *,
    output_types: Types,
    output_shapes: Shapes,
) -> ResourceHandle:
    """IteratorFromStringHandle: return the handle that a string contains.

    Raises NotFoundError if the iterator does not exist, InvalidArgumentError if the string is no
    handle or the iterator has other types or shapes.
    """
    handle = handle_from_string(string_handle)
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


def iterator_get_device(context: OpKernelContext, handle: ResourceHandle) -> np.ndarray:
    """IteratorGetDevice: return the name of the iterator's device."""
    _resource(context, handle)
    return string_tensor([handle.device.encode()], ())


def serialize_iterator(
    context: OpKernelContext, handle: ResourceHandle, *, external_state_policy: int
) -> pb.VariantTensorDataProto:
    """SerializeIterator: return the state of an iterator as a variant, for a checkpoint.

    Raises FailedPreconditionError if a function of the dataset contains a stateful op and
    `external_state_policy` is FAIL_ON_STATE.
    """
    resource = _resource(context, handle)
    dataset = resource.dataset
    if external_state_policy == FAIL_ON_STATE and dataset is not None:
        check_no_state(context, dataset)
    return encode_state(
        resource.save(), lambda dataset: DatasetGraphBuilder(context).build(dataset)
    )


def deserialize_iterator(
    context: OpKernelContext, handle: ResourceHandle, serialized: TensorValue
) -> None:
    """DeserializeIterator: continue an iterator from a saved state.

    The iterator must be initialized before.
    """
    if isinstance(serialized, np.ndarray) and serialized.ndim == 0:
        serialized = serialized.item()
    state = decode_state(serialized, functools.partial(dataset_of, context))
    _resource(context, handle).restore(context, state)


def dataset_cardinality(
    context: OpKernelContext, dataset: Dataset, *, cardinality_options: str
) -> np.int64:
    """DatasetCardinality: return the number of elements, −1 if infinite, −2 if unknown.

    If the compute level in `cardinality_options` is MODERATE, the dataset may call functions to
    determine the number.
    """
    source = as_dataset(dataset)
    if raw_bytes(cardinality_options) == _MODERATE:
        return np.int64(source.computed_cardinality(context))
    return np.int64(source.cardinality)


def experimental_dataset_cardinality(dataset: Dataset) -> np.int64:
    """ExperimentalDatasetCardinality: return the number of elements.

    Returns −1 if the dataset is infinite, −2 if the number is unknown.
    """
    return np.int64(as_dataset(dataset).cardinality)


def dataset_to_single_element(
    context: OpKernelContext, dataset: Dataset, *, output_types: Types, output_shapes: Shapes
) -> Element:
    """DatasetToSingleElement: return the only element of a dataset.

    Raises InvalidArgumentError if the dataset is empty or has more than one element.
    """
    source = watched(context, as_dataset(dataset).iterate(context, "SingleElementIterator"))
    element = source.get_next(context)
    if element is None:
        raise InvalidArgumentError("Dataset was empty.")
    _checked(element, output_types, output_shapes)
    if source.get_next(context) is not None:
        raise InvalidArgumentError("Dataset had more than one element.")
    return element


def get_element_at_index(
    context: OpKernelContext,
    dataset: Dataset,
    index: np.ndarray,
    *,
    output_types: Types,
    output_shapes: Shapes,
) -> Element:
    """GetElementAtIndex: return the element at `index` of a dataset with random access."""
    source = watched(context, as_dataset(dataset))
    element = source.checked_element_at(context, scalar_argument(index, "index"))
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
