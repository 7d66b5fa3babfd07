"""Graphs of variables, divided into the variable-only part and the rest."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.dtypes import DataType
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.graph.passes.variable_only_part import VariableOnlyPart, split_variable_only_part
from runtime.registrations import kernel_registry
from tests.conformance.case import Graph

Tensor = tuple[str, DataType]


class VariableGraph(Graph):
    """A graph with the placeholder `x`, a float vector [2]."""

    def __init__(self) -> None:
        super().__init__()
        self.x = self.placeholder("float32", "x", (2,))

    def handle(self, name: str, node: str = "", **attrs: object) -> Tensor:
        """Add the handle of the variable `name`, a float vector [2]."""
        attrs = {"dtype": "float32", "shape": (2,), "shared_name": name, **attrs}
        return self.add("VarHandleOp", name=node or name, **attrs)[0]

    def read(self, handle: Tensor, name: str, control: Sequence[str] = ()) -> Tensor:
        """Add a read of a variable."""
        return self.add("ReadVariableOp", handle, name=name, dtype="float32", control=control)[0]

    def reference(self, name: str) -> Tensor:
        """Add a VariableV2, whose output is a reference to a float vector [2]."""
        return self.add("VariableV2", name=name, dtype="float32", shape=(2,))[0]


def step_graph(
    graph: Graph, *fetches: str, targets: Sequence[str] = (), feeds: Sequence[str] = ()
) -> tuple[StepGraph, FunctionLibrary]:
    """The optimised graph of a step, and its functions."""
    whole = extend_graph(RuntimeGraph(), graph.graph_def)
    step = prune(whole, feeds, fetches, targets)
    Optimizer().run(step, whole.library, kernel_registry())
    return step, whole.library


def divided(
    graph: Graph, *fetches: str, targets: Sequence[str] = (), feeds: Sequence[str] = ("x:0",)
) -> VariableOnlyPart | None:
    """The step of `fetches` and `targets`, divided."""
    step, library = step_graph(graph, *fetches, targets=targets, feeds=feeds)
    return split_variable_only_part(step, library, kernel_registry())


def names(graph: StepGraph) -> list[str]:
    """The names of the nodes that are no arguments, sorted."""
    return sorted(node.name for node in graph.nodes if node.op != "_Arg")
