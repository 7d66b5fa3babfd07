"""Which nodes of a model's signatures an engine can compute, as far as the graph alone tells.

A node may still stay on numpy kernels: emission refuses some once shapes are known, and small
clusters are not worth compiling.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator

import protos as pb
from runtime.clusters.emitters import EMITTERS
from runtime.clusters.engine_choice import OPENVINO
from runtime.clusters.partition import partition, refusals
from runtime.clusters.running.engine import describe_engine, find_engine
from runtime.executors.compiler import FunctionExecutors
from runtime.framework.kernel_registry import KernelRegistry
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.registrations import kernel_registry
from runtime.saved_model.tensor_infos import tensor_names

# What a plan runs without an instruction.
_FREE_OPS = frozenset(("_Arg", "Const", "NoOp"))
_OF_GROUP = "a cluster with it would be too large, or a tensor list would leave it"


@dataclasses.dataclass(frozen=True, slots=True)
class SignatureClusters:
    """The clusters of the step that a signature runs, and what stays on kernels around them."""

    signature: str
    nodes: tuple[int, ...]  # of each cluster, largest first
    outside: dict[str, int]  # op → number of nodes
    reasons: dict[tuple[str, str], int]  # (op, why it is outside) → number of nodes


def engine_name() -> str:
    """Return the name and version of the engine, or "" if there is none that fits."""
    engine = find_engine()
    return "" if engine is None else engine.name


def describe_openvino() -> str:
    """Return what the engine openvino would compute with here, or "" if it is not installed."""
    return describe_engine(OPENVINO)


def report_clusters(meta_graph_def: pb.MetaGraphDef) -> Iterator[SignatureClusters]:
    """Yield the clusters of each signature whose inputs and outputs are tensors.

    Raises what `extend_graph` and `prune` raise.
    """
    kernels = kernel_registry()
    graph = extend_graph(Graph(), meta_graph_def.graph_def)
    for name, signature in sorted(meta_graph_def.signature_def.items()):
        feeds = tensor_names(signature.inputs.values())
        fetches = [each for each in tensor_names(signature.outputs.values()) if each not in feeds]
        if name.startswith("__saved_model") or not fetches:
            continue
        step = prune(graph, sorted(set(feeds)), sorted(set(fetches)), [])
        yield _report(name, _rest_of(step, graph, kernels))


def _rest_of(step: StepGraph, graph: Graph, kernels: KernelRegistry) -> StepGraph:
    """Return what every run of the step computes: not what follows from variables only."""
    functions = FunctionExecutors(graph.library, kernels, Optimizer())
    functions.transform(step)
    split = functions.split(step)
    return step if split is None else split.rest


def _report(name: str, step: StepGraph) -> SignatureClusters:
    clusters = partition(step, EMITTERS)
    inside = {node for cluster in clusters for node in cluster.nodes}
    outside = [node for node in step.nodes if node not in inside and node.op not in _FREE_OPS]
    why = refusals(step, EMITTERS)
    sizes = (sum(node.op != "Const" for node in cluster.nodes) for cluster in clusters)
    return SignatureClusters(
        name,
        tuple(sorted(sizes, reverse=True)),
        dict(sorted(collections.Counter(node.op for node in outside).items())),
        dict(sorted(collections.Counter((n.op, why.get(n, _OF_GROUP)) for n in outside).items())),
    )
