"""Queue ops: creation of queues, enqueue, dequeue, close and size.

Kernels that may have to wait are asynchronous and return a Deferred. Handles of version 1
(references to a string) and of version 2 are both ResourceHandles.

TF: tensorflow/core/kernels/queue_op.cc, queue_ops.cc
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType, Types
from runtime.framework.op_kernel import Deferred, Kernel, KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape, Shapes, is_compatible, is_fully_defined
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resource_op_kernel import resource_handle
from runtime.framework.resources.queue_kinds import (
    PaddingFIFOQueue,
    PriorityQueue,
    RandomShuffleQueue,
)
from runtime.framework.resources.queues import Element, Queue
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.array.tensor_lists import rows, stacked
from runtime.kernels.state.resource_variables import as_handle


def _handle(
    context: OpKernelContext, container: str, shared_name: str, create: Callable[[str], Queue]
) -> ResourceHandle:
    """Return the handle of the node's queue, which is created at first use."""

    def check(queue: Queue) -> None:
        _check_same(queue, create(queue.name), context.node.op)

    return resource_handle(context, container, shared_name, Queue, create, check)


def _check_same(queue: Queue, wanted: Queue, op: str) -> None:
    """Raise InvalidArgumentError if `queue` differs from `wanted`, which the node declares."""
    if queue.kind != wanted.kind:
        raise InvalidArgumentError(f"Expected {queue.kind}, found {op}")
    if queue.capacity != wanted.capacity:
        raise InvalidArgumentError(
            f"Shared queue '{queue.name}' has capacity {queue.capacity} but requested "
            f"capacity was {wanted.capacity}"
        )
    if isinstance(queue, RandomShuffleQueue) and isinstance(wanted, RandomShuffleQueue):
        _check_same_order(queue, wanted)
    if queue.component_types != wanted.component_types:
        raise InvalidArgumentError(
            f"Shared queue '{queue.name}' has component types {_types(queue.component_types)} "
            f"but requested component types were {_types(wanted.component_types)}"
        )
    if queue.shapes != wanted.shapes:
        raise InvalidArgumentError(
            f"Shared queue '{queue.name}' has component shapes {_shapes(queue.shapes)} "
            f"but requested component shapes were {_shapes(wanted.shapes)}"
        )


def _check_same_order(queue: RandomShuffleQueue, wanted: RandomShuffleQueue) -> None:
    if queue.min_after_dequeue != wanted.min_after_dequeue:
        raise InvalidArgumentError(
            f"Shared queue '{queue.name}' has min_after_dequeue {queue.min_after_dequeue} but "
            f"requested min_after_dequeue was {wanted.min_after_dequeue}."
        )
    if any(wanted.seeds) and queue.seeds != wanted.seeds:
        raise InvalidArgumentError(
            f"Shared queue '{queue.name}' has random seeds {queue.seeds} but requested seeds are "
            f"{wanted.seeds}."
        )


def _types(types: Types) -> str:
    return ", ".join(each.tf_name for each in types)


def _shapes(shapes: Shapes) -> str:
    return f"[{','.join(map(shape_text, shapes))}]"


def fifo_queue(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    component_types: Types,
    shapes: Shapes,
    capacity: int,
) -> ResourceHandle:
    """FIFOQueue: return a handle of a queue from which the oldest element is dequeued first."""
    make = functools.partial(
        Queue, component_types=component_types, shapes=shapes, capacity=capacity
    )
    return _handle(context, container, shared_name, make)


def padding_fifo_queue(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    component_types: Types,
    shapes: Shapes,
    capacity: int,
) -> ResourceHandle:
    """PaddingFIFOQueue: return a handle of a FIFO queue of elements of different shapes.

    Elements that are dequeued together are padded to one shape.
    """
    if len(shapes) != len(component_types):
        raise InvalidArgumentError(
            "Shapes must be provided for all components, but received "
            f"{len(component_types)} dtypes and {len(shapes)} shapes."
        )
    make = functools.partial(
        PaddingFIFOQueue, component_types=component_types, shapes=shapes, capacity=capacity
    )
    return _handle(context, container, shared_name, make)


def random_shuffle_queue(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    component_types: Types,
    shapes: Shapes,
    capacity: int,
    min_after_dequeue: int,
    seed: int,
    seed2: int,
) -> ResourceHandle:
    """RandomShuffleQueue: return a handle of a queue from which random elements are dequeued."""
    if min_after_dequeue < 0:
        raise InvalidArgumentError(f"min_after_dequeue {min_after_dequeue} must be >= 0")
    if 0 <= capacity <= min_after_dequeue:
        raise InvalidArgumentError(
            f"min_after_dequeue {min_after_dequeue} must be < capacity {capacity}"
        )
    make = functools.partial(
        RandomShuffleQueue,
        component_types=component_types,
        shapes=shapes,
        capacity=capacity,
        min_after_dequeue=min_after_dequeue,
        seed=seed,
        seed2=seed2,
    )
    return _handle(context, container, shared_name, make)


