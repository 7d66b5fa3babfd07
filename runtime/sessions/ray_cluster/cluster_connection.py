"""ClusterConnection: how this program belongs to a Ray cluster. A program belongs to one at most.

If the program has joined a cluster by itself (`ray.init`, or because it is a worker of one), that
connection is used. Otherwise the first session joins, and the connection stays until the program
ends or, while no session is open, asks for another cluster.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Sequence

import ray
from ray._private import services  # `ray.init("auto")` would wait for a cluster that is gone

from runtime.foundation.errors import FailedPreconditionError, UnavailableError
from runtime.sessions.ray_cluster.cluster_probe import check_reachable, probe, use_own_token
from runtime.sessions.ray_cluster.nodes import Node, feasible_nodes
from runtime.sessions.ray_cluster.ray_target import (
    AUTO,
    SCHEME,
    RayTarget,
    parse_ray_target,
    split_address,
)

NAMESPACE = "runstep"
_RAY_ADDRESS = "RAY_ADDRESS"
_NODES_SECONDS = 1.0  # how long a list of the nodes is used for new sessions
_log = logging.getLogger(__name__)


class ClusterConnection:
    """The connection of this process. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all fields; held while the program joins
        self._is_ours = False  # whether `join` has called ray.init
        self._num_sessions = 0
        self._nodes: tuple[float, list[Node]] = (0.0, [])

    def join(self, target: RayTarget) -> bool:
        """Make the program belong to the target's cluster; return whether it did not before.

        A session is counted, which `leave` must end.

        Raises what `probe` and `feasible_nodes` raise, and FailedPreconditionError if the program
        belongs to another cluster. After an error nothing has changed.
        """
        is_new = False
        with self._lock:
            if ray.is_initialized() and not self._is_usable(target):
                ray.shutdown()
                self._is_ours = False
            if not ray.is_initialized():
                self.look(target)
                _init(_address_of(target))
                self._is_ours = is_new = True
                self._nodes = (0.0, [])
            self._num_sessions += 1
        return is_new

    def look(self, target: RayTarget) -> Sequence[Node]:
        """Return the nodes of the target's cluster without joining it.

        Raises what `probe` raises, and what `feasible_nodes` does for the target's placement.
        """
        nodes = probe(_address_of(target))
        feasible_nodes(target.placement, nodes)
        return nodes

    def leave(self) -> None:
        """Count a session that has ended."""
        with self._lock:
            self._num_sessions -= 1

    def _is_usable(self, target: RayTarget) -> bool:
        """Return whether the present connection serves the target, or whether it may end.

        Raises FailedPreconditionError if it is to another cluster and can't end.
        """
        current = ray.get_runtime_context().gcs_address
        may_end = self._is_ours and self._num_sessions == 0
        if target.address in (AUTO, current) or _is_same(target.address, current):
            try:
                check_reachable(current)
            except UnavailableError:
                if not may_end:
                    raise
                return False
            return True
        if may_end:
            return False
        raise FailedPreconditionError(
            f"This program belongs to the Ray cluster at {current} and can't join the one at "
            f"{target.address}, because Ray allows one cluster for each process"
        )

    def nodes(self, *, refresh: bool = False) -> Sequence[Node]:
        """Return the nodes that are alive."""
        asked_at, nodes = self._nodes
        now = time.monotonic()
        if refresh or not nodes or now - asked_at > _NODES_SECONDS:
            nodes = alive_nodes()
            self._nodes = (now, nodes)
        return nodes

    @property
    def own_node(self) -> str:
        """The id of the node through which this program belongs to the cluster."""
        return str(ray.get_runtime_context().get_node_id())


def alive_nodes() -> list[Node]:
    """Return the nodes that the cluster of this program takes for alive."""
    return [
        Node(
            told["NodeID"],
            told["NodeManagerAddress"],
            told["NodeName"],
            told["Resources"],
            told["Labels"],
            port=told["NodeManagerPort"],
        )
        for told in ray.nodes()
        if told["Alive"]
    ]


def _address_of(target: RayTarget) -> str:
    """Return the address of a target's GCS; raise UnavailableError if none is found."""
    if target.address != AUTO:
        return target.address
    try:
        found = str(services.get_ray_address_from_environment(AUTO, None))
    except ConnectionError:
        raise UnavailableError(
            "ray://auto finds no Ray cluster on this machine, and RAY_ADDRESS is not set; "
            "`ray start --head` starts one"
        ) from None
    if not os.environ.get(_RAY_ADDRESS):
        use_own_token()
    return parse_ray_target(SCHEME + found.removeprefix(SCHEME)).address  # RAY_ADDRESS may be wrong


def _is_same(asked: str, current: str) -> bool:
    """Return whether two `HOST:PORT` are the same, by address or because the host is this one."""
    (host, port), (current_host, current_port) = split_address(asked), split_address(current)
    if port != current_port:
        return False
    return host == current_host or bool(_addresses(host) & (_addresses(current_host)))


def _addresses(host: str) -> set[str]:
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except (OSError, ValueError):  # ValueError: it can't be the name of a host
        return set()
    own = {services.get_node_ip_address(), "127.0.0.1", "::1"}
    return found | own if found & own else found


def _init(address: str) -> None:
    """Join, without the handlers of signals and of logs that Ray sets for programs of its own."""
    handler = _handler_of_sigterm()
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        ray.shutdown()
        raise UnavailableError(
            f"ray://{address}: Ray could not join the cluster: {' '.join(str(error).split())}"
        ) from None
    finally:
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)  # type: ignore[arg-type]
    _log.info("ray_cluster=%s joined", address)


def _handler_of_sigterm() -> object:
    """Return the handler if this thread can set it again; None if not."""
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.getsignal(signal.SIGTERM)


cluster_connection = ClusterConnection()
