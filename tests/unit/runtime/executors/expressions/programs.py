"""Programs of small graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from runtime.executors.instructions import Program, assemble
from runtime.executors.step_plan import StepPlan
from runtime.graph.graph import Graph as RuntimeGraph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.registrations import kernel_registry
from tests.conformance.case import Graph

Endpoint: TypeAlias = tuple[Any, ...]


def step_graph_of(graph: Graph, feeds: Sequence[str], fetches: Sequence[str]) -> StepGraph:
    return prune(extend_graph(RuntimeGraph(), graph.graph_def), feeds, fetches, [])


def program_of(graph: Graph, feeds: Sequence[str], fetches: Sequence[str]) -> Program:
    return assemble(step_graph_of(graph, feeds, fetches), kernel_registry())


def plan_of(graph: Graph, feeds: Sequence[str], fetches: Sequence[str]) -> StepPlan:
    return StepPlan(step_graph_of(graph, feeds, fetches), kernel_registry())
