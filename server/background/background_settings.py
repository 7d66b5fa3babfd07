"""What the settings say of the background process, and its own settings."""

from __future__ import annotations

import os
import socket

from runtime.api import schedulable_cores
from server.settings import Settings


def low_priorities(settings: Settings) -> frozenset[str]:
    """Return the priorities whose requests a background process answers; none if there is none.

    They are those whose pools have `own_process`. Connections with TLS can't be handed over: their
    keys are in the process that has them.
    """
    can_hand_over = (
        hasattr(os, "memfd_create")
        and hasattr(socket, "send_fds")
        and settings.rest.port != 0
        and settings.placement == "local"
        and settings.tls.certificate_file is None
    )
    pools = {each.name for each in settings.thread_pools if each.low_priority and each.own_process}
    return frozenset(
        name for name, entry in settings.priorities.items() if can_hand_over and entry.pool in pools
    )


def background_settings(settings: Settings) -> Settings:
    """Return the settings of the background process of a server with these settings.

    It has no ports and no further child process: its steps of low priority run in it.
    """
    pools = tuple(each.model_copy(update={"own_process": False}) for each in settings.thread_pools)
    without_ports = {"port": 0, "socket_path": None, "tensorflow_port": None}
    return settings.model_copy(
        update={
            "processes": 1,
            "rest": settings.rest.model_copy(update={"port": 0}),
            "grpc": settings.grpc.model_copy(update=without_ports),
            "console": settings.console.model_copy(update={"enabled": False}),
            "thread_pools": pools,
        }
    )


def low_priority_turns(settings: Settings, count: int) -> dict[str, int]:
    """Return the pools of low priority whose threads take turns with those of other processes.

    The result has their threads, in all processes together, by name. They are those with fewer
    threads than there are processes, each of which has one, because its sessions need it; and those
    whose steps may run in the background process, which has all of their threads once more.
    """
    low = [pool for pool in settings.thread_pools if pool.low_priority]
    threads = {pool.name: pool.num_threads or schedulable_cores() for pool in low}
    return {
        pool.name: threads[pool.name]
        for pool in low
        if pool.own_process or threads[pool.name] < count
    }
