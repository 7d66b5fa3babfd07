"""Clustered executors: step plans whose expensive parts an engine computes.

A step begins with its plain executor. After a few runs its duration tells whether clusters may be
worth it. If so, the queue's thread makes a clustered plan, whose clusters are measured, compiled or
dissolved one by one (`background_cluster.py`); a step that is not worth it keeps its plain executor
with nothing around it.
"""

from __future__ import annotations

import enum
import functools
import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence

import protos as pb
from runtime.clusters.emit_cluster import ClusterGraph
from runtime.clusters.emitters import emitters_for
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.running.background_cluster import BackgroundCluster, State
from runtime.clusters.running.cluster import Cluster, Evaluate, Split
from runtime.clusters.running.cluster_counts import ClusterSummary
from runtime.clusters.running.compile_queue import CompileQueue, Interrupt, compile_queue
from runtime.clusters.running.engine import find_engine
from runtime.clusters.running.forced_cluster import ForcedCluster
from runtime.executors.adaptive import AdaptiveExecutor
from runtime.executors.clustered_plan import ClusteredPlan
from runtime.executors.derived_executor import Clustering, without_clusters
from runtime.executors.step import Done, Executor, Step
from runtime.executors.step_plan import StepPlan
from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.tensor_value import TensorValue
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Endpoint

WORTH_SECONDS = 60e-6  # a step that takes less on numpy kernels is never clustered
# The first run of a plan interprets it, the second writes its code, the third warms caches.
_WARM_UP_RUNS = 2
_DECIDING_RUN = 4


class ForcedClusters(Executor):
    """An executor whose clusters are compiled in the foreground when they run for the first time.

    It is for tests: nothing is too small for it, and a model that can't be compiled is an error.
    """

    may_block = False

    def __init__(
        self,
        plain: Executor,
        kernels: KernelRegistry,
        table: Mapping[str, OpEmitter],
        sources: Mapping[Endpoint, int],
    ) -> None:
        super().__init__(plain.graph)
        self._plain = plain

        def make(
            cluster: ClusterGraph, positions: Sequence[int], evaluate: Evaluate, split: Split
        ) -> Cluster:
            return ForcedCluster(cluster, positions, evaluate, split, table)

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


