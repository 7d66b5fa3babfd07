"""Forced clusters: a step plan whose clusters are compiled when they first run. For tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runtime.clusters.emit_cluster import ClusterGraph
from runtime.clusters.engine_choice import EngineChoice
from runtime.clusters.running.cluster import Cluster, Evaluate, Split
from runtime.clusters.running.cluster_counts import ClusterSummary
from runtime.clusters.running.engine import find_engine
from runtime.clusters.running.forced_cluster import ForcedCluster
from runtime.executors.clustered_plan import ClusteredPlan, emitters_for
from runtime.executors.step import Executor, Step
from runtime.foundation.errors import FailedPreconditionError
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.tensor_value import TensorValue
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Endpoint


class ForcedClusters(Executor):
    """An executor whose clusters are compiled in the foreground when they run for the first time.

    It is for tests: nothing is too small for it, and a model that can't be compiled is an error.
    """

    may_block = False

    def __init__(
        self,
        plain: Executor,
        kernels: KernelRegistry,
        sources: Mapping[Endpoint, int],
        library: FunctionLibrary,
        choice: EngineChoice,
    ) -> None:
        """Raises FailedPreconditionError without an engine."""
        super().__init__(plain.graph)
        engine = find_engine(choice)
        if engine is None:
            raise FailedPreconditionError("Clusters are forced, but there is no engine")
        self._plain = plain
        table = emitters_for(kernels, library)

        def make(
            cluster: ClusterGraph, positions: Sequence[int], evaluate: Evaluate, split: Split
        ) -> Cluster:
            return ForcedCluster(cluster, positions, evaluate, engine, split, table)

        self.clustered = ClusteredPlan(plain.graph, kernels, table, make, sources=sources)

    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run the plan with clusters, or the plain executor if the step is traced."""
        if step.collector is not None:
            return self._plain.run(step, arguments)
        return self.clustered.plan.run(step, arguments)

    @property
    def clusters(self) -> list[ClusterSummary]:
        """The clusters of the step."""
        return [each.summary for each in self.clustered.all_clusters]
