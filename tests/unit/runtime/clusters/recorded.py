"""The recorded conformance cases as models of the engine.

A case can be a model if the table has emitters of all its ops. Inputs that must be constants are
made Const; the other placeholders are inputs of the model.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

import protos as pb
from runtime.clusters.backend import CompiledModel
from runtime.clusters.dimensions import Shape
from runtime.clusters.emission import ONNX_TYPES
from runtime.clusters.emit_cluster import ClusterGraph, RefusedError, emit_cluster
from runtime.clusters.emitters import EMITTERS
from runtime.clusters.model_proto import serialize
from runtime.clusters.rows import row_inputs
from runtime.foundation.errors import OpError
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.node import Node
from runtime.graph.passes.pruning import prune
from runtime.graph.topology import topological_order
from tests.conformance.case import Answer, Case, cases_of, families, read_golden
from tests.unit.runtime.clusters.emitted import batched


@dataclasses.dataclass(frozen=True)
class RecordedCase:
    """A case that can be a model, and TensorFlow's answer."""

    family: str
    case: Case
    answer: Answer

    @property
    def ops(self) -> set[str]:
        """The ops of its nodes, other than placeholders and constants."""
        return _ops(self.case)


@functools.cache
def recorded_cases() -> tuple[RecordedCase, ...]:
    """All recorded cases whose ops have emitters."""
    found = []
    for family in families():
        golden = read_golden(family)
        for case in cases_of(family):
            is_plain = len(case.steps) == 1 and not case.graph.library.function
            ops = _ops(case)
            if is_plain and ops and ops <= EMITTERS.keys() and case.name in golden:
                found.append(RecordedCase(family, case, golden[case.name][1][0]))
    return tuple(found)


def _ops(case: Case) -> set[str]:
    return {node.op for node in case.graph.node} - {"Placeholder", "Const"}


@dataclasses.dataclass(frozen=True)
class FedModel:
    """A compiled model, its inputs, and which of these have rows."""

    model: CompiledModel
    arrays: list[np.ndarray]
    rows: tuple[bool, ...] | None

    def run(self) -> list[np.ndarray]:
        """Return the outputs; raise the engine's error, after which numpy would run the cluster."""
        return self.model.run(self.arrays)


def model_of(recorded: RecordedCase, is_batch_symbolic: bool) -> FedModel | None:
    """Return the model of a case, None if its nodes can't be written."""
    case = recorded.case
    feeds = {name if ":" in name else f"{name}:0": v for name, v in case.steps[0].feeds.items()}
    graph_def = _with_constants(case.graph, feeds)
    try:
        graph = extend_graph(Graph(), graph_def)
        step_graph = prune(graph, list(feeds), case.steps[0].fetches, [])
    except OpError:
        return None
    nodes = tuple(each for each in topological_order(step_graph.nodes) if each.op != "_Arg")
    pairs = list(zip(step_graph.arguments, feeds.values(), strict=True))
    read = [(node, np.asarray(array)) for node, array in pairs if node is not None]
    if not all(_is_taken(node) for node in nodes):
        return None
    inputs = tuple((node, 0) for node, _ in read)
    # The symbol stands for one size in all inputs.
    is_batch_symbolic &= len({array.shape[0] for _, array in read if array.ndim}) == 1
    shapes: list[Shape] = [
        batched(array.shape) if is_batch_symbolic else array.shape for _, array in read
    ]
    cluster = ClusterGraph(nodes, inputs, (), tuple(step_graph.fetches))
    try:
        made = emit_cluster(cluster, shapes, [])
    except RefusedError:
        return None
    model = CompiledModel(serialize(made, is_baked=True), threads=1)
    return FedModel(model, [array for _, array in read], row_inputs(made))


def _with_constants(graph: pb.GraphDef, feeds: dict[str, np.ndarray]) -> pb.GraphDef:
    """Return the graph with operands that must be constants as Const; take these from `feeds`."""
    changed = pb.GraphDef()
    changed.CopyFrom(graph)
    wanted = {
        node.input[index]
        for node in graph.node
        if node.op in EMITTERS
        for index in EMITTERS[node.op].constants
        if -len(node.input) <= index < len(node.input)
    }
    for node in changed.node:
        for name in (node.name, f"{node.name}:0"):
            if node.op == "Placeholder" and name in wanted and f"{node.name}:0" in feeds:
                value = tensor_to_proto(np.asarray(feeds.pop(f"{node.name}:0")))
                node.op = "Const"
                node.attr.clear()
                node.attr["dtype"].type = value.dtype
                node.attr["value"].tensor.CopyFrom(value)
    return changed


def _is_taken(node: Node) -> bool:
    types = [source.output_types[index] for source, index in node.inputs]
    if any(each not in ONNX_TYPES or each is DataType.BFLOAT16 for each in types):
        return False
    return node.op == "Const" or EMITTERS[node.op].takes(node)