class ClusteredExecutor(Executor):
    """Begins with the executor `plain`, and changes to a clustered plan if that is worth it.

    Guarantees: thread-safe; each run uses one of the two from its beginning to its end.
    """

    may_block = False

    def __init__(
        self,
        plain: StepPlan | AdaptiveExecutor,
        kernels: KernelRegistry,
        table: Mapping[str, OpEmitter],
        sources: Mapping[Endpoint, int],
        compilations: CompileQueue = compile_queue,
    ) -> None:
        super().__init__(plain.graph)
        self.clustered: ClusteredPlan | None = None
        self._plain = plain
        self._kernels = kernels
        self._table = table
        self._sources = sources
        self._queue = compilations
        self._interrupt = Interrupt()
        weakref.finalize(self, self._interrupt.set).atexit = False
        self._measured = 0  # runs of the plain executor; a race may lose one
        self._seconds = math.inf

    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run the plain executor and measure it; later this attribute is what runs the step."""
        started = time.perf_counter()
        values = self._plain.run(step, arguments)
        self.uses_threads = self._plain.uses_threads
        self._note(time.perf_counter() - started)
        return values

    def run_async(self, step: Step, arguments: Sequence[TensorValue], done: Done) -> None:
        """Run as the plain executor does, and measure it; later this attribute is replaced too."""
        if self._plain.uses_threads:
            self.uses_threads = True
            self._plain.run_async(step, arguments, self._measuring(done))
        else:
            super().run_async(step, arguments, done)

    @property
    def clusters(self) -> list[ClusterSummary]:
        """The clusters that are not dissolved."""
        clustered = self.clustered
        return [] if clustered is None else [each.summary for each in clustered.all_clusters]

    def _measuring(self, done: Done) -> Done:
        started = time.perf_counter()

        def ended(values: list[TensorValue] | None, error: OpError | None) -> None:
            if error is None:
                self._note(time.perf_counter() - started)
            done(values, error)

        return ended

    def _note(self, seconds: float) -> None:
        self._measured += 1
        if self._measured <= _WARM_UP_RUNS:
            return
        self._seconds = min(self._seconds, seconds)
        if self._measured < _DECIDING_RUN:
            return
        self._use_plain()
        if self._seconds >= WORTH_SECONDS:
            self._submit(ClusteredExecutor._make_clusters)

    def _use_plain(self) -> None:
        self.stays_in_process = False
        self.uses_threads = self._plain.uses_threads
        # Bound methods in place of the class's save a call in every run.
        self.run_async = self._plain.run_async  # type: ignore[method-assign] # see above
        self.run = self._plain.run  # type: ignore[method-assign] # see above

    def _use_clusters(self, clustered: ClusteredPlan) -> None:
        plain, plan = self._plain, clustered.plan

        def run(step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
            if step.collector is not None:
                return plain.run(step, arguments)
            return plan.run(step, arguments)

        self.uses_threads = False
        self.run = run  # type: ignore[method-assign] # see above
        self.run_async = functools.partial(_run_async, run)  # type: ignore[method-assign] # see above

    def _submit(self, job: Callable[[ClusteredExecutor], None]) -> None:
        """Call a method in the queue's thread, unless the executor is freed before."""
        reference = weakref.ref(self)

        def run() -> None:
            executor = reference()
            if executor is not None:
                job(executor)

        self._queue.submit(run, self._interrupt)

    def _make_clusters(self) -> None:
        if find_engine() is None:
            return
        reference = weakref.ref(self)

        def settled() -> None:
            executor = reference()
            if executor is not None:
                executor._submit(ClusteredExecutor._settle)

        table, compilations, interrupt = self._table, self._queue, self._interrupt

        def make(
            cluster: ClusterGraph, positions: Sequence[int], evaluate: Evaluate, split: Split
        ) -> Cluster:
            return BackgroundCluster(
                cluster, positions, evaluate, split, table, compilations, interrupt, settled
            )

        clustered = ClusteredPlan(
            self.graph, self._kernels, self._table, make, sources=self._sources
        )
        if clustered.clusters:
            self.clustered = clustered
            self.stays_in_process = True
            self._use_clusters(clustered)

    def _settle(self) -> None:
        """Leave out dissolved clusters; without any other the plain executor is used alone."""
        clustered = self.clustered
        if clustered is None:
            return
        before = clustered.plan
        clustered.settle()
        if not clustered.clusters:
            self.clustered = None
            self._use_plain()
        elif clustered.plan is not before:
            self._use_clusters(clustered)
        self.stays_in_process = any(
            each.is_compiled
            or (isinstance(each, BackgroundCluster) and each.state is State.OBSERVED)
            for each in clustered.all_clusters
        )


def _run_async(
    run: Callable[[Step, Sequence[TensorValue]], list[TensorValue]],
    step: Step,
    arguments: Sequence[TensorValue],
    done: Done,
) -> None:
    try:
        values = run(step, arguments)
    except OpError as error:
        done(None, error)
    else:
        done(values, None)


def _needs_this_process(cluster: Cluster) -> bool:
    """Return whether a run here uses a model, or shows whether one is worth it."""
    return cluster.is_compiled or (
        isinstance(cluster, BackgroundCluster) and cluster.state is State.OBSERVED
    )


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


def clustering(mode: ClusterMode, library: FunctionLibrary) -> Clustering:
    """Return the function that puts clusters into step plans, as `mode` says.

    `library` has the functions that the nodes of the steps call.
    Ops for which a session has kernels of its own are not written as operations of a model.
    """
    if mode is ClusterMode.OFF:
        return without_clusters

    def with_clusters(
        plain: Executor, kernels: KernelRegistry, sources: Mapping[Endpoint, int]
    ) -> Executor:
        if not isinstance(plain, StepPlan | AdaptiveExecutor):
            return plain
        custom = kernels.custom_ops
        table = {op: row for op, row in emitters_for(library).items() if op not in custom}
        if mode is ClusterMode.FORCE:
            return ForcedClusters(plain, kernels, table, sources)
        if not any(node.op in table for node in plain.graph.nodes):
            return plain
        return ClusteredExecutor(plain, kernels, table, sources)

    return with_clusters
