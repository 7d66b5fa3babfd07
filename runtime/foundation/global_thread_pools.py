"""The named thread pools of the process. They live as long as the process.

A fork has none of the threads, so it begins without pools: its own sessions make new ones.
"""

from __future__ import annotations

import functools
import os
import threading

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.processor_quota import quota_cores
from runtime.foundation.thread_pool import DEFAULT_QUEUE_SIZE, ThreadPool

# Read once: pools that were made for a quota stay as they are.
_quota = functools.cache(quota_cores)


def schedulable_cores() -> int:
    """Return the number of processor cores that this process may use.

    They are those of its affinity, and no more than the quota of time of its control groups.
    """
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # only some systems have sched_getaffinity
        count = os.cpu_count() or 1
    return min(count, _quota() or count)


class GlobalThreadPools:
    """The named pools of the process, each with the configured number of threads (possibly 0)."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the pools, whose threads a fork of the process does not have."""
        self._lock = threading.Lock()  # guards `_pools`
        self._pools: dict[str, tuple[int, ThreadPool]] = {}

    def get_or_create(
        self,
        name: str,
        num_threads: int,
        *,
        low_priority: bool = False,
        queue_size: int = DEFAULT_QUEUE_SIZE,
        default_num_threads: int | None = None,
        intra_op_threads: int = 0,
        own_process: bool = False,
    ) -> ThreadPool:
        """Return the pool named `name`; if there is none, create it with the given options.

        If `num_threads` is 0, the pool has `default_num_threads` threads or, if that is not given,
        one thread for each core. Raises InvalidArgumentError if the pool exists and was created
        with another `num_threads`; the other options of an existing pool are not compared.
        """
        with self._lock:
            known = self._pools.get(name)
            if known is None:
                count = num_threads or default_num_threads or schedulable_cores()
                pool = ThreadPool(
                    name,
                    count,
                    low_priority=low_priority,
                    queue_size=queue_size,
                    intra_op_threads=intra_op_threads,
                    own_process=own_process,
                )
                self._pools[name] = (num_threads, pool)
                return pool
        configured, pool = known
        if configured != num_threads:
            raise InvalidArgumentError(
                f"Pool {name} configured previously with num_threads={configured}; "
                f"cannot re-configure with num_threads={num_threads}"
            )
        return pool

    def find(self, name: str) -> ThreadPool | None:
        """Return the pool named `name`, or None if there is none."""
        known = self._pools.get(name)
        return None if known is None else known[1]

    def all(self) -> list[ThreadPool]:
        """Return all named pools in the order of creation."""
        with self._lock:
            return [pool for _, pool in self._pools.values()]


global_thread_pools = GlobalThreadPools()
os.register_at_fork(after_in_child=global_thread_pools.begin_anew)