def priority_queue(
    context: OpKernelContext,
    *,
    container: str,
    shared_name: str,
    component_types: Types,
    shapes: Shapes,
    capacity: int,
) -> ResourceHandle:
    """PriorityQueue: return a handle of a queue whose elements have priorities.

    The first component of an element, an int64 scalar, is the element's priority.
    """
    make = functools.partial(
        PriorityQueue,
        component_types=(DataType.INT64, *component_types),
        shapes=((), *shapes) if shapes or not component_types else (),
        capacity=capacity,
    )
    return _handle(context, container, shared_name, make)


def queue_of(context: OpKernelContext, handle: ResourceHandle) -> Queue:
    """Return the queue that `handle` refers to.

    Raises NotFoundError if the queue does not exist.
    """
    handle = as_handle(handle)
    return context.resources.look_up(handle.container, Queue, handle.name)


def _check_signature(context: OpKernelContext, queue: Queue, attr: str, is_input: bool) -> None:
    if context.attr("timeout_ms") != -1:
        raise InvalidArgumentError("Timeout not supported yet.")
    types: Types = context.attr(attr)
    if types == queue.component_types:
        return
    handle = "string_ref" if not context.node.op.endswith("V2") else "resource"
    have, expected = (
        [handle, *(t.tf_name for t in each)] for each in (types, queue.component_types)
    )
    if is_input:
        raise InvalidArgumentError(
            f"Signature mismatch, have: {', '.join(have)}-> expected: {', '.join(expected)}->"
        )
    have, expected = have[1:], expected[1:]
    raise InvalidArgumentError(
        f"Signature mismatch, have: {handle}->{', '.join(have)} "
        f"expected: {handle}->{', '.join(expected)}"
    )


def queue_enqueue(
    context: OpKernelContext, handle: ResourceHandle, *components: TensorValue
) -> Deferred | None:
    """QueueEnqueue: add one element; wait until there is space for it."""
    queue = queue_of(context, handle)
    _check_signature(context, queue, "Tcomponents", True)
    for index, shape in enumerate(queue.shapes):
        actual = np.shape(box(components[index]))
        if not is_compatible(shape, actual):
            raise InvalidArgumentError(
                f"Shape mismatch in tuple component {index}. "
                f"Expected {shape_text(shape)}, got {shape_text(actual)}"
            )
    return queue.enqueue([components], context.cancellation)


def queue_enqueue_many(
    context: OpKernelContext, handle: ResourceHandle, *components: TensorValue
) -> Deferred | None:
    """QueueEnqueueMany: add one element for each row of `components`; wait until there is space."""
    queue = queue_of(context, handle)
    _check_signature(context, queue, "Tcomponents", True)
    arrays = [box(each) for each in components]
    if arrays[0].ndim < 1:
        raise InvalidArgumentError("Shape mismatch in tuple component 0. Expected at least rank 1")
    count = len(arrays[0])
    for index, array in enumerate(arrays):
        _check_many(queue, index, array, count)
    elements = list(zip(*map(rows, arrays), strict=True))
    return queue.enqueue(elements, context.cancellation)


def _check_many(queue: Queue, index: int, array: np.ndarray, count: int) -> None:
    shape = queue.shapes[index] if queue.shapes else None
    wanted = None if shape is None else (count, *shape)
    if not is_compatible(wanted, array.shape):
        raise InvalidArgumentError(
            f"Shape mismatch in tuple component {index}. "
            f"Expected {shape_text(wanted)}, got {shape_text(array.shape)}"
        )
    if array.ndim < 1 or len(array) != count:
        raise InvalidArgumentError(
            "All input tensors must have the same size in the 0th dimension. Component "
            f"{index} has {array.shape[0] if array.ndim else 0}, and should have {count}"
        )


def queue_dequeue(context: OpKernelContext, handle: ResourceHandle) -> Deferred | Element:
    """QueueDequeue: remove and return one element; wait until there is one."""
    queue = queue_of(context, handle)
    _check_signature(context, queue, "component_types", False)
    return queue.dequeue(1, _single_element, context.cancellation)


def _single_element(elements: list[Element]) -> Element:
    return elements[0]


