"""divided_settings(): the settings of one of several processes that serve as one server.

The sizes of pools, and what bounds memory and queues, are for the host: each process has its part.
What is counted for the host as a whole, such as `sessions.max_open`, stays as it is. The console,
whose pages show one process, is off.
"""

from __future__ import annotations

import math
import os
from typing import TypeVar

from runtime.errors import InvalidArgumentError
from server.settings import MAX_PROCESSES, Settings, ThreadPoolSettings

T = TypeVar("T", int, int | None)


def _cores() -> int:
    from runtime.api import schedulable_cores  # the supervisor does not require the runtime

    return schedulable_cores()


def process_count(settings: Settings) -> int:
    """Return the number of processes: that of the setting, or one for each schedulable core.

    Raises InvalidArgumentError if another setting requires one process.
    """
    wanted = settings.processes
    count = min(_cores(), MAX_PROCESSES) if wanted == "auto" else wanted
    if count > 1:
        if not hasattr(os, "memfd_create"):
            raise InvalidArgumentError(f"processes is {wanted}, which requires Linux")
        for name, is_set, reason in (
            ("grpc.socket_path", settings.grpc.socket_path, "one process can listen on it"),
            ("placement: ray", settings.placement == "ray", "more front ends are more servers"),
        ):
            if is_set:
                raise InvalidArgumentError(
                    f"processes is {wanted}, and {name} requires 1: {reason}"
                )
    return count


def divided_settings(settings: Settings, slot: int, count: int) -> Settings:
    """Return the settings of process `slot` of `count`, whose parts together are the whole."""

    def part(whole: T) -> T:
        return None if whole is None else max(1, whole // count + (slot < whole % count))

    rest = settings.rest.model_copy(
        update={
            "max_bytes_in_flight": part(settings.rest.max_bytes_in_flight),
            "max_connections": math.ceil(settings.rest.max_connections / count),
        }
    )
    memory = settings.memory.model_copy(
        update={
            "max_process_bytes": part(settings.memory.max_process_bytes),
            "refuse_above_bytes": part(settings.memory.refuse_above_bytes),
        }
    )

    def divided(pool: ThreadPoolSettings) -> ThreadPoolSettings:
        threads = pool.num_threads or _cores()
        return pool.model_copy(
            update={"num_threads": part(threads), "queue_size": part(pool.queue_size)}
        )

    sessions = settings.sessions.model_copy(
        update={"max_owner_steps": part(settings.sessions.max_owner_steps)}
    )
    return settings.model_copy(
        update={
            "rest": rest,
            "sessions": sessions,
            "memory": memory,
            "thread_pools": tuple(map(divided, settings.thread_pools)),
            "console": settings.console.model_copy(update={"enabled": False}),
        }
    )
