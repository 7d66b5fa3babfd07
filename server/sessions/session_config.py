"""Check the ConfigProto of a client, and add the server's thread pools.

A session whose config names no pools has the configured pools, in order. A client may use a global
pool by name (with its configured number of threads), create unnamed pools within
`sessions.max_threads`, and create global pools only if `sessions.allow_new_global_pools` is set.
"""

from __future__ import annotations

import protos as pb
from runtime.api import global_thread_pools, schedulable_cores
from runtime.errors import InvalidArgumentError
from server.access.access_errors import DeniedError
from server.settings import SessionSettings, ThreadPoolSettings

MAX_DEVICES = 64  # for each type in one session; more devices than cores have no use


def session_config(
    requested: pb.ConfigProto,
    settings: SessionSettings,
    thread_pools: tuple[ThreadPoolSettings, ...],
    allowed_pools: frozenset[str] | None = None,
) -> pb.ConfigProto:
    """Return the config with which the session is made.

    `allowed_pools` are the pools that the caller may use, or None for all. Raises
    InvalidArgumentError if `requested` has devices, threads or pools that clients may not create,
    and PermissionDeniedError if it has pools that the caller may not use.
    """
    config = pb.ConfigProto()
    config.CopyFrom(requested)
    if allowed_pools is not None:
        _check_allowed(config, allowed_pools)
    _check_devices(config)
    _check_names(config, settings)
    _check_threads(config, settings)
    if not config.session_inter_op_thread_pool and not config.use_per_session_threads:
        for pool in thread_pools:
            config.session_inter_op_thread_pool.add(
                global_name=pool.name, num_threads=pool.num_threads
            )
    return config


def runs_in_caller(config: pb.ConfigProto) -> bool:
    """Return whether steps on the session's own pool run in the caller's thread.

    They do if the number of threads is negative and no pools are listed.

    TF: process_util.cc (NumInterOpThreadsFromSessionOptions)
    """
    return config.inter_op_parallelism_threads < 0 and not config.session_inter_op_thread_pool


def _check_allowed(config: pb.ConfigProto, allowed: frozenset[str]) -> None:
    """Check that all threads of the session are those of allowed pools.

    Threads of the session's own would have the normal priority.
    """
    listed = config.session_inter_op_thread_pool
    has_own = config.use_per_session_threads or config.inter_op_parallelism_threads < 0
    if (has_own and not listed) or any(pool.global_name not in allowed for pool in listed):
        names = ", ".join(sorted(allowed)) or "none"
        raise DeniedError(f"The caller's sessions may use only the thread pools: {names}", "pool")


def _check_devices(config: pb.ConfigProto) -> None:
    for device_type, count in config.device_count.items():
        if count > MAX_DEVICES:
            raise InvalidArgumentError(
                f"device_count asks for {count} {device_type} devices; at most {MAX_DEVICES}"
            )


def _check_names(config: pb.ConfigProto, settings: SessionSettings) -> None:
    if settings.allow_new_global_pools:
        return
    for pool in config.session_inter_op_thread_pool:
        if pool.global_name and global_thread_pools.find(pool.global_name) is None:
            known = ", ".join(each.name for each in global_thread_pools.all())
            raise InvalidArgumentError(
                f"There is no thread pool named {pool.global_name!r}, and this server does not let "
                f"clients create one (sessions.allow_new_global_pools); known are {known}"
            )


def _check_threads(config: pb.ConfigProto, settings: SessionSettings) -> None:
    if config.inter_op_parallelism_threads == 0:
        # 0 means one thread for each core, which on a large machine could exceed `max_threads`.
        config.inter_op_parallelism_threads = min(schedulable_cores(), settings.max_threads)
    default = max(config.inter_op_parallelism_threads, 1)
    wanted = 0
    for pool in config.session_inter_op_thread_pool:
        if pool.num_threads < 0:
            raise InvalidArgumentError(
                f"session_inter_op_thread_pool asks for num_threads={pool.num_threads}; "
                "0 means the default"
            )
        if not pool.global_name or global_thread_pools.find(pool.global_name) is None:
            wanted += pool.num_threads or default
    has_own_pool = config.use_per_session_threads and not config.session_inter_op_thread_pool
    if has_own_pool and not runs_in_caller(config):
        wanted += default
    wanted = max(wanted, config.inter_op_parallelism_threads, config.intra_op_parallelism_threads)
    if wanted > settings.max_threads:
        raise InvalidArgumentError(
            f"The config asks for {wanted} threads; a session may have {settings.max_threads} "
            "(sessions.max_threads)"
        )
