"""Kernels for stacks of tensors, which live for one step.

The gradients of loops push tensors to stacks and pop them.

TF: tensorflow/core/kernels/stack.cc
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.growth_limit import GrowthLimit
from runtime.framework.held_bytes import HeldBytes
from runtime.framework.op_kernel import Kernel, KernelDef, OpKernelContext
from runtime.framework.resource_manager import Resource, ResourceHandle
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.state.resource_variables import as_handle

_numbers = itertools.count()


class Stack(Resource):
    """A stack of tensors; a negative `max_size` means no limit. Thread-safe.

    After `close`, `push` and `pop` raise InvalidArgumentError.
    """

    type_name = "N10tensorflow5StackE"

    def __init__(self, name: str, elem_type: DataType, max_size: int) -> None:
        self.name = name
        self.elem_type = elem_type
        self._max_size = max_size
        self._lock = threading.Lock()  # held while _items or _is_closed is read or written
        self._items: list[TensorValue] = []
        self._is_closed = False
        self._held_bytes = HeldBytes()

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the bytes of the items."""
        return self._held_bytes.bytes, ()

    def limit_growth(self, limit: GrowthLimit) -> None:
        """Report later pushes to `limit`."""
        self._held_bytes.limit = limit

    def push(self, item: TensorValue) -> None:
        """Put `item` on top; raise InvalidArgumentError if the stack is full."""
        with self._lock:
            self._check_open()
            if 0 <= self._max_size <= len(self._items):
                raise InvalidArgumentError(
                    f"Stack[{self.name}] overflowed its max_size ({self._max_size})"
                )
            self._held_bytes.add((item,))
            self._items.append(item)

    def pop(self) -> TensorValue:
        """Remove and return the top item; raise InvalidArgumentError if the stack is empty."""
        with self._lock:
            self._check_open()
            if not self._items:
                raise InvalidArgumentError(f"Stack[{self.name}] is empty when calling Pop().")
            item = self._items.pop()
            self._held_bytes.drop((item,))
            return item

    def close(self) -> None:
        """Remove all items; every later `push` or `pop` raises InvalidArgumentError."""
        with self._lock:
            self._items, self._is_closed = [], True
            self._held_bytes.clear()

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidArgumentError(f"Stack[{self.name}] has already been closed.")


def _make(
    context: OpKernelContext, stack_name: str, elem_type: DataType, max_size: int
) -> ResourceHandle:
    container = f"__per_step_{context.step.step_id}"
    made = Stack(f"{stack_name or context.node.name}_{next(_numbers)}", elem_type, max_size)
    context.step.resources.put(container, made.name, made)
    return ResourceHandle(container, made.name, Stack.type_name, resource=made)


def stack_v2(
    context: OpKernelContext, max_size: np.ndarray, *, stack_name: str, elem_type: DataType
) -> ResourceHandle:
    """StackV2: create a stack of at most `max_size` tensors and return its handle."""
    if np.ndim(max_size):
        raise InvalidArgumentError(f"Stack size must be a scalar: {shape_text(np.shape(max_size))}")
    return _make(context, stack_name, elem_type, int(max_size))


def stack(context: OpKernelContext, *, stack_name: str, elem_type: DataType) -> ResourceHandle:
    """Stack: create a stack without a size limit and return its handle."""
    return _make(context, stack_name, elem_type, -1)


def _stack_of(handle: ResourceHandle) -> Stack:
    found = as_handle(handle).resource
    if not isinstance(found, Stack):
        raise InvalidArgumentError("Expected the handle of a stack")
    return found


def stack_push(context: OpKernelContext, handle: ResourceHandle, elem: TensorValue) -> TensorValue:
    """StackPushV2: push `elem` onto the stack and return it."""
    found, elem_type = _stack_of(handle), context.attr("T")
    if found.elem_type != elem_type:
        raise InvalidArgumentError(
            f"Must have type {found.elem_type.tf_name} but got {elem_type.tf_name}"
        )
    found.push(elem)
    return elem


def stack_pop(
    context: OpKernelContext, handle: ResourceHandle, *, elem_type: DataType
) -> TensorValue:
    """StackPopV2: remove the top tensor from the stack and return it."""
    found = _stack_of(handle)
    if found.elem_type != elem_type:
        raise InternalError(
            f"Output 0 of type {found.elem_type.tf_name} does not match declared output type "
            f"{elem_type.tf_name} for node {{{{node {context.node.name}}}}}"
        )
    return found.pop()


def stack_close(handle: ResourceHandle) -> None:
    """StackCloseV2: remove all tensors and refuse later pushes and pops."""
    _stack_of(handle).close()


_OPERATIONS: dict[str, Kernel] = {
    "StackClose": stack_close,
    "StackPop": stack_pop,
    "StackPush": stack_push,
}
KERNELS = (
    KernelDef("Stack", stack),
    KernelDef("StackV2", stack_v2),
    *(KernelDef(op + version, run) for op, run in _OPERATIONS.items() for version in ("", "V2")),
)
