"""ThreadPoolHandle, whose thread pool a ThreadPoolDataset takes.

TF: tensorflow/core/kernels/data/experimental/threadpool_dataset_op.cc (ThreadPoolHandleOp)
"""

from __future__ import annotations

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resource_op_kernel import resource_handle
from runtime.framework.resources.dataset_thread_pool import DatasetThreadPool

MAX_THREADS = 65536


def thread_pool_handle(
    context: OpKernelContext, *, num_threads: int, container: str, shared_name: str
) -> ResourceHandle:
    """ThreadPoolHandle: return the handle of the node's thread pool, created at its first run.

    Raises InvalidArgumentError unless 0 ≤ `num_threads` < MAX_THREADS.
    """
    if num_threads < 0:
        raise InvalidArgumentError("`num_threads` must be >= 0")
    if num_threads >= MAX_THREADS:
        raise InvalidArgumentError(f"`num_threads` must be < {MAX_THREADS}")
    return resource_handle(
        context,
        container,
        shared_name,
        DatasetThreadPool,
        lambda _: DatasetThreadPool(num_threads),
    )


KERNELS = (
    KernelDef("ExperimentalThreadPoolHandle", thread_pool_handle),
    KernelDef("ThreadPoolHandle", thread_pool_handle),
)
