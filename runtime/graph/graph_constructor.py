"""Makes a Graph from a GraphDef: checks and connects every node and determines its types.

If one node is invalid, the whole GraphDef is rejected. Status codes and messages are the same as in
TF: tensorflow/core/common_runtime/graph_constructor.cc (ConvertGraphDefToGraph)
"""

from __future__ import annotations

from collections.abc import Sequence

import protos as pb
from runtime.foundation.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
)
from runtime.foundation.running_task import check_task
from runtime.framework import op_def_registry
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.graph import CURRENT_VERSION, MIN_PRODUCER, RELEASE, Graph
from runtime.graph.graph_bytes import graph_def_bytes
from runtime.graph.node import Node
from runtime.graph.node_checks import check_attrs, check_edge
from runtime.graph.tensor_name import is_valid_node_name, parse_tensor_name

_MAX_LISTED = 20  # number of nodes per op that an error message names at most


def extend_graph(
    graph: Graph,
    graph_def: pb.GraphDef,
    max_nodes: int = 1_000_000,
    max_bytes: int | None = None,
) -> Graph:
    """Return a graph with the nodes and functions of both `graph` and `graph_def`.

    `graph` itself is unchanged. Raises InvalidArgumentError if `graph_def` is invalid;
    NotFoundError if it uses unknown ops, with a message that lists all of them and the nodes that
    use them; ResourceExhaustedError if the new graph would have more than `max_nodes` nodes, or if
    what is added needs more than `max_bytes` bytes of memory (default: no limit).
    """
    total = len(graph.nodes) + len(graph_def.node)
    if total > max_nodes:
        raise ResourceExhaustedError(
            f"The graph would have {total} nodes; the limit is {max_nodes}"
        )
    _check_versions(graph_def.versions)
    library = graph.library.merged(graph_def.library)
    _check_ops_are_known(graph_def, library)
    size = graph_def_bytes(graph_def, library.find_info)
    if max_bytes is not None and size > max_bytes:
        raise ResourceExhaustedError(
            f"The nodes, functions and constants of the graph need {size} bytes; the session has "
            f"{max_bytes} left (sessions.max_session_bytes)"
        )
    constructor = _Constructor(graph, graph_def, library)
    added = constructor.build()
    versions = graph.versions if graph.nodes else graph_def.versions
    return Graph({**graph.nodes, **added}, library, versions, graph.bytes_held + size)


def _check_versions(versions: pb.VersionDef) -> None:
    if versions.producer < MIN_PRODUCER:
        raise InvalidArgumentError(
            f"GraphDef producer version {versions.producer} below min producer {MIN_PRODUCER} "
            f"supported by TensorFlow {RELEASE}.  Please regenerate your graph."
        )
    if versions.min_consumer > CURRENT_VERSION:
        raise InvalidArgumentError(
            f"GraphDef min consumer version {versions.min_consumer} above current version "
            f"{CURRENT_VERSION} for TensorFlow {RELEASE}.  Please upgrade TensorFlow."
        )
    if CURRENT_VERSION in versions.bad_consumers:
        raise InvalidArgumentError(
            f"GraphDef disallows consumer version {CURRENT_VERSION}.  Please upgrade TensorFlow: "
            "this version is likely buggy."
        )


def _check_ops_are_known(graph_def: pb.GraphDef, library: FunctionLibrary) -> None:
    """Raise NotFoundError if the graph or one of its functions uses an unknown op.

    The message lists all unknown ops and the nodes that use them.
    """
    used = {node.op for node in graph_def.node}
    for function in graph_def.library.function:
        used.update(node.op for node in function.node_def)
    missing = {op for op in used if library.find_info(op) is None}
    if not missing:
        return
    unknown: dict[str, list[str]] = {}
    for node in graph_def.node:
        if node.op in missing:
            unknown.setdefault(node.op, []).append(node.name)
    for function in graph_def.library.function:
        for node in function.node_def:
            if node.op in missing:
                where = f"{function.signature.name}/{node.name}"
                unknown.setdefault(node.op, []).append(where)
    ops = list(unknown)
    listed = "; ".join(
        f"{op} (nodes {', '.join(nodes[:_MAX_LISTED])}"
        + (f" and {len(nodes) - _MAX_LISTED} more)" if len(nodes) > _MAX_LISTED else ")")
        for op, nodes in unknown.items()
    )
    raise NotFoundError(
        f"{op_def_registry.unknown_op_message(ops[0])} Unknown ops in this graph: {listed}"
    )


