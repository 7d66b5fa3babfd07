"""Kernels of the Barrier ops.

A barrier collects the components of elements by key, and hands out elements that are complete. The
signatures of these ops declare the handle of a barrier as a reference to a string; here a handle is
a ResourceHandle.

TF: tensorflow/core/kernels/barrier_ops.cc
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType, Types
from runtime.framework.op_kernel import Deferred, KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape, is_fully_defined
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resource_op_kernel import resource_handle
from runtime.framework.resources.barrier import Barrier
from runtime.framework.resources.queues import Element
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.array.tensor_lists import rows
from runtime.kernels.data.queues import stack_elements
from runtime.kernels.state.resource_variables import as_handle


def barrier(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    component_types: Types,
    shapes: tuple[PartialShape, ...],
    capacity: int,
) -> ResourceHandle:
    """Barrier: return the handle of the node's barrier, which is created on first use."""
    if capacity != -1:
        raise InvalidArgumentError(
            "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue "
            "to enforce a limited capacity."
        )
    # as in TensorFlow, an unknown shape means a scalar
    shapes = tuple(() if shape is None else shape for shape in shapes)
    if len(shapes) != len(component_types) or not all(map(is_fully_defined, shapes)):
        raise InvalidArgumentError("All of the component shapes must be specified")

    return resource_handle(
        context,
        container,
        shared_name,
        Barrier,
        lambda name: Barrier(name, component_types, shapes),
        lambda found: _check_compatible(found, component_types, shapes),
    )


def _check_compatible(found: Barrier, types: Types, shapes: tuple[PartialShape, ...]) -> None:
    """Raise InvalidArgumentError unless the barrier `found` has these `types` and `shapes`."""
    if found.component_types != types:
        raise InvalidArgumentError(
            f"Shared barrier '{found.name}' has component types "
            f"{_names(found.component_types)} but requested component types were {_names(types)}"
        )
    if found.shapes != shapes:
        raise InvalidArgumentError(
            f"Shared barrier '{found.name}' has component shapes "
            f"[{', '.join(map(shape_text, found.shapes))}] but requested component shapes were "
            f"[{', '.join(map(shape_text, shapes))}]"
        )


def _names(types: Sequence[DataType]) -> str:
    return ", ".join(each.tf_name for each in types)


def barrier_of(context: OpKernelContext, handle: ResourceHandle) -> Barrier:
    """Return the barrier that `handle` refers to; raise NotFoundError if it does not exist."""
    handle = as_handle(handle)
    return context.resources.look_up(handle.container, Barrier, handle.name)


def barrier_insert_many(
    context: OpKernelContext,
    handle: ResourceHandle,
    keys: np.ndarray,
    values: TensorValue,
    *,
    component_index: int,
    T: DataType,  # noqa: N803 # the attribute's name
) -> None:
    """BarrierInsertMany: set component `component_index` of the elements of `keys`.

    The component of the element of keys[i] becomes values[i].
    """
    found = barrier_of(context, handle)
    components = len(found.component_types)
    if not 0 <= component_index < components:
        raise InvalidArgumentError(
            f"The component ID is out of range {component_index} > num_components (= {components})"
        )
    expected = found.component_types[component_index]
    if expected != T:
        raise InvalidArgumentError(
            f"Signature mismatch, have: string_ref, string, {T.tf_name}-> "
            f"expected: string_ref, string, {expected.tf_name}->"
        )
    names, array = box(keys).ravel().tolist(), box(values)
    if names:
        _check_values(found, len(names), array)
    items = rows(array)[: len(names)] if names else []
    found.insert(names, component_index, items, context.cancellation)


def _check_values(found: Barrier, count: int, values: np.ndarray) -> None:
    if not values.size:
        raise InvalidArgumentError(
            f"Tensors with no elements are not supported {found.name}: "
            f"received shape {shape_text(values.shape)}"
        )
    if not values.ndim or len(values) < count:
        raise InvalidArgumentError(
            f"Expected one value for each of {count} keys, got shape {shape_text(values.shape)}"
        )


def barrier_take_many(
    context: OpKernelContext,
    handle: ResourceHandle,
    num_elements: np.ndarray,
    *,
    component_types: Types,
    allow_small_batch: bool,
    timeout_ms: int,
) -> Deferred | Element:
    """BarrierTakeMany: remove and return `num_elements` complete elements.

    The outputs are (indices, keys, components…). The op waits until there are enough complete
    elements. If `allow_small_batch` is true and the barrier is closed, fewer are enough.
    """
    if timeout_ms != -1:
        raise InvalidArgumentError("Timeout not supported yet.")
    if np.ndim(num_elements):
        raise InvalidArgumentError("num_elements must be a scalar.")
    found = barrier_of(context, handle)
    if component_types != found.component_types:
        raise InvalidArgumentError(
            "Signature mismatch, have: string_ref, int32->int64, string, "
            f"{_names(component_types)} expected: string_ref, int32->int64, string, "
            f"{_names(found.component_types)}"
        )
    finish = functools.partial(stack_elements, found.ready)
    return found.take(int(num_elements), allow_small_batch, finish, context.cancellation)


def barrier_close(
    context: OpKernelContext, handle: ResourceHandle, *, cancel_pending_enqueues: bool
) -> None:
    """BarrierClose: accept no new keys.

    If `cancel_pending_enqueues` is true, incomplete elements are dropped.
    """
    barrier_of(context, handle).close(cancel_pending_enqueues, context.cancellation)


def barrier_ready_size(context: OpKernelContext, handle: ResourceHandle) -> np.int32:
    """BarrierReadySize: return the number of complete elements."""
    return np.int32(barrier_of(context, handle).ready.size)


def barrier_incomplete_size(context: OpKernelContext, handle: ResourceHandle) -> np.int32:
    """BarrierIncompleteSize: return the number of elements that lack a component."""
    return np.int32(barrier_of(context, handle).incomplete_size)


KERNELS = (
    KernelDef("Barrier", barrier),
    KernelDef("BarrierClose", barrier_close),
    KernelDef("BarrierIncompleteSize", barrier_incomplete_size),
    KernelDef("BarrierInsertMany", barrier_insert_many),
    KernelDef("BarrierReadySize", barrier_ready_size),
    KernelDef("BarrierTakeMany", barrier_take_many, asynchronous=True),
)
