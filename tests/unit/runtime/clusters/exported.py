"""Emits the signature of an exported SavedModel as one cluster.

What depends on variables and constants only is computed by the numpy kernels and is a source of
the cluster.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import numpy as np

from runtime.clusters.emit_cluster import ClusterGraph, emit_cluster
from runtime.executors.step import Step
from runtime.executors.step_plan import StepPlan
from runtime.framework.cancellation import CancellationManager
from runtime.framework.io.file_gate import AllowAll
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.graph.topology import topological_order
from runtime.registrations import kernel_registry
from runtime.saved_model.loader import SavedModelBundle, load_saved_model
from runtime.sessions.direct.direct_session import DirectSession
from runtime.sessions.direct.kernel_states import KernelStates
from runtime.sessions.session_options import SessionOptions
from tests.unit.runtime.clusters.emitted import Emitted, batched


def exported(
    path: pathlib.Path,
    feeds: Mapping[str, np.ndarray],
    signature: str = "serving_default",
    output: str | None = None,
) -> Emitted:
    """Emit a signature; `feeds` are by the names of its inputs, with a symbolic axis 0.

    The fetches are all outputs of the signature, or `output` alone.
    """
    bundle = load_saved_model(SessionOptions(), None, str(path), ["serve"])
    try:
        return _emitted(bundle, feeds, signature, output)
    finally:
        bundle.session.close()


def _emitted(
    bundle: SavedModelBundle, feeds: Mapping[str, np.ndarray], signature: str, output: str | None
) -> Emitted:
    session = bundle.session
    assert isinstance(session, DirectSession)
    graph = extend_graph(Graph(), bundle.meta_graph_def.graph_def)
    wanted = bundle.signatures[signature]
    given = {wanted.inputs[name].name: array for name, array in feeds.items()}
    names = [output] if output else sorted(wanted.outputs)
    step_graph = prune(graph, list(given), [wanted.outputs[name].name for name in names], [])
    Optimizer().run(step_graph, graph.library, kernel_registry())
    state = KernelStates(session.resources, "test", [])

    def run(part: StepGraph, arrays: list[np.ndarray]) -> list[np.ndarray]:
        step = Step(state, CancellationManager(), AllowAll(), None)
        return [np.asarray(each) for each in StepPlan(part, kernel_registry()).run(step, arrays)]

    cluster = _divided(step_graph)
    sources = run(StepGraph(_ancestors(cluster.sources), [], list(cluster.sources), []), [])
    shapes = [batched(array.shape) for array in given.values()]
    made = emit_cluster(cluster, shapes, sources)
    reference = run(step_graph, list(given.values()))
    weights = {str(index): array for index, array in enumerate(sources)}
    return Emitted(made, given, weights, lambda: reference)


def _divided(graph: StepGraph) -> ClusterGraph:
    """Return the part that depends on arguments, and its edges from the part that does not."""
    arguments = tuple((node, 0) for node in graph.arguments if node is not None)
    ordered = topological_order(graph.nodes)
    fed: set[Node] = {node for node, _ in arguments}
    for node in ordered:
        if any(source in fed for source, _ in node.inputs):
            fed.add(node)
    nodes = [node for node in ordered if node in fed and node.op != "_Arg"]
    edges = dict.fromkeys(
        endpoint for node in nodes for endpoint in node.inputs if endpoint[0] not in fed
    )
    constants = [endpoint for endpoint in edges if endpoint[0].op == "Const"]
    sources = tuple(endpoint for endpoint in edges if endpoint[0].op != "Const")
    return ClusterGraph(
        tuple(dict.fromkeys([*(node for node, _ in constants), *nodes])),
        arguments,
        sources,
        tuple(graph.fetches),
    )


def _ancestors(endpoints: tuple[Endpoint, ...]) -> list[Node]:
    found: dict[Node, None] = {}
    waiting = [node for node, _ in endpoints]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += [source for source, _ in node.inputs] + node.control_inputs
    return list(found)
