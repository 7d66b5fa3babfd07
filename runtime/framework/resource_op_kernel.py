"""Functions for kernels whose output is a resource handle, or a handle in a string tensor.

TF: tensorflow/core/framework/resource_op_kernel.h (ResourceOpKernel),
tensorflow/core/kernels/data/iterator_ops.cc (IteratorToStringHandleOp)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.resource_manager import (
    DEFAULT_CONTAINER,
    Resource,
    ResourceHandle,
    private_name,
)
from runtime.framework.string_tensor import scalar_string, string_tensor

R = TypeVar("R", bound=Resource)


def resource_handle(
    context: OpKernelContext,
    container: str,
    shared_name: str,
    kind: type[R],
    create: Callable[[str], R],
    check: Callable[[R], object] | None = None,
) -> ResourceHandle:
    """Return the handle of the node's resource; at first use, create it with `create(name)`.

    Nodes with the same `shared_name` share one resource. If `check` is given, it is called with the
    resource and must raise if the resource does not fit the node's attributes.
    """

    def make() -> ResourceHandle:
        name = shared_name or private_name(context.node.name)
        found = context.resources.look_up_or_create(container, kind, name, lambda: create(name))
        if check is not None:
            check(found)
        return ResourceHandle(container or DEFAULT_CONTAINER, name, kind.type_name)

    handle: ResourceHandle = context.kernel_state(make)
    return handle


def handle_to_string(handle: ResourceHandle, name: str) -> np.ndarray:
    """Return a scalar string tensor with the handle, whose name is replaced by `name`."""
    proto = pb.ResourceHandleProto(
        device=handle.device,
        container=handle.container,
        name=name,
        maybe_type_name=handle.type_name,
    )
    return string_tensor([proto.SerializeToString(deterministic=True)], ())


def handle_from_string(string_handle: np.ndarray) -> ResourceHandle:
    """Return the handle in a scalar string tensor; raise InvalidArgumentError if malformed."""
    try:
        proto = pb.ResourceHandleProto.FromString(scalar_string(string_handle))
    except DecodeError:
        raise InvalidArgumentError(
            "Could not parse string_handle as a valid ResourceHandle"
        ) from None
    return ResourceHandle(proto.container, proto.name, proto.maybe_type_name, proto.device)
