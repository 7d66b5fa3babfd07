"""SharedPorts: what one of several processes of a server inherits from its supervisor."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Sequence

from server.processes.worker_host import WorkerHost


@dataclasses.dataclass(frozen=True, slots=True)
class SharedPorts:
    """What one process of several has of its own, or shares: see server/supervision.

    `listeners` are the HTTP sockets on which each process accepts. `supervisor` is a pipe that ends
    when the supervisor does. `has_rpc` is whether the other processes, which pass calls on, have
    gRPC, which the background process has no port for.
    """

    host: WorkerHost
    listeners: Sequence[socket.socket]
    supervisor: int
    has_rpc: bool = False
