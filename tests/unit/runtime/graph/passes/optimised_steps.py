"""Graphs that the optimiser has simplified for a step."""

from __future__ import annotations

import protos as pb
from runtime.framework.dtypes import DataType
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.registrations import kernel_registry
from tests.conformance.case import Graph


def optimised(graph_def: pb.GraphDef, *fetches: str, feeds: tuple[str, ...] = ()) -> StepGraph:
    """The nodes of a step that fetches `fetches`, after the optimiser's passes."""
    graph = extend_graph(RuntimeGraph(), graph_def)
    step = prune(graph, feeds, fetches, ())
    Optimizer().run(step, graph.library, kernel_registry())
    return step


def reached(step: StepGraph) -> list[str]:
    """The ops on which the fetches depend, sorted."""
    seen = set()
    pending = [node for node, _ in step.fetches]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += [source for source, _ in node.inputs] + node.control_inputs
    return sorted(node.op for node in seen)


def placeholder(graph: Graph, dtype: str = "int32") -> tuple[str, DataType]:
    """Add a placeholder `x` to the graph."""
    return graph.placeholder(dtype, "x")
