"""Keeps the tensor lists of loops inside of clusters, because no model takes or gives a list.

TensorListFromTensor and TensorListReserve often have a lower level than the loop that reads them;
they may wait until the loop runs, since nothing else reads a list.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.topology import topological_order

LIST_TYPE = DataType.VARIANT


class ListEdges:
    """The edges of a graph that carry lists."""

    def __init__(self, graph: StepGraph) -> None:
        self._readers: dict[Node, list[Node]] = {}  # node → nodes that read a list of it
        self._sources: dict[Node, list[Node]] = {}
        self._read_by: dict[Node, list[Node]] = {}  # maker of a list → nodes that read any output
        fetched = {node for node, index in graph.fetches if node.output_types[index] is LIST_TYPE}
        self._fetched = fetched
        for node in graph.nodes:
            for source, index in node.inputs:
                if source.output_types[index] is LIST_TYPE:
                    self._readers.setdefault(source, []).append(node)
                    self._sources.setdefault(node, []).append(source)
        if not self._readers:
            return
        for node in graph.nodes:
            for source in (*(each for each, _ in node.inputs), *node.control_inputs):
                if source in self._readers:
                    self._read_by.setdefault(source, []).append(node)
        self._makers = [each for each in topological_order(graph.nodes) if each in self._readers]

    def remove_open(self, supported: set[Node]) -> None:
        """Remove nodes of which a list comes from, or goes to, a node that is not supported."""
        pending = [
            node
            for node in (*self._readers, *self._sources, *self._fetched)
            if node in self._fetched or not self._neighbours(node) <= supported
        ]
        while pending:
            node = pending.pop()
            if node in supported:
                supported.remove(node)
                pending += self._neighbours(node)

    def levelled(self, levels: dict[Node, int]) -> dict[Node, int]:
        """Return the levels after makers of lists wait for their readers, where they can."""
        if not self._readers:
            return levels
        for node in reversed(self._makers):
            level = min(levels[reader] for reader in self._read_by[node])
            if levels[node] % 2 == level % 2:
                levels[node] = max(levels[node], level)
        return levels

    def is_closed(self, supported: set[Node], levels: Mapping[Node, int]) -> bool:
        """Return whether each list stays in one level; otherwise remove nodes from `supported`."""
        crossing = {
            node
            for node, readers in self._readers.items()
            if node in supported and any(levels[each] != levels[node] for each in readers)
        }
        supported -= crossing
        self.remove_open(supported)
        return not crossing

    def _neighbours(self, node: Node) -> set[Node]:
        return {*self._readers.get(node, ()), *self._sources.get(node, ())}
