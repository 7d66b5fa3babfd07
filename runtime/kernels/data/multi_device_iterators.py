"""Iterators whose elements are distributed to several devices in turn.

Nothing is prefetched: an element is produced when its device requests it, or when another device
requests a later element.

TF: tensorflow/core/kernels/data/multi_device_iterator_ops.cc
"""

from __future__ import annotations

import collections
import itertools
import threading
from collections.abc import Iterable

import numpy as np

from runtime.foundation.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    as_dataset,
    note_element,
)
from runtime.framework.data.dataset_rewrites import check_repeated_shuffles
from runtime.framework.data.element_growth import ElementGrowth
from runtime.framework.data.iterator_resource import check_shapes, check_types
from runtime.framework.dtypes import Types
from runtime.framework.growth_limit import GrowthLimit
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.resource_manager import Resource, ResourceHandle
from runtime.framework.resource_op_kernel import (
    handle_from_string,
    handle_to_string,
    resource_handle,
)
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.state.resource_variables import as_handle

_anonymous_ids = itertools.count()  # makes names unique; next() is atomic, so no lock is needed


class MultiDeviceIterator(Resource):
    """A pass over a dataset whose elements are distributed to shards, one for each device.

    Element i belongs to shard i modulo the number of devices.

    Guarantees: thread-safe; each shard gets its elements in order. Elements that were produced for
    other shards stay in memory until those shards request them.
    """

    type_name = "N10tensorflow4data12_GLOBAL__N_119MultiDeviceIteratorE"

    def __init__(self, devices: tuple[str, ...], output_types: Types, output_shapes: Shapes):
        self.output_types = output_types
        self.output_shapes = output_shapes
        self._count = len(devices)
        self._lock = threading.RLock()  # guards all attributes below
        self._iterator: DatasetIterator | None = None
        self._buffers: list[collections.deque[Element]] = []
        self._next_shard = 0
        self._incarnation = 0
        self._growth = ElementGrowth(self._lock)

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the dataset, and of what the iterator and its shards keep."""
        return self._growth.held()

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Let `limit` limit what the iterator and its shards keep."""
        self._growth.limit(limit, is_managed=True)

    def start(self, context: OpKernelContext, dataset: Dataset) -> int:
        """Start a pass over `dataset`; return its incarnation id, which `get_next` requires."""
        check_repeated_shuffles(dataset)
        check_types(self.output_types, dataset.output_types)
        check_shapes(self.output_shapes, dataset.output_shapes)
        with self._lock:
            self._iterator = dataset.iterate(context)
            self._buffers = [collections.deque() for _ in range(self._count)]
            self._next_shard = 0
            if not self._growth.is_limited:  # the manager may not have an anonymous iterator
                self._growth.limit(context.resources.limit, is_managed=False)
            self._growth.start(self._iterator, self._buffers)
            self._incarnation += 1
            return self._incarnation

    def get_next(self, context: OpKernelContext, shard: int, incarnation: int) -> Element | None:
        """Return the next element of a shard, or None at the end of the pass.

        Raises FailedPreconditionError if no pass has been started, InvalidArgumentError if `shard`
        or `incarnation` is not valid.
        """
        with self._lock:
            if self._iterator is None:
                raise FailedPreconditionError("The multi-device iterator has not been initialized.")
            if incarnation != self._incarnation:
                raise InvalidArgumentError(
                    f"Invalid incarnation id. Provided: {incarnation}; "
                    f"Expected: {self._incarnation}"
                )
            if not 0 <= shard < self._count:
                raise InvalidArgumentError(
                    f"Shard {shard} is not one of the {self._count} of a multi-device iterator"
                )
            self._growth.note_call()
            if self._growth.is_limited:
                context.elements = self._growth
            while not self._buffers[shard]:
                element = self._iterator.get_next(context)
                if element is None:
                    return None
                self._buffers[self._next_shard].append(element)
                note_element(context, element)
                self._next_shard = (self._next_shard + 1) % self._count
            return self._buffers[shard].popleft()


def multi_device_iterator(
    context: OpKernelContext,
    *,
    devices: tuple[str, ...],
    shared_name: str,
    container: str,
    output_types: Types,
    output_shapes: Shapes,
) -> ResourceHandle:
    """MultiDeviceIterator: return a handle of the node's iterator.

    MultiDeviceIteratorInit starts the iterator.
    """
    return resource_handle(
        context,
        container,
        shared_name,
        MultiDeviceIterator,
        lambda _: MultiDeviceIterator(devices, output_types, output_shapes),
    )


