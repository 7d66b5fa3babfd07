"""The clustered executor: a step plan in which clusters of expensive nodes run on an engine."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence

import protos as pb
from runtime.clusters.cluster import Cluster, Evaluate
from runtime.clusters.cluster_graph import CLUSTER_KERNEL, clustered_graph, graph_of
from runtime.clusters.emit_cluster import ClusterGraph
from runtime.clusters.emitters import EMITTERS
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.partition import partition
from runtime.executors.adaptive import AdaptiveExecutor
from runtime.executors.compiler import ExecutorFactory, FunctionExecutors
from runtime.executors.step import Executor, Step
from runtime.executors.step_plan import StepPlan
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import StepState
from runtime.framework.tensor_value import TensorValue
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.pruning import StepGraph


class ClusteredPlan:
    """A step plan whose clusters are single nodes."""

    def __init__(
        self,
        graph: StepGraph,
        kernels: KernelRegistry,
        table: Mapping[str, OpEmitter] = EMITTERS,
        *,
        refused: Collection[Node] = (),
        sources: Collection[Endpoint] = (),
    ) -> None:
        self._kernels = kernels
        self._table = table
        found = partition(graph, table, refused=refused, sources=sources)
        self.clusters = [self._cluster(each) for each in found]
        with_clusters = clustered_graph(graph, {each.graph: each for each in self.clusters})
        self.plan = StepPlan(with_clusters, KernelRegistry([CLUSTER_KERNEL], fallback=kernels))

    def _cluster(self, cluster: ClusterGraph) -> Cluster:
        graph, originals = graph_of(cluster)
        plan = StepPlan(graph, self._kernels)
        copies = {node: copy for copy, node in originals.items()}
        first_source = len(cluster.inputs)
        sources = [(node, 0) for node in graph.arguments[first_source:] if node is not None]

        def split(reasons: Mapping[Node, str]) -> Evaluate:
            inner = [copies[node] for node in reasons]
            nested = ClusteredPlan(
                graph, self._kernels, self._table, refused=inner, sources=sources
            )
            return evaluation(nested.plan)

        return Cluster(cluster, evaluation(plan), split, self._table)


def evaluation(plan: StepPlan) -> Evaluate:
    """Return `plan.run` as a kernel calls it, whose context knows no more than a StepState."""

    def evaluate(step: StepState, values: Sequence[TensorValue]) -> Sequence[TensorValue]:
        assert isinstance(step, Step)
        return plan.run(step, values)

    return evaluate


class ForcedClusters(Executor):
    """An executor whose clusters are compiled in the foreground when they run for the first time.

    It is for tests: nothing is too small for it, and a model that can't be compiled is an error.
    """

    may_block = False

    def __init__(
        self, graph: StepGraph, kernels: KernelRegistry, table: Mapping[str, OpEmitter]
    ) -> None:
        super().__init__(graph)
        self.clustered = ClusteredPlan(graph, kernels, table)

    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run the plan with clusters."""
        return self.clustered.plan.run(step, arguments)


class ClusterMode(enum.Enum):
    """The values of `SessionOptions.clusters`."""

    AUTO = "auto"
    OFF = "off"
    FORCE = "force"


def cluster_mode(clusters: str, config: pb.ConfigProto) -> ClusterMode:
    """Return the mode of a session; raise InvalidArgumentError if the value `clusters` is unknown.

    With the optimiser at level L0 clusters are off.
    """
    known = {mode.value: mode for mode in ClusterMode}
    if clusters not in known:
        raise InvalidArgumentError(
            f"SessionOptions.clusters is {clusters!r}; expected one of {', '.join(known)}"
        )
    if config.graph_options.optimizer_options.opt_level == pb.OptimizerOptions.L0:
        return ClusterMode.OFF
    return known[clusters]


def with_clusters(build: ExecutorFactory, mode: ClusterMode) -> ExecutorFactory:
    """Return a factory whose step plans have clusters, as `mode` says.

    Ops for which a session has kernels of its own are not written as operations of a model.
    """
    if mode is not ClusterMode.FORCE:
        return build

    def build_clustered(
        graph: StepGraph, kernels: KernelRegistry, functions: FunctionExecutors
    ) -> Executor:
        executor = build(graph, kernels, functions)
        if not isinstance(executor, StepPlan | AdaptiveExecutor):
            return executor
        custom = kernels.custom_ops
        table = {op: row for op, row in EMITTERS.items() if op not in custom}
        return ForcedClusters(graph, kernels, table)

    return build_clustered
