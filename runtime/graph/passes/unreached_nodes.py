"""Removal of nodes that neither results nor side effects need; most are from inlined bodies."""

from __future__ import annotations

from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph

_HANDLE_OPS = frozenset(("VarHandleOp",))  # ops that are declared stateful but have no side effect


def remove_unreached_nodes(graph: StepGraph) -> None:
    """Change `graph`: remove the nodes on which no fetch, target or stateful node depends.

    The arguments are kept.
    """
    reached: set[Node] = set()
    pending = [node for node, _ in graph.fetches] + graph.targets
    pending += [
        node for node in graph.nodes if node.info.is_stateful and node.op not in _HANDLE_OPS
    ]
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending += [source for source, _ in node.inputs]
            pending += node.control_inputs
    arguments = set(graph.arguments)
    graph.nodes = [node for node in graph.nodes if node in reached or node in arguments]
