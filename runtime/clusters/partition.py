"""Partition: chooses the clusters of a step's graph. Pure; the result depends on the graph only.

The *level* of a node is the number of changes between supported and unsupported nodes on the
longest path to it. A path that leaves a set of supported nodes of one level and comes back would
lead to a higher level, so such a set is convex: it can run as one node. The supported nodes of one
level that are connected become one cluster.

Data edges, control edges and the order of nodes that use one resource count as edges. Constants
belong to every cluster that reads them. A control edge between nodes without effects orders nothing
that can be seen, so it is left out. A tensor list never leaves its cluster (`list_edges`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from runtime.clusters.bounds import MAX_NODES
from runtime.clusters.declared_types import has_declared_types
from runtime.clusters.emission import ONNX_TYPES
from runtime.clusters.emit_cluster import ClusterGraph
from runtime.clusters.loops.list_edges import LIST_TYPE, ListEdges
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.resource_order import has_effect, order_edges
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import is_loop_node, topological_order

# Ops whose outputs are sizes. What is computed from these and constants alone is known at emission.
_SIZE_OPS = frozenset(("Shape", "ShapeN", "Size", "Rank"))


def partition(
    graph: StepGraph,
    table: Mapping[str, OpEmitter],
    *,
    refused: Collection[Node] = (),
    sources: Collection[Endpoint] = (),
) -> list[ClusterGraph]:
    """Return the clusters of `graph` that the emitters of `table` can write, in a valid order.

    `refused` are nodes that no cluster may have. A cluster of more than MAX_NODES is left out, and
    one of which nothing is read: other nodes only wait for it, and a model has outputs.
    `sources` are outputs of argument nodes whose values follow from variables. The graph is not
    changed.
    """
    ordered = topological_order(graph.nodes)
    edges = dependencies(ordered)
    supported = _supported(ordered, table, refused)
    lists = ListEdges(graph)
    lists.remove_open(supported)
    levels = lists.levelled(_levels(ordered, edges, supported))
    while not lists.is_closed(supported, levels):
        levels = lists.levelled(_levels(ordered, edges, supported))
    groups = _connected(ordered, supported, levels)
    readers = _outside_readers(graph, groups)
    clusters = (
        _cluster(graph, group, readers, sources) for group in groups if len(group) <= MAX_NODES
    )
    return [each for each in clusters if each.outputs]


def refusals(graph: StepGraph, table: Mapping[str, OpEmitter]) -> dict[Node, str]:
    """Return why nodes can be in no cluster, as far as each of them alone tells."""
    reasons: dict[Node, str] = {}
    _supported(topological_order(graph.nodes), table, (), reasons)
    return reasons


def dependencies(ordered: Sequence[Node]) -> dict[Node, list[Node]]:
    """Return, for each node, the nodes that must run before it; Const nodes are left out."""
    effects = _effects_behind(ordered)
    in_order = order_edges(ordered)
    edges: dict[Node, list[Node]] = {}
    for node in ordered:
        before = dict.fromkeys(_data_sources(node))
        before |= dict.fromkeys(in_order.get(node, ()))
        before |= dict.fromkeys(visible_control_inputs(node, effects))
        edges[node] = list(before)
    return edges


def visible_control_inputs(node: Node, effects: Mapping[Node, bool]) -> list[Node]:
    """Return the control inputs of `node`, and of constants it reads, that order an effect."""
    controls = list(node.control_inputs)
    for source, _ in node.inputs:
        if source.op == "Const":
            controls += source.control_inputs
    if has_effect(node) or node.op == "NoOp":
        return controls
    return [control for control in controls if effects.get(control, True)]


def _data_sources(node: Node) -> list[Node]:
    return [source for source, _ in node.inputs if source.op != "Const"]


def _effects_behind(ordered: Sequence[Node]) -> dict[Node, bool]:
    """Return for each node whether it, or if it is a NoOp a node that it waits for, has effects."""
    effects: dict[Node, bool] = {}
    for node in ordered:
        if node.op == "NoOp":
            effects[node] = any(effects.get(control, True) for control in node.control_inputs)
        else:
            effects[node] = has_effect(node)
    return effects


def effects_of(graph: StepGraph) -> dict[Node, bool]:
    """Return for each node of a graph whether waiting for it means waiting for an effect."""
    return _effects_behind(topological_order(graph.nodes))


def _supported(
    ordered: Sequence[Node],
    table: Mapping[str, OpEmitter],
    refused: Collection[Node],
    reasons: dict[Node, str] | None = None,
) -> set[Node]:
    """Return the nodes that emitters can write; `reasons` gets why they can't write the others."""
    supported: set[Node] = set()
    sizes: set[Node] = set()  # nodes whose outputs are known at emission
    dead: set[Node] = set()  # nodes that may get dead values
    for node in ordered:
        if is_loop_node(node) or any(source in dead for source, _ in node.inputs):
            dead.add(node)
            reason = "it is in a loop or condition of version 1, which no cluster may have"
        elif node.op == "Const":
            continue
        else:
            known = [source.op == "Const" or source in sizes for source, _ in node.inputs]
            reason = _refusal(node, table.get(node.op), known, refused)
        if reason:
            if reasons is not None:
                reasons[node] = reason
            continue
        supported.add(node)
        if node.op in _SIZE_OPS or (known and all(known)):
            sizes.add(node)
    return supported


