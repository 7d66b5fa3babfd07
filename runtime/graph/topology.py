"""Topological order of nodes.

TF: tensorflow/core/graph/algorithm.h (GetReversePostOrder)
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from runtime.foundation.errors import InvalidArgumentError
from runtime.graph.node import Node

_LOOP_OPS = frozenset(
    ("Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond",
     "Switch", "RefSwitch", "Merge", "RefMerge", "_SwitchN")
)  # fmt: skip

_MERGE_OPS = frozenset(("Merge", "RefMerge"))
_NEXT_ITERATION_OPS = frozenset(("NextIteration", "RefNextIteration"))


def is_loop_node(node: Node) -> bool:
    """Return whether the op of `node` is one of v1 control flow, such as Switch or Enter.

    Passes must not move nodes across such a node.
    """
    return node.op in _LOOP_OPS


def has_back_edge(nodes: Iterable[Node]) -> bool:
    """Return whether there is a loop of v1 control flow, whose nodes are in a reference cycle."""
    return any(node.op in _NEXT_ITERATION_OPS for node in nodes)


def topological_order(nodes: Sequence[Node]) -> list[Node]:
    """Return `nodes` sorted so that each follows its data and control inputs.

    If several nodes can be next, the first of them in `nodes` is. The back edges of loops, from
    NextIteration to Merge, are ignored. Raises InvalidArgumentError if there is any other cycle.
    """
    if _is_ordered(nodes):
        return list(nodes)
    position = {node: index for index, node in enumerate(nodes)}
    waiting = [0] * len(nodes)
    readers: list[list[int]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        sources = {source for source, _ in node.inputs}
        if node.op in _MERGE_OPS:
            sources = {source for source in sources if source.op not in _NEXT_ITERATION_OPS}
        sources.update(node.control_inputs)
        waiting[index] = len(sources)
        for source in sources:
            readers[position[source]].append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    order: list[Node] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(nodes[index])
        for reader in readers[index]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, reader)
    if len(order) < len(nodes):
        raise InvalidArgumentError(f"{len(nodes) - len(order)} nodes in a cycle")
    return order


def _is_ordered(nodes: Sequence[Node]) -> bool:
    """Return whether every node follows its data and control inputs.

    The back edges of loops, from NextIteration to Merge, are ignored.
    """
    seen: set[Node] = set()
    for node in nodes:
        for source, _ in node.inputs:
            if source not in seen and not _is_back_edge(source, node):
                return False
        for control in node.control_inputs:
            if control not in seen:
                return False
        seen.add(node)
    return True


def _is_back_edge(source: Node, node: Node) -> bool:
    return node.op in _MERGE_OPS and source.op in _NEXT_ITERATION_OPS
