"""Kernels for tensors that a session keeps between steps, each under a handle.

TF: tensorflow/core/kernels/session_ops.cc, common_runtime/session_state.cc
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import (
    DEFAULT_CONTAINER,
    Resource,
    ResourceHandle,
    ResourceManager,
)
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.state.resource_variables import as_handle

_numbers = itertools.count()
_RESOURCE_BYTES = 512  # of a kept tensor without its value: its name, and its place in the table
# the name of a tensor's device, which is the last part of its handle
_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


class SessionTensor(Resource):
    """A tensor that a session keeps under a handle."""

    type_name = "SessionTensor"

    def __init__(self, value: TensorValue, dtype: DataType) -> None:
        self.value = value
        self.dtype = dtype
        self._is_shared = False

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the tensor, or nothing if several sessions share it."""
        return (0, ()) if self._is_shared else (_RESOURCE_BYTES, (self.value,))

    def fork(self) -> SessionTensor:
        """Return the tensor itself, which another session may share because it never changes."""
        self._is_shared = True
        return self


def session_tensor(resources: ResourceManager, handle: ResourceHandle) -> TensorValue:
    """Return the tensor that a fed handle refers to.

    Raises InvalidArgumentError if `handle` refers to any other resource or to no tensor.

    TF: direct_session.cc (ResourceHandleToInputTensor)
    """
    if handle.type_name != SessionTensor.type_name:
        raise InvalidArgumentError(
            f"Invalid resource type hash code: 0(name: {handle.name} type: {handle.type_name}). "
            "Perhaps a resource tensor was being provided as a feed? That is not currently allowed."
        )
    return _find(resources, handle.name).value


def _find(resources: ResourceManager, name: str) -> SessionTensor:
    found = resources.find(DEFAULT_CONTAINER, SessionTensor, name)
    if found is None:
        raise InvalidArgumentError(f"The tensor with handle '{name}' is not in the session store.")
    return found


def _keep(context: OpKernelContext, value: TensorValue) -> str:
    name = f"{context.node.name};{next(_numbers)};{_DEVICE}"
    if isinstance(value, np.ndarray):
        value.flags.writeable = False  # each fetch gets the array itself
    kept = SessionTensor(value, context.attr("T"))
    context.resources.put(DEFAULT_CONTAINER, name, kept)
    try:
        context.resources.limit.grow(kept.bytes_held)
    except ResourceExhaustedError:
        context.resources.delete(DEFAULT_CONTAINER, SessionTensor.type_name, name)
        raise
    return name


def get_session_handle(context: OpKernelContext, value: TensorValue) -> np.ndarray:
    """GetSessionHandle: keep `value` in the session and return its handle as a string.

    Raises ResourceExhaustedError if the resources of the session would hold too many bytes.
    """
    return np.array(_keep(context, value).encode(), object)


def get_session_handle_v2(context: OpKernelContext, value: TensorValue) -> ResourceHandle:
    """GetSessionHandleV2: keep `value` in the session and return its handle as a resource."""
    return ResourceHandle(DEFAULT_CONTAINER, _keep(context, value), SessionTensor.type_name)


def _name(handle: TensorValue) -> str:
    if isinstance(handle, np.ndarray) and handle.size == 1 and isinstance(handle.item(), bytes):
        text: bytes = handle.item()
        return text.decode("utf-8", "replace")
    return as_handle(handle).name


def get_session_tensor(
    context: OpKernelContext, handle: TensorValue, *, dtype: DataType
) -> TensorValue:
    """GetSessionTensor: return the tensor that `handle` refers to."""
    name = _name(handle)
    found = _find(context.resources, name)
    if found.dtype != dtype:
        raise InvalidArgumentError(
            f"The tensor with handle '{name}' has type {found.dtype.tf_name}, "
            f"expected {dtype.tf_name}"
        )
    return found.value


def delete_session_tensor(context: OpKernelContext, handle: TensorValue) -> None:
    """DeleteSessionTensor: remove the tensor that `handle` refers to from the session."""
    name = _name(handle)
    try:
        context.resources.delete(DEFAULT_CONTAINER, SessionTensor.type_name, name)
    except NotFoundError:
        raise InvalidArgumentError(
            f"Failed to delete a session tensor of handle '{name}'."
        ) from None


KERNELS = (
    KernelDef("DeleteSessionTensor", delete_session_tensor),
    KernelDef("GetSessionHandle", get_session_handle),
    KernelDef("GetSessionHandleV2", get_session_handle_v2),
    KernelDef("GetSessionTensor", get_session_tensor),
)
