"""check_rpc_ports(): whether some node of the cluster can have a front, as to its gRPC ports."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from runtime.errors import UnavailableError
from runtime.ray_api import Node
from server.processes.reserved_port import check_free
from server.settings import Settings

_CONNECT_SECONDS = 1.0


def check_rpc_ports(settings: Settings, nodes: Sequence[Node], own_node: str) -> None:
    """Raise UnavailableError if a gRPC port is in use on every node, with the reason on this one.

    `own_node` is the id of the node of this machine. A front may start on any node, so one that has
    the ports free is enough.
    """
    grpc = settings.grpc
    if grpc.channel_arguments.get("grpc.so_reuseport"):  # others may have it then
        return
    own = {node.address for node in nodes if node.id == own_node}
    others = {node.address for node in nodes} - own
    for host, port in (
        (settings.rest.host, grpc.port),
        (grpc.tensorflow_host, grpc.tensorflow_port),
    ):
        if not isinstance(port, int) or port == 0:
            continue
        try:
            check_free("gRPC", host, port)
        except UnavailableError as error:
            if all(_is_taken(address, port) for address in others):
                raise UnavailableError(f"No front can serve: {error.message}") from None


def _is_taken(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), _CONNECT_SECONDS).close()
    except OSError:  # TimeoutError is one
        return False
    return True