def queue_dequeue_many(
    context: OpKernelContext, handle: ResourceHandle, n: np.ndarray
) -> Deferred | Element:
    """QueueDequeueMany: remove `n` elements and return them stacked; wait until there are `n`."""
    return _dequeue_many(context, handle, _first_number(n), False)


def queue_dequeue_up_to(
    context: OpKernelContext, handle: ResourceHandle, n: np.ndarray
) -> Deferred | Element:
    """QueueDequeueUpTo: remove `n` elements and return them stacked; wait until there are `n`.

    If the queue is closed and has fewer elements, these are returned.
    """
    return _dequeue_many(context, handle, _first_number(n), True)


def _first_number(n: np.ndarray) -> int:
    """Return the first number of `n`; TensorFlow ignores all other numbers."""
    return np.asarray(n).ravel()[:1].item()


def _dequeue_many(
    context: OpKernelContext, handle: ResourceHandle, count: int, is_partial_fine: bool
) -> Deferred | Element:
    queue = queue_of(context, handle)
    op = "DequeueUpToOp" if is_partial_fine else "DequeueManyOp"
    if count < 0:
        raise InvalidArgumentError(f"{op} requested {count} < 0 elements")
    _check_signature(context, queue, "component_types", False)
    if len(queue.shapes) != len(queue.component_types):
        raise InvalidArgumentError(
            f"{queue.kind}'s DequeueMany and DequeueUpTo require the components to have "
            "specified shapes."
        )
    finish = functools.partial(stack_elements, queue)
    return queue.dequeue(count, finish, context.cancellation, is_partial_fine, queue.kind)


def stack_elements(queue: Queue, elements: list[Element]) -> tuple[np.ndarray, ...]:
    """Return one tensor for each component, in which the component's values are stacked."""
    columns = zip(*elements, strict=True) if elements else [()] * len(queue.component_types)
    parts = zip(columns, queue.component_types, queue.shapes, strict=True)
    return tuple(_stack_component(list(items), dtype, shape) for items, dtype, shape in parts)


def _stack_component(items: list[TensorValue], dtype: DataType, shape: PartialShape) -> np.ndarray:
    """Return the items stacked and padded at the end of dimensions whose size is not declared."""
    if is_fully_defined(shape):
        return stacked(items, shape, dtype)
    arrays = [box(item) for item in items]
    assert shape is not None, "queues with unknown ranks are refused when they are made"
    largest = np.max([list(array.shape) for array in arrays] or [[0] * len(shape)], axis=0).tolist()
    if not items:
        largest = [max(size, 0) for size in shape]
    check_allocation((len(items), *largest), dtype.numpy)
    blank = b"" if dtype == DataType.STRING else 0
    result = np.full((len(items), *largest), blank, dtype.numpy)
    for row, item, array in zip(result, items, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = item
    return result


def queue_close(
    context: OpKernelContext, handle: ResourceHandle, *, cancel_pending_enqueues: bool
) -> Deferred | None:
    """QueueClose: reject further elements; the remaining elements can still be dequeued."""
    queue = queue_of(context, handle)
    return queue.close(cancel_pending_enqueues, context.cancellation)


def queue_size(context: OpKernelContext, handle: ResourceHandle) -> np.int32:
    """QueueSize: return the number of elements, an int32 scalar."""
    return np.int32(queue_of(context, handle).size)


def queue_is_closed(context: OpKernelContext, handle: ResourceHandle) -> np.bool_:
    """QueueIsClosed: return whether the queue is closed."""
    return np.bool_(queue_of(context, handle).is_closed)


_CREATION: dict[str, Kernel] = {
    "FIFOQueue": fifo_queue,
    "PaddingFIFOQueue": padding_fifo_queue,
    "PriorityQueue": priority_queue,
    "RandomShuffleQueue": random_shuffle_queue,
}
_ASYNCHRONOUS: dict[str, Kernel] = {
    "QueueClose": queue_close,
    "QueueDequeue": queue_dequeue,
    "QueueDequeueMany": queue_dequeue_many,
    "QueueDequeueUpTo": queue_dequeue_up_to,
    "QueueEnqueue": queue_enqueue,
    "QueueEnqueueMany": queue_enqueue_many,
}
_VERSIONS = ("", "V2")

KERNELS = (
    *(KernelDef(op + v, make) for op, make in _CREATION.items() for v in _VERSIONS),
    *(
        KernelDef(op + v, run, asynchronous=True)
        for op, run in _ASYNCHRONOUS.items()
        for v in _VERSIONS
    ),
    KernelDef("QueueIsClosed", queue_is_closed),
    KernelDef("QueueIsClosedV2", queue_is_closed),
    KernelDef("QueueSize", queue_size),
    KernelDef("QueueSizeV2", queue_size),
)
