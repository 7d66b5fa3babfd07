"""SharedPorts: what one of several processes of a server inherits from its supervisor."""

from __future__ import annotations

import dataclasses
import socket

from server.processes.worker_host import WorkerHost


@dataclasses.dataclass(frozen=True, slots=True)
class SharedPorts:
    """What one process of several has of its own, or shares: see server/supervision.

    `listener` is the HTTP socket on which each process accepts, or None. `supervisor` is a pipe
    that ends when the supervisor does. `has_rpc` is whether the other processes, which pass calls
    on, have gRPC, which the background process has no port for.
    """

    host: WorkerHost
    listener: socket.socket | None
    supervisor: int
    has_rpc: bool = False
