"""ClusteredPlan: a step plan in which clusters of nodes are single nodes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from runtime.clusters.bounds import MAX_SPLITS
from runtime.clusters.cluster_graph import CLUSTER_KERNEL, clustered_graph, graph_of
from runtime.clusters.cluster_op import CLUSTER_OP
from runtime.clusters.emit_cluster import ClusterGraph
from runtime.clusters.emitters import all_emitters
from runtime.clusters.engine_choice import EngineChoice
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.partition import partition
from runtime.clusters.running.background_cluster import BackgroundCluster, State
from runtime.clusters.running.cluster import Cluster, Evaluate, Split
from runtime.clusters.running.compile_queue import CompileQueue
from runtime.clusters.running.engine import find_engine
from runtime.clusters.running.interrupt import Interrupt
from runtime.executors.step import Step
from runtime.executors.step_plan import StepPlan
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import StepState
from runtime.framework.tensor_value import TensorValue
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import StepGraph

# Makes the kernel of a cluster: (its graph, where its sources are among the derived values, how
# numpy kernels run it, how to split it) → Cluster.
MakeCluster: TypeAlias = Callable[[ClusterGraph, Sequence[int], Evaluate, Split], Cluster]


def emitters_for(kernels: KernelRegistry, library: FunctionLibrary) -> Mapping[str, OpEmitter]:
    """Return the emitters of the ops for which a session has no kernels of its own."""
    custom = kernels.custom_ops
    return {op: row for op, row in all_emitters(library).items() if op not in custom}


def background_plan(
    graph: StepGraph,
    kernels: KernelRegistry,
    library: FunctionLibrary,
    sources: Mapping[Endpoint, int],
    compilations: CompileQueue,
    interrupt: Interrupt,
    settled: Callable[[], object],
    choice: EngineChoice,
) -> ClusteredPlan | None:
    """Return a plan whose clusters are compiled in the background, by the engine of a choice.

    `library` has the functions that the nodes call; `BackgroundCluster` explains the three
    parameters after `sources`. Returns None if there is no engine or no cluster.
    """
    engine = find_engine(choice)
    if engine is None:
        return None
    table = emitters_for(kernels, library)

    def make(
        cluster: ClusterGraph, positions: Sequence[int], evaluate: Evaluate, split: Split
    ) -> Cluster:
        return BackgroundCluster(
            cluster, positions, evaluate, engine, split, table, compilations, interrupt, settled
        )

    plan = ClusteredPlan(graph, kernels, table, make, sources=sources)
    return plan if plan.clusters else None


class ClusteredPlan:
    """The plan of a graph with clusters. `plan` is replaced as a whole when clusters dissolve."""

    def __init__(
        self,
        graph: StepGraph,
        kernels: KernelRegistry,
        table: Mapping[str, OpEmitter],
        make_cluster: MakeCluster,
        *,
        refused: Collection[Node] = (),
        sources: Mapping[Endpoint, int],
        depth: int = 0,
    ) -> None:
        """`sources` are the outputs of arguments that are derived values, with their positions.

        `depth` is the number of clusters around this plan, of which nodes were refused.
        """
        self._graph = graph
        self._kernels = kernels
        self._table = table
        self._make = make_cluster
        self._sources = sources
        self._depth = depth
        # What runs a cluster of which some nodes were refused.
        self._nested: dict[Cluster, ClusteredPlan] = {}
        found = partition(graph, table, refused=refused, sources=sources)
        self.clusters = self._found = tuple(self._cluster(each) for each in found)
        self.plan = self._build()

    def _build(self) -> StepPlan:
        graph = clustered_graph(self._graph, {each.graph: each for each in self.clusters})
        kernels = KernelRegistry([CLUSTER_KERNEL], fallback=self._kernels)
        return StepPlan(graph, kernels, own_error_state=(CLUSTER_OP,))

    def settle(self) -> None:
        """Run the nodes of dissolved clusters as nodes of the plan from now on."""
        for nested in self._nested.values():
            nested.settle()
        kept = tuple(each for each in self.clusters if not self._is_dissolved(each))
        if len(kept) < len(self.clusters):
            self.clusters = kept
            self.plan = self._build()

    def observe_again(self) -> None:
        """Let dissolved clusters run again, as their inputs may have grown; measure them anew."""
        for nested in self._nested.values():
            nested.observe_again()
        for each in self._found:
            if isinstance(each, BackgroundCluster):
                each.observe_again()
        self.clusters = tuple(each for each in self._found if not self._is_dissolved(each))
        self.plan = self._build()

    @property
    def has_dissolved(self) -> bool:
        """Whether nodes of a dissolved cluster run one by one."""
        nested = self._nested.values()
        return len(self.clusters) < len(self._found) or any(each.has_dissolved for each in nested)

    @property
    def all_clusters(self) -> list[Cluster]:
        """The clusters, with those inside of clusters of which nodes were refused."""
        found: list[Cluster] = []
        for each in self.clusters:
            nested = self._nested.get(each)
            found += [each] if nested is None else nested.all_clusters
        return found

    @property
    def written_nodes(self) -> set[Node]:
        """The nodes of the plan's graph that are part of a compiled model."""
        written = [each for each in self.clusters if each.is_compiled and each not in self._nested]
        return {node for each in written for node in each.graph.nodes}

    @property
    def needs_this_process(self) -> bool:
        """Whether a run here uses a model, or shows whether one is worth it."""
        return any(
            each.is_compiled
            or (isinstance(each, BackgroundCluster) and each.state is State.OBSERVED)
            for each in self.all_clusters
        )

    def _is_dissolved(self, cluster: Cluster) -> bool:
        nested = self._nested.get(cluster)
        if nested is not None:
            return not nested.clusters
        return isinstance(cluster, BackgroundCluster) and cluster.state is State.DISSOLVED

    def _cluster(self, cluster: ClusterGraph) -> Cluster:
        graph, copies = graph_of(cluster)
        plan = StepPlan(graph, self._kernels)
        positions = tuple(self._sources[each] for each in cluster.sources)

        def evaluate(step: StepState, inputs: Sequence[TensorValue]) -> Sequence[TensorValue]:
            assert isinstance(step, Step)
            return plan.run(step, _with_sources(step, inputs, positions))

        # Without a cycle of references, an unloaded model is freed at once.
        owner: weakref.ref[ClusteredPlan] = weakref.ref(self)
        made: list[weakref.ref[Cluster]] = []

        def split(reasons: Mapping[Node, str]) -> Evaluate | None:
            whole, cluster_now = owner(), made[0]()
            if whole is None or cluster_now is None or whole._depth >= MAX_SPLITS:
                return None
            nested = whole._without(cluster, graph, [copies[node] for node in reasons])
            whole._nested[cluster_now] = nested

            def evaluate_nested(
                step: StepState, inputs: Sequence[TensorValue]
            ) -> Sequence[TensorValue]:
                assert isinstance(step, Step)
                return nested.plan.run(step, _with_sources(step, inputs, positions))

            return evaluate_nested

        result = self._make(cluster, positions, evaluate, split)
        made.append(weakref.ref(result))
        return result

    def _without(
        self, cluster: ClusterGraph, graph: StepGraph, refused: Collection[Node]
    ) -> ClusteredPlan:
        """Return a plan for the graph of a cluster, whose clusters have no refused node."""
        arguments = graph.arguments[len(cluster.inputs) :]
        sources = {
            (argument, 0): self._sources[source]
            for argument, source in zip(arguments, cluster.sources, strict=True)
            if argument is not None
        }
        return ClusteredPlan(
            graph,
            self._kernels,
            self._table,
            self._make,
            refused=refused,
            sources=sources,
            depth=self._depth + 1,
        )


def _with_sources(
    step: Step, inputs: Sequence[TensorValue], positions: Sequence[int]
) -> Sequence[TensorValue]:
    """Return the arguments of a cluster's graph: its inputs, then its sources."""
    if not positions:
        return inputs
    assert step.derived is not None
    return [*inputs, *map(step.derived.values.__getitem__, positions)]
