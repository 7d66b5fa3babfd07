"""Kernels of the mutex ops: MutexV2, MutexLock, ConsumeMutexLock.

TF: tensorflow/core/kernels/mutex_ops.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import Deferred, KernelDef, OpKernelContext
from runtime.framework.resource_manager import DEFAULT_CONTAINER, ResourceHandle
from runtime.framework.resources.mutex import Mutex, MutexLock
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.state.resource_variables import as_handle


def mutex(context: OpKernelContext, *, container: str, shared_name: str) -> ResourceHandle:
    """MutexV2: return the handle of the node's mutex, which is created on first use."""
    name = shared_name or context.node.name
    context.resources.look_up_or_create(container, Mutex, name, Mutex)
    return ResourceHandle(container or DEFAULT_CONTAINER, name, Mutex.type_name)


def mutex_lock(context: OpKernelContext, handle: ResourceHandle) -> MutexLock | Deferred:
    """MutexLock: acquire the mutex and return a MutexLock.

    Returns a Deferred of the MutexLock if the mutex is held at present.
    """
    handle = as_handle(handle)
    found = context.resources.look_up(handle.container, Mutex, handle.name)
    return found.lock(context.cancellation)


def consume_mutex_lock(lock: TensorValue) -> None:
    """ConsumeMutexLock: release the mutex that `lock` holds."""
    if isinstance(lock, np.ndarray) and lock.ndim == 0:
        lock = lock.item()
    if not isinstance(lock, MutexLock):
        raise InvalidArgumentError("Expected the lock of a mutex")
    lock.release()


KERNELS = (
    KernelDef("ConsumeMutexLock", consume_mutex_lock),
    KernelDef("MutexLock", mutex_lock, asynchronous=True),
    KernelDef("MutexV2", mutex),
)
