"""Clustered executors: step plans whose expensive parts an engine computes.

A step begins with its plain executor. After a few runs its duration tells whether clusters may be
worth it. If so, the queue's thread makes a clustered plan, whose clusters are measured, compiled or
dissolved one by one (`background_cluster.py`); a step that is not worth it keeps its plain executor
with nothing around it. When runs take several times longer than those that decided, because inputs
have grown, the step is measured again. Clusters that it gets then are for such inputs only: inputs
as small as before are left to the plain executor, since a call of the engine takes 9 µs by itself.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

import protos as pb
from runtime.clusters.engine_choice import (
    AUTO,
    DEFAULT_CHOICE,
    FLOAT32,
    EngineChoice,
    engine_choice,
)
from runtime.clusters.running.cluster_counts import ClusterSummary
from runtime.clusters.running.compile_queue import CompileQueue, compile_queue
from runtime.clusters.running.engine import find_engine
from runtime.clusters.running.interrupt import Interrupt
from runtime.executors.adaptive import AdaptiveExecutor
from runtime.executors.derived_executor import Clustering, without_clusters
from runtime.executors.duration_estimate import size_of
from runtime.executors.steady_work import has_steady_work
from runtime.executors.step import Done, Executor, Step
from runtime.executors.step_plan import StepPlan
from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.resources.variable import shape_changes
from runtime.framework.tensor_value import TensorValue
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Endpoint

if TYPE_CHECKING:
    from runtime.executors.clustered_plan import ClusteredPlan

# A step that takes less on numpy kernels is not clustered: a call of the engine takes 9 µs or more.
WORTH_SECONDS = 25e-6
# The first run of a plan interprets it, the second writes its code, the third warms caches.
_WARM_UP_RUNS = 2
_DECIDING_RUN = 4
_GROWTH = 4  # times longer than when it was decided takes a run after which it is decided again
# A step of these ops alone has nothing for an engine: it restores or initialises variables.
_NEVER_CLUSTERED = frozenset(
    ("_Arg", "Const", "NoOp", "VarHandleOp", "ReadVariableOp", "AssignVariableOp", "RestoreV2",
     "SaveV2", "Identity", "Placeholder")
)  # fmt: skip


class _Inputs:
    """The shapes of the inputs of a run, which with those of variables bound the work of a step.

    `changes` is `shape_changes.count` before the run, or None if the step has no variables.
    """

    def __init__(self, arguments: Sequence[TensorValue], changes: int | None) -> None:
        self._shapes = [_shape(value) for value in arguments]
        self._text_bytes = [_text_bytes(value) for value in arguments]
        self._changes = changes

    def bound(self, arguments: Sequence[TensorValue]) -> bool:
        """Return whether the next run, with `arguments`, has no more work than that run had."""
        if self._changes is not None and self._changes != shape_changes.count:
            return False
        for value, shape, most in zip(arguments, self._shapes, self._text_bytes, strict=True):
            own = _shape(value)
            if own != shape and not (
                len(own) == len(shape)
                and all(size <= limit for size, limit in zip(own, shape, strict=True))
            ):
                return False
            if most is not None and (_text_bytes(value) or 0) > most:
                return False
        return True


def _shape(value: TensorValue) -> tuple[int, ...]:
    return value.shape if isinstance(value, np.ndarray | np.generic) else ()


def _text_bytes(value: TensorValue) -> int | None:
    """Return the bytes of strings; None if the values are numbers or handles."""
    is_text = isinstance(value, np.ndarray) and value.dtype.hasobject
    return size_of((value,)) if is_text else None


class ClusteredExecutor(Executor):
    """Begins with the executor `plain`, and changes to a clustered plan if that is worth it.

    Guarantees: thread-safe; each run uses one of the two from its beginning to its end.
    """

    may_block = False

    def __init__(
        self,
        plain: StepPlan | AdaptiveExecutor,
        kernels: KernelRegistry,
        sources: Mapping[Endpoint, int],
        compilations: CompileQueue = compile_queue,
        library: FunctionLibrary | None = None,
        choice: EngineChoice = DEFAULT_CHOICE,
    ) -> None:
        """`library` has the functions that the nodes call; without it there are none."""
        super().__init__(plain.graph)
        self._choice = choice
        self._library = library or FunctionLibrary()
        self.clustered: ClusteredPlan | None = None
        self._plain = plain
        self._kernels = kernels
        self._sources = sources
        self._queue = compilations
        self._interrupt = Interrupt()
        weakref.finalize(self, self._interrupt.set).atexit = False
        self._measured = 0  # runs of the plain executor; a race may lose one
        self._seconds = math.inf
        self._shortest: _Inputs | None = None  # the inputs of the run that took `_seconds`
        # Whatever is decided later, inputs as small as these were too small for clusters.
        self._short_inputs: _Inputs | None = None
        self._growth = _GROWTH  # doubles each time, so that noise decides a few times only
        self._bounds_loops = False  # whether a model was written for each loop that is called

    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run the plain executor and measure it; later this attribute is what runs the step."""
        changes, started = shape_changes.count, time.perf_counter()
        values = self._plain.run(step, arguments)
        self.uses_threads = self._plain.uses_threads
        self._note(time.perf_counter() - started, arguments, changes)
        return values

    def run_async(self, step: Step, arguments: Sequence[TensorValue], done: Done) -> None:
        """Run as the plain executor does, and measure it; later this attribute is replaced too."""
        if self._plain.uses_threads:
            self.uses_threads = True
            self._plain.run_async(step, arguments, self._measuring(arguments, done))
        else:
            super().run_async(step, arguments, done)

    @property
    def clusters(self) -> list[ClusterSummary]:
        """The clusters that are not dissolved."""
        clustered = self.clustered
        return [] if clustered is None else [each.summary for each in clustered.all_clusters]

    @property
    def is_bounded(self) -> bool:
        """Whether sizes bound the work; they bound a loop for which a model was written."""
        return self.is_steady or self._bounds_loops

    def _measuring(self, arguments: Sequence[TensorValue], done: Done) -> Done:
        changes, started = shape_changes.count, time.perf_counter()

        def ended(values: list[TensorValue] | None, error: OpError | None) -> None:
            if error is None:
                self._note(time.perf_counter() - started, arguments, changes)
            done(values, error)

        return ended

    def _note(self, seconds: float, arguments: Sequence[TensorValue], changes: int) -> None:
        measured = self._measured = self._measured + 1
        if not _WARM_UP_RUNS < measured <= _DECIDING_RUN:
            return  # a run that is later has begun before the decision
        if seconds < self._seconds:
            self._seconds = seconds
            if self.is_steady:
                self._shortest = _Inputs(arguments, changes if self._has_variables else None)
        if measured < _DECIDING_RUN:
            return
        self._use_plain()
        if self._seconds >= WORTH_SECONDS:
            if self._short_inputs is not None and self._short_inputs.bound(arguments):
                self._short_inputs = None  # they are not too short any more
            self._submit(ClusteredExecutor._make_clusters)
        else:
            self._short_inputs = self._shortest
            self._watch_growth(self._seconds)

    def _watch_growth(self, seconds: float) -> None:
        """Decide again when a run takes much longer than `seconds`."""
        reference = weakref.ref(self)

        def grown() -> None:
            executor = reference()
            if executor is not None:
                executor._submit(ClusteredExecutor._decide_again)

        self.duration.watch(max(seconds, WORTH_SECONDS) * self._growth, grown)

    def _decide_again(self) -> None:
        self._growth *= 2
        if self.clustered is not None:
            self.clustered.observe_again()
            self._use_clusters(self.clustered)
            self.stays_in_process = self.clustered.needs_this_process
            return
        self._measured, self._seconds, self._shortest = 0, math.inf, None
        # The methods of the class measure.
        self.__dict__.pop("run", None)
        self.__dict__.pop("run_async", None)

    def _use_plain(self) -> None:
        self.stays_in_process = False
        self.uses_threads = self._plain.uses_threads
        # Bound methods in place of the class's save a call in every run.
        self.run_async = self._plain.run_async  # type: ignore[method-assign] # see above
        self.run = self._plain.run  # type: ignore[method-assign] # see above

    def _use_clusters(self, clustered: ClusteredPlan) -> None:
        plain, plan, short_inputs = self._plain, clustered.plan, self._short_inputs

        def run(step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
            if step.collector is not None or (
                short_inputs is not None and short_inputs.bound(arguments)
            ):
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
        # The emitters take 0.3 s to import, which a program without clusters need not wait for.
        from runtime.executors import clustered_plan

        reference = weakref.ref(self)

        def settled() -> None:
            executor = reference()
            if executor is not None:
                executor._submit(ClusteredExecutor._settle)

        clustered = clustered_plan.background_plan(
            self.graph,
            self._kernels,
            self._library,
            self._sources,
            self._queue,
            self._interrupt,
            settled,
            self._choice,
        )
        if clustered is not None:
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
        if not self.is_bounded:
            self._bounds_loops = has_steady_work(self.graph, clustered.written_nodes)
        self.stays_in_process = clustered.needs_this_process
        if clustered.has_dissolved:
            self._watch_growth(min(self.duration.seconds, self._seconds))


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


class ClusterMode(enum.Enum):
    """The values of `SessionOptions.clusters`."""

    AUTO = "auto"
    OFF = "off"
    FORCE = "force"


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What a session's options say of clusters; see `SessionOptions`."""

    clusters: str = ClusterMode.AUTO.value
    engine: str = AUTO
    precision: str = FLOAT32

    def mode(self, config: pb.ConfigProto) -> ClusterMode:
        """Return the mode of a session; raise InvalidArgumentError if `clusters` is unknown.

        With the optimiser at level L0 clusters are off.
        """
        known = {mode.value: mode for mode in ClusterMode}
        if self.clusters not in known:
            raise InvalidArgumentError(
                f"SessionOptions.clusters is {self.clusters!r}; expected one of {', '.join(known)}"
            )
        if config.graph_options.optimizer_options.opt_level == pb.OptimizerOptions.L0:
            return ClusterMode.OFF
        return known[self.clusters]

    @property
    def choice(self) -> EngineChoice:
        """The engine and precision; raises InvalidArgumentError if they are unknown."""
        return engine_choice(self.engine, self.precision)


def prepare_engine(options: ClusterOptions, config: pb.ConfigProto) -> None:
    """Have the engine that the options name imported in the background; auto names none."""
    if options.mode(config) is not ClusterMode.OFF and options.engine != AUTO:
        compile_queue.submit(functools.partial(find_engine, options.choice), Interrupt())


NO_CLUSTERS = ClusterOptions(ClusterMode.OFF.value)


def clustering(mode: ClusterMode, choice: EngineChoice, library: FunctionLibrary) -> Clustering:
    """Return the function that puts clusters into step plans, as `mode` says.

    `library` has the functions that the nodes of the steps call.
    """
    if mode is ClusterMode.OFF:
        return without_clusters

    def with_clusters(
        plain: Executor, kernels: KernelRegistry, sources: Mapping[Endpoint, int]
    ) -> Executor:
        if not isinstance(plain, StepPlan | AdaptiveExecutor):
            return plain
        if mode is ClusterMode.FORCE:
            from runtime.executors import forced_clusters  # see `_make_clusters`

            return forced_clusters.ForcedClusters(plain, kernels, sources, library, choice)
        if not any(node.op not in _NEVER_CLUSTERED for node in plain.graph.nodes):
            return plain
        return ClusteredExecutor(plain, kernels, sources, library=library, choice=choice)

    return with_clusters
