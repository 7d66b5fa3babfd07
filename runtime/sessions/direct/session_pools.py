"""SessionPools: the thread pools of a session, as its configuration chooses them.

| configuration | pools |
| --- | --- |
| `session_inter_op_thread_pool` | one pool for each entry, shared if `global_name` is set |
| `use_per_session_threads` | one pool that only this session uses |
| neither | the process's `Compute` pool, whose size the first session decides |

TF: tensorflow/core/common_runtime/direct_session.cc (NewThreadPoolFromThreadPoolOptions),
process_util.cc (NumInterOpThreadsFromSessionOptions)
"""

from __future__ import annotations

import dataclasses
import os
import threading

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.global_thread_pools import global_thread_pools, schedulable_cores
from runtime.foundation.intra_op_pool import set_process_width
from runtime.foundation.thread_pool import ThreadPool

_MAX_THREADS = 4096  # limit for one pool, so that a configuration can't exhaust the system
_process_pool: list[ThreadPool] = []
os.register_at_fork(after_in_child=_process_pool.clear)  # a fork has none of the threads
_process_pool_lock = threading.Lock()  # guards _process_pool


@dataclasses.dataclass(slots=True)
class SessionPools:
    """The pools of a session by index; the pools in `owned` are shut down with the session.

    If `runs_in_caller` is true, a step runs in the calling thread unless its RunRequest has a
    `pool`.
    """

    pools: list[ThreadPool]
    owned: list[ThreadPool]
    runs_in_caller: bool

    def choose(self, index: int) -> ThreadPool | None:
        """Return the pool for a `RunOptions.inter_op_thread_pool`; None means the calling thread.

        Raises InvalidArgumentError if no pool has this index.
        """
        if index == -1:
            return None
        if not 0 <= index < len(self.pools):
            raise InvalidArgumentError(f"Invalid inter_op_thread_pool: {index}")
        return None if self.runs_in_caller else self.pools[index]

    def shutdown(self) -> None:
        """Shut down the pools that only this session uses; their queued tasks still run."""
        for pool in self.owned:
            pool.shutdown()


def num_inter_op_threads(config: pb.ConfigProto) -> int:
    """Return the number of threads of a pool whose entry has no `num_threads`.

    The number is `inter_op_parallelism_threads` if it is set, otherwise the environment variable
    TF_NUM_INTEROP_THREADS if it is set, otherwise the number of cores. If the number is negative,
    steps run in the caller's thread.
    """
    configured = config.inter_op_parallelism_threads
    if configured:
        return configured
    from_environment = _environment_number("TF_NUM_INTEROP_THREADS")
    return from_environment or schedulable_cores()


def num_intra_op_threads(config: pb.ConfigProto) -> int:
    """Return how many threads, including the step's own, may work on one kernel; at least 1.

    The number is `intra_op_parallelism_threads` if it is positive, otherwise the environment
    variable TF_NUM_INTRAOP_THREADS if it is positive, otherwise the number of cores.
    """
    for number in (
        config.intra_op_parallelism_threads,
        _environment_number("TF_NUM_INTRAOP_THREADS"),
    ):
        if number > 0:
            return number
    return schedulable_cores()


def _environment_number(name: str) -> int:
    try:
        return int(os.environ.get(name, "0"))
    except ValueError:
        return 0


def make_session_pools(config: pb.ConfigProto, max_threads: int = _MAX_THREADS) -> SessionPools:
    """Make or find the pools that a configuration requires.

    The first session also sets how many threads of the process may work on one kernel. In a pool
    that only one session uses, the configuration of this session decides.

    Raises InvalidArgumentError if a global pool exists with another size, and if a pool would have
    more than `max_threads` threads. After an error, no new pool is left running.
    """
    default = num_inter_op_threads(config)
    listed = config.session_inter_op_thread_pool
    for entry in listed:
        _check_size(entry.num_threads, max_threads)
    _check_size(config.inter_op_parallelism_threads, max_threads)
    _check_size(config.intra_op_parallelism_threads, max_threads)
    set_process_width(num_intra_op_threads(config))
    count = default if default > 0 else schedulable_cores()
    if listed:
        return _listed_pools(config, count)
    if config.use_per_session_threads and default > 0:
        own = ThreadPool("Compute", count, intra_op_threads=_intra_op_width(config))
        return SessionPools([own], [own], False)
    return SessionPools([process_pool(count)], [], default < 0)


def _listed_pools(config: pb.ConfigProto, default: int) -> SessionPools:
    pools: list[ThreadPool] = []
    owned: list[ThreadPool] = []
    try:
        for index, entry in enumerate(config.session_inter_op_thread_pool):
            if entry.global_name:
                pool = global_thread_pools.get_or_create(
                    entry.global_name, entry.num_threads, default_num_threads=default
                )
            else:
                pool = ThreadPool(
                    f"Compute{index}",
                    entry.num_threads or default,
                    intra_op_threads=_intra_op_width(config),
                )
                owned.append(pool)
            pools.append(pool)
    except InvalidArgumentError:
        for pool in owned:
            pool.shutdown()
        raise
    return SessionPools(pools, owned, False)


def _intra_op_width(config: pb.ConfigProto) -> int:
    return max(config.intra_op_parallelism_threads, 0)


def _check_size(num_threads: int, max_threads: int) -> None:
    if num_threads > max_threads:
        raise InvalidArgumentError(
            f"A thread pool of {num_threads} threads was asked for; at most {max_threads} may be"
        )


def process_pool(num_threads: int) -> ThreadPool:
    """Return the `Compute` pool of the process; the first call decides its size."""
    with _process_pool_lock:
        if not _process_pool:
            _process_pool.append(ThreadPool("Compute", num_threads))
        return _process_pool[0]