class _Constructor:
    """Builds the nodes that one call of `extend_graph` adds."""

    def __init__(self, graph: Graph, graph_def: pb.GraphDef, library: FunctionLibrary) -> None:
        self._old = graph.nodes
        self._graph_def = graph_def
        self._library = library
        self._new: dict[str, Node] = {}
        # Whether every node follows its inputs (back edges of loops are ignored). If so, the nodes
        # have no cycle.
        self._is_ordered = True

    def build(self) -> dict[str, Node]:
        for node_def in self._graph_def.node:
            check_task()
            self._add(node_def)
        for node in self._new.values():
            check_task()
            self._connect(node, node.node_def.input)
        if not self._is_ordered:
            check_acyclic(self._new)
        return self._new

    def _add(self, node_def: pb.NodeDef) -> None:
        name = node_def.name
        if not is_valid_node_name(name):
            raise InvalidArgumentError(f"Node '{name}': Node name contains invalid characters")
        if name in self._new:
            raise InvalidArgumentError(f"Node '{name}' is not unique")
        if name in self._old:
            raise InvalidArgumentError(
                f"GraphDef argument to Extend includes node '{name}', which was created by a "
                "previous call to Create or Extend in this session."
            )
        info = self._library.find_info(node_def.op)
        assert info is not None  # `_check_ops_are_known` raises if an op is unknown
        node = Node(name, info, node_def)
        try:
            check_attrs(node)
            node.set_types()
        except OpError as error:
            error.node = None
            raise type(error)(f"{error.message_without_node} [[{{{{node {name}}}}}]]") from error
        self._new[name] = node

    def _connect(self, node: Node, inputs: Sequence[str]) -> None:
        expected = node.expected_inputs()
        seen_control = False
        controls: set[Node] = set()
        for text in inputs:
            source_name, index = parse_tensor_name(text)
            source = self._new.get(source_name) or self._old.get(source_name)
            if source is None:
                raise InvalidArgumentError(f"Node '{node.name}': Unknown input node '{text}'")
            if source.number >= node.number and not _is_back_edge(source, node):
                self._is_ordered = False
            if index < 0:
                seen_control = True
                if source not in controls:
                    controls.add(source)
                    node.control_inputs.append(source)
                continue
            if seen_control:
                raise InvalidArgumentError(
                    f"Node '{node.name}': Control dependencies must come after regular dependencies"
                )
            check_edge(node, source, index, expected)
            node.inputs.append((source, index))
        node.fit_edges()
        node.missing_inputs = len(expected) - len(node.inputs)


def _is_back_edge(source: Node, node: Node) -> bool:
    return node.op in ("Merge", "RefMerge") and source.op in ("NextIteration", "RefNextIteration")


def check_acyclic(nodes: dict[str, Node]) -> None:
    """Raise InvalidArgumentError if the nodes have a cycle.

    A cycle through the back edge of a loop, from NextIteration to Merge, is allowed.
    """
    waiting: dict[str, int] = {}
    readers: dict[str, list[Node]] = {}
    for node in nodes.values():
        sources = [source for source, _ in node.inputs] + node.control_inputs
        if node.op in ("Merge", "RefMerge"):
            sources = [s for s in sources if s.op not in ("NextIteration", "RefNextIteration")]
        fresh = [source for source in sources if source.name in nodes]
        waiting[node.name] = len(fresh)
        for source in fresh:
            readers.setdefault(source.name, []).append(node)
    ready = [name for name, count in waiting.items() if count == 0]
    done = 0
    while ready:
        done += 1
        for reader in readers.get(ready.pop(), ()):
            waiting[reader.name] -= 1
            if waiting[reader.name] == 0:
                ready.append(reader.name)
    if done < len(nodes):
        raise InvalidArgumentError(f"{len(nodes) - done} nodes in a cycle")
