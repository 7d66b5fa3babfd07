"""Kernels of ops that hand out a resource: its handle, and the handle as a string.

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
    """The handle of the node's resource, which `create` makes of its name at first use.

    Nodes with one `shared_name` share it: `check` raises when it is not what this node describes.
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
    """The handle, of a resource that can be found under `name`, as a scalar string tensor."""
    proto = pb.ResourceHandleProto(
        device=handle.device,
        container=handle.container,
        name=name,
        maybe_type_name=handle.type_name,
    )
    return string_tensor([proto.SerializeToString(deterministic=True)], ())


def handle_from_string(string_handle: np.ndarray) -> ResourceHandle:
    """The handle in a scalar string tensor; InvalidArgumentError when it is none."""
    try:
        proto = pb.ResourceHandleProto.FromString(scalar_string(string_handle))
    except DecodeError:
        raise InvalidArgumentError(
            "Could not parse string_handle as a valid ResourceHandle"
        ) from None
    return ResourceHandle(proto.container, proto.name, proto.maybe_type_name, proto.device)
