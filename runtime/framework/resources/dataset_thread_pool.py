"""The resource behind ThreadPoolHandle: the threads on which a dataset should be computed.

Datasets compute elements in the thread that requests them, so the resource is only a name with a
size and starts no threads.

TF: tensorflow/core/kernels/data/experimental/threadpool_dataset_op.cc (ThreadPoolResource)
"""

from __future__ import annotations

from collections.abc import Iterable

from runtime.framework.resource_manager import Resource


class DatasetThreadPool(Resource):
    """A thread pool by name; `num_threads` 0 means that the runtime chooses the number."""

    type_name = "N10tensorflow4data12experimental18ThreadPoolResourceE"

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads

    def held(self) -> tuple[int, Iterable[object]]:
        """Return nothing: the pool keeps no values."""
        return 0, ()
