"""Iterators whose elements go to several devices in turn.

An element is made when the device that it belongs to, or a later one, asks; until then nothing
runs ahead.

TF: tensorflow/core/kernels/data/multi_device_iterator_ops.cc
"""

from __future__ import annotations

import collections
import itertools
import threading
from typing import Any

import numpy as np

from runtime.foundation.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
from runtime.framework.dataset import Dataset, DatasetIterator, Element, as_dataset
from runtime.framework.dataset_rewrites import check_repeated_shuffles
from runtime.framework.dtypes import Types
from runtime.framework.iterator_resource import check_shapes, check_types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.resource_manager import Resource, ResourceHandle
from runtime.framework.resource_op_kernel import (
    handle_from_string,
    handle_to_string,
    resource_handle,
)
from runtime.kernels.resource_variables import as_handle

_numbers = itertools.count()  # next() is atomic


class MultiDeviceIterator(Resource):
    """A pass over a dataset whose element i belongs to shard i modulo the number of devices.

    Guarantees: thread-safe; each shard gets its elements in order. Elements of shards that have
    not asked yet wait in memory.
    """

    type_name = "N10tensorflow4data12_GLOBAL__N_119MultiDeviceIteratorE"

    def __init__(self, devices: tuple[str, ...], output_types: Types, output_shapes: Shapes):
        self.output_types = output_types
        self.output_shapes = output_shapes
        self._count = len(devices)
        self._lock = threading.RLock()  # guards all below
        self._iterator: DatasetIterator | None = None
        self._waiting: list[collections.deque[Element]] = []
        self._next_shard = 0
        self._incarnation = 0

    def start(self, context: OpKernelContext, dataset: Dataset) -> int:
        """Begin a pass; the number that later calls must know."""
        check_repeated_shuffles(dataset)
        check_types(self.output_types, dataset.output_types)
        check_shapes(self.output_shapes, dataset.output_shapes)
        with self._lock:
            self._iterator = dataset.iterate(context)
            self._waiting = [collections.deque() for _ in range(self._count)]
            self._next_shard = 0
            self._incarnation += 1
            return self._incarnation

    def get_next(self, context: OpKernelContext, shard: int, incarnation: int) -> Element | None:
        """The next element of a shard; None at the end of the pass."""
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
            while not self._waiting[shard]:
                element = self._iterator.get_next(context)
                if element is None:
                    return None
                self._waiting[self._next_shard].append(element)
                self._next_shard = (self._next_shard + 1) % self._count
            return self._waiting[shard].popleft()


def multi_device_iterator(
    context: OpKernelContext,
    *,
    devices: tuple[str, ...],
    shared_name: str,
    container: str,
    output_types: Types,
    output_shapes: Shapes,
) -> ResourceHandle:
    """A handle of the node's iterator, which MultiDeviceIteratorInit begins."""
    return resource_handle(
        context,
        container,
        shared_name,
        MultiDeviceIterator,
        lambda _: MultiDeviceIterator(devices, output_types, output_shapes),
    )


def _anonymous(devices: tuple[str, ...], types: Types, shapes: Shapes) -> ResourceHandle:
    name = f"AnonymousMultiDeviceIterator{next(_numbers)}"
    resource = MultiDeviceIterator(devices, types, shapes)
    return ResourceHandle("", name, MultiDeviceIterator.type_name, resource=resource)


def anonymous_multi_device_iterator(
    *, devices: tuple[str, ...], output_types: Types, output_shapes: Shapes
) -> tuple[ResourceHandle, None]:
    """AnonymousMultiDeviceIterator: (a new one that only its handle knows, its deleter)."""
    return _anonymous(devices, output_types, output_shapes), None


def anonymous_multi_device_iterator_v3(
    *, devices: tuple[str, ...], output_types: Types, output_shapes: Shapes
) -> ResourceHandle:
    """AnonymousMultiDeviceIteratorV3: a new one that only its handle knows."""
    return _anonymous(devices, output_types, output_shapes)


def _resource(context: OpKernelContext, handle: Any) -> MultiDeviceIterator:
    handle = as_handle(handle)
    if isinstance(handle.resource, MultiDeviceIterator):
        return handle.resource
    return context.resources.look_up(handle.container, MultiDeviceIterator, handle.name)


def multi_device_iterator_init(
    context: OpKernelContext, dataset: Any, handle: Any, max_buffer_size: Any
) -> np.ndarray:
    """Begin a pass over a dataset; the buffers grow as they have to."""
    resource = _resource(context, handle)
    return np.array(resource.start(context, as_dataset(dataset)), np.int64)


def multi_device_iterator_get_next(
    context: OpKernelContext, handle: Any, shard_num: Any, incarnation_id: Any
) -> Element:
    """MultiDeviceIteratorGetNextFromShard: OutOfRangeError at the end."""
    shard, incarnation = np.asarray(shard_num).item(), np.asarray(incarnation_id).item()
    element = _resource(context, handle).get_next(context, shard, incarnation)
    if element is None:
        raise OutOfRangeError("End of sequence")
    return element


def multi_device_iterator_to_string_handle(context: OpKernelContext, handle: Any) -> np.ndarray:
    """The handle as a string."""
    resource, handle = _resource(context, handle), as_handle(handle)
    if handle.resource is not None:
        # Nobody else could find it under its name.
        context.resources.put(handle.container, handle.name, resource)
    return handle_to_string(handle, handle.name)


def multi_device_iterator_from_string_handle(
    context: OpKernelContext, string_handle: Any, *, output_types: Types, output_shapes: Shapes
) -> ResourceHandle:
    """The handle in a string; the iterator has to be there, with these types and shapes."""
    handle = handle_from_string(string_handle)
    resource = context.resources.look_up(handle.container, MultiDeviceIterator, handle.name)
    check_types(output_types, resource.output_types)
    check_shapes(output_shapes, resource.output_shapes)
    return handle


def delete_multi_device_iterator(handle: Any, *iterators_and_deleter: Any) -> None:
    """DeleteMultiDeviceIterator: nothing; it lives as long as its handles."""


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
