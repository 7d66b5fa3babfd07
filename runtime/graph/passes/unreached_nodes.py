"""Removal of nodes that neither results nor side effects need: those of inlined bodies, mostly."""

from __future__ import annotations

from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph

_HANDLE_OPS = frozenset(("VarHandleOp",))  # stateful by signature, without a side effect


def remove_unreached_nodes(graph: StepGraph) -> None:
    """Keep the ancestors of fetches, targets and stateful nodes, and the arguments, in place."""
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
