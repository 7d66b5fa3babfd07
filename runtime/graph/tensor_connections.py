"""Tensor connections of a callable: the readers of one tensor read another tensor instead.

TF: tensorflow/core/common_runtime/graph_execution_state.cc (TensorConnectionPruneRewrite),
config.proto (TensorConnection)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError, OpError
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import check_acyclic
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import find_endpoint
from runtime.graph.tensor_name import fed_more_than_once, parse_tensor_name


def connect_tensors(
    graph: Graph, connections: Sequence[pb.TensorConnection], feeds: Iterable[str]
) -> Graph:
    """Return a graph in which the readers of each `to_tensor` read its `from_tensor` instead.

    `graph` itself is unchanged. Raises InvalidArgumentError if a `from_tensor` is unknown, if a
    `to_tensor` is connected twice or is also fed, or if the connections create a cycle;
    NotFoundError if a `to_tensor` is unknown.
    """
    if not connections:
        return graph
    taken = {parse_tensor_name(name) for name in feeds}
    replaced: dict[Endpoint, Endpoint] = {}
    for connection in connections:
        if parse_tensor_name(connection.to_tensor) in taken:
            raise fed_more_than_once(connection.to_tensor)
        taken.add(parse_tensor_name(connection.to_tensor))
        replaced[_target(graph, connection)] = _source(graph, connection)
    clones = {node: node.clone() for node in graph.nodes.values()}
    for clone in clones.values():
        clone.inputs = [_moved(replaced.get(each, each), clones) for each in clone.inputs]
        clone.control_inputs = [clones[control] for control in clone.control_inputs]
    try:
        check_acyclic({clone.name: clone for clone in clones.values()})
    except InvalidArgumentError:
        shown = ", ".join(f"{each.from_tensor} -> {each.to_tensor}" for each in connections)
        raise InvalidArgumentError(f"Tensor connection ({shown}) would create a cycle.") from None
    return Graph({clone.name: clone for clone in clones.values()}, graph.library, graph.versions)


def _moved(endpoint: Endpoint, clones: dict[Node, Node]) -> Endpoint:
    return clones[endpoint[0]], endpoint[1]


def _source(graph: Graph, connection: pb.TensorConnection) -> Endpoint:
    name = connection.from_tensor
    if parse_tensor_name(name)[0] not in graph.nodes:
        raise InvalidArgumentError(f"The from_tensor {name} of a connection has an unknown node")
    try:
        return find_endpoint(graph, name)
    except OpError:
        raise InvalidArgumentError(
            f"The from_tensor {name} of a connection names an unknown edge"
        ) from None


def _target(graph: Graph, connection: pb.TensorConnection) -> Endpoint:
    try:
        return find_endpoint(graph, connection.to_tensor)
    except OpError:
        raise NotFoundError(
            f"FeedInputs: unable to find feed output {connection.to_tensor}"
        ) from None