def _refusal(
    node: Node, row: OpEmitter | None, known: Sequence[bool], refused: Collection[Node]
) -> str:
    """Return why no cluster may have `node`, or "" if one may.

    `known` is, for each input, whether its value is known at emission.
    """
    if row is None:
        return "no emitter writes it for the engine"
    if node in refused:
        return "its emission was refused"
    if not _has_model_types(node, row.uses_lists) or not has_declared_types(node):
        return "the engine does not have the type of an input or output"
    if not row.takes(node):
        return "the emitter does not take its attributes or inputs"
    if not all(known[i] for i in row.constants if i < len(known)):
        return "an input that must be constant is computed by each run"
    return ""


def _has_model_types(node: Node, uses_lists: bool) -> bool:
    allowed = ONNX_TYPES.keys() | {LIST_TYPE} if uses_lists else ONNX_TYPES.keys()
    types = [source.output_types[index] for source, index in node.inputs]
    return (
        not node.missing_inputs
        and not any(node.output_is_ref)
        and not any(source.output_is_ref[index] for source, index in node.inputs)
        and allowed >= {*types, *node.output_types}
    )


def _levels(
    ordered: Sequence[Node], edges: Mapping[Node, Sequence[Node]], supported: set[Node]
) -> dict[Node, int]:
    """Return the level of each node: odd for supported nodes, even for the others."""
    levels: dict[Node, int] = {}
    for node in ordered:
        level = parity = int(node in supported)
        for source in edges[node]:
            # The back edges of loops come from nodes that have no level yet.
            below = levels.get(source, 0)
            level = max(level, below + (below % 2 != parity))
        levels[node] = level
    return levels


def _connected(
    ordered: Sequence[Node], supported: set[Node], levels: Mapping[Node, int]
) -> list[list[Node]]:
    """Return the groups of supported nodes of one level that data edges connect, by level."""
    parents: dict[Node, Node] = {node: node for node in ordered if node in supported}

    def root(node: Node) -> Node:
        while parents[node] is not node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for node in parents:
        for source in _data_sources(node):
            if source in parents and levels[source] == levels[node]:
                parents[root(node)] = root(source)
    groups: dict[Node, list[Node]] = {}
    for node in parents:
        groups.setdefault(root(node), []).append(node)
    return sorted(groups.values(), key=lambda group: levels[group[0]])


def _outside_readers(graph: StepGraph, groups: Iterable[Sequence[Node]]) -> set[Endpoint]:
    """Return the outputs of grouped nodes that a node of another group, or none, reads."""
    group_of = {node: number for number, group in enumerate(groups) for node in group}
    read = {
        endpoint
        for node in graph.nodes
        for endpoint in node.inputs
        if group_of.get(endpoint[0]) != group_of.get(node, -1)
    }
    return read | set(graph.fetches)


def _cluster(
    graph: StepGraph,
    group: Sequence[Node],
    readers: Collection[Endpoint],
    sources: Collection[Endpoint],
) -> ClusterGraph:
    members = set(group)
    constants: dict[Node, None] = {}
    inputs: dict[Endpoint, None] = {}
    for node in group:
        for endpoint in node.inputs:
            if endpoint[0].op == "Const":
                constants[endpoint[0]] = None
            elif endpoint[0] not in members:
                inputs[endpoint] = None
    return ClusterGraph(
        (*constants, *group),
        tuple(each for each in inputs if each not in sources),
        tuple(each for each in inputs if each in sources),
        tuple(
            (node, index)
            for node in group
            for index in range(len(node.output_types))
            if (node, index) in readers
        ),
    )
