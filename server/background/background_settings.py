"""What the settings say of the background process, and its own settings."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator

from runtime.api import schedulable_cores
from runtime.errors import InvalidArgumentError
from server.processes.reserved_port import reserved_port
from server.settings import Settings

_log = logging.getLogger(__name__)


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

    Its limits of memory, connections and queues are those of the process that starts it, once more:
    dividing them would take half from requests of normal priority, also while there are no others.
    It has no ports but `grpc.background_port`, and no further child process: its steps of low
    priority run in it.
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


def check_background_port(settings: Settings) -> None:
    """Raise InvalidArgumentError if there is a port, and can be no background process."""
    if settings.grpc.background_port != 0 and not low_priorities(settings):
        raise InvalidArgumentError(
            "grpc.background_port requires a background process: Linux, rest.port, placement "
            "local, no tls, and a priority whose pool has low_priority and own_process"
        )


@contextlib.contextmanager
def with_background_port(settings: Settings) -> Iterator[Settings]:
    """Yield the settings with the number of `grpc.background_port`, which is kept in the context.

    It is kept by a process that does not end before the background process, so that its number
    stays when that is replaced. Raises InvalidArgumentError as `check_background_port` does, and
    UnavailableError if the port is taken.
    """
    check_background_port(settings)
    grpc, host = settings.grpc, settings.rest.host
    with contextlib.ExitStack() as stack:
        if grpc.background_port != 0:
            wanted = 0 if grpc.background_port == "free" else grpc.background_port
            number = reserved_port(stack, host, wanted)
            _log.info("gRPC of low priority has port %d", number)
            grpc = grpc.model_copy(update={"background_port": number})
            settings = settings.model_copy(update={"grpc": grpc})
        yield settings