def _anonymous(devices: tuple[str, ...], types: Types, shapes: Shapes) -> ResourceHandle:
    name = f"AnonymousMultiDeviceIterator{next(_anonymous_ids)}"
    resource = MultiDeviceIterator(devices, types, shapes)
    return ResourceHandle("", name, MultiDeviceIterator.type_name, resource=resource)


def anonymous_multi_device_iterator(
    *, devices: tuple[str, ...], output_types: Types, output_shapes: Shapes
) -> tuple[ResourceHandle, None]:
    """AnonymousMultiDeviceIterator: return (the only handle of a new iterator, its deleter)."""
    return _anonymous(devices, output_types, output_shapes), None


def anonymous_multi_device_iterator_v3(
    *, devices: tuple[str, ...], output_types: Types, output_shapes: Shapes
) -> ResourceHandle:
    """AnonymousMultiDeviceIteratorV3: return the only handle of a new iterator."""
    return _anonymous(devices, output_types, output_shapes)


def _resource(context: OpKernelContext, handle: ResourceHandle) -> MultiDeviceIterator:
    handle = as_handle(handle)
    if isinstance(handle.resource, MultiDeviceIterator):
        return handle.resource
    return context.resources.look_up(handle.container, MultiDeviceIterator, handle.name)


def multi_device_iterator_init(
    context: OpKernelContext, dataset: Dataset, handle: ResourceHandle, max_buffer_size: np.ndarray
) -> np.ndarray:
    """MultiDeviceIteratorInit: start a pass over `dataset` and return its incarnation id.

    `max_buffer_size` is ignored.
    """
    resource = _resource(context, handle)
    return np.array(resource.start(context, as_dataset(dataset)), np.int64)


def multi_device_iterator_get_next(
    context: OpKernelContext,
    handle: ResourceHandle,
    shard_num: np.ndarray,
    incarnation_id: np.ndarray,
) -> Element:
    """MultiDeviceIteratorGetNextFromShard: return the next element of the shard `shard_num`.

    Raises OutOfRangeError at the end of the pass.
    """
    shard, incarnation = np.asarray(shard_num).item(), np.asarray(incarnation_id).item()
    element = _resource(context, handle).get_next(context, shard, incarnation)
    if element is None:
        raise OutOfRangeError("End of sequence")
    return element


def multi_device_iterator_to_string_handle(
    context: OpKernelContext, handle: ResourceHandle
) -> np.ndarray:
    """MultiDeviceIteratorToStringHandle: return the handle as a string."""
    resource, handle = _resource(context, handle), as_handle(handle)
    if handle.resource is not None:
        # The resource manager does not hold an anonymous iterator yet.
        context.resources.put(handle.container, handle.name, resource)
    return handle_to_string(handle, handle.name)


def multi_device_iterator_from_string_handle(
    context: OpKernelContext,
    string_handle: np.ndarray,
    *,
    output_types: Types,
    output_shapes: Shapes,
) -> ResourceHandle:
    """MultiDeviceIteratorFromStringHandle: return the handle that a string contains.

    Raises NotFoundError if the iterator does not exist, InvalidArgumentError if the string is no
    handle or the iterator has other types or shapes.
    """
    handle = handle_from_string(string_handle)
    resource = context.resources.look_up(handle.container, MultiDeviceIterator, handle.name)
    check_types(output_types, resource.output_types)
    check_shapes(output_shapes, resource.output_shapes)
    return handle


def delete_multi_device_iterator(
    handle: ResourceHandle, *iterators_and_deleter: TensorValue
) -> None:
    """DeleteMultiDeviceIterator: do nothing, because the iterator lives as long as its handles."""


KERNELS = (
    KernelDef("AnonymousMultiDeviceIterator", anonymous_multi_device_iterator),
    KernelDef("AnonymousMultiDeviceIteratorV3", anonymous_multi_device_iterator_v3),
    KernelDef("DeleteMultiDeviceIterator", delete_multi_device_iterator),
    KernelDef("MultiDeviceIterator", multi_device_iterator),
    KernelDef("MultiDeviceIteratorFromStringHandle", multi_device_iterator_from_string_handle),
    KernelDef("MultiDeviceIteratorGetNextFromShard", multi_device_iterator_get_next),
    KernelDef("MultiDeviceIteratorInit", multi_device_iterator_init),
    KernelDef("MultiDeviceIteratorToStringHandle", multi_device_iterator_to_string_handle),
)
