"""The door to what the runtime knows of Ray clusters, for the server; it imports Ray."""

from runtime.sessions.ray_cluster.actor_values import Answer, content_of, refusal
from runtime.sessions.ray_cluster.cluster_connection import (
    NAMESPACE,
    alive_nodes,
    cluster_connection,
)
from runtime.sessions.ray_cluster.node_watch import says_closed
from runtime.sessions.ray_cluster.nodes import Node, choose_node, feasible_nodes
from runtime.sessions.ray_cluster.ray_errors import as_ray_error
from runtime.sessions.ray_cluster.ray_target import (
    SCHEME,
    Placement,
    RayTarget,
    parse_ray_target,
)
from runtime.sessions.ray_cluster.this_actor import exit_actor

__all__ = [
    "NAMESPACE",
    "SCHEME",
    "Answer",
    "Node",
    "Placement",
    "RayTarget",
    "alive_nodes",
    "as_ray_error",
    "choose_node",
    "cluster_connection",
    "content_of",
    "exit_actor",
    "feasible_nodes",
    "parse_ray_target",
    "refusal",
    "says_closed",
]
