"""Step, the state of one run of a session, and Executor, the interface of the classes that run it.

A Step must be used for one run only; any thread may cancel it.

TF: tensorflow/core/common_runtime/executor.h (Executor, Executor::Args)
"""

from __future__ import annotations

import abc
import itertools
import math
import queue
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import protos as pb
from runtime.clusters.running.cluster_counts import ClusterSummary
from runtime.executors.duration_estimate import SHORT_SECONDS, DurationEstimate
from runtime.executors.plan_bytes import plan_bytes
from runtime.executors.portable_step import PortableStep
from runtime.executors.steady_work import calls_function, has_steady_work
from runtime.executors.step_stats import StepStatsCollector
from runtime.foundation.errors import InternalError, OpError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.cancellation import CancellationManager
from runtime.framework.derived_values import DerivedValues
from runtime.framework.op_kernel import Deferred, FileGate, SessionState
from runtime.framework.rendezvous import Rendezvous
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.resources.variable import shape_changes
from runtime.framework.tensor_value import TensorValue
from runtime.graph.passes.pruning import StepGraph
from runtime.graph.variable_nodes import VARIABLE_OPS

# A step that takes longer never runs in the thread of a caller that waits for its end, so that the
# wait ends early if it is cancelled. To hand it over takes 0.1 ms, which is little of a long one.
BRIEF_SECONDS = 0.05
_step_ids = itertools.count(1)
_now = time.monotonic
_processor_time = time.thread_time
Runner = Callable[[Callable[[], object]], object]

# A callback that takes (fetched values, None) or (None, error).
Done: TypeAlias = Callable[[list[TensorValue] | None, OpError | None], None]

# A value on an edge: a TensorValue or DEAD, or a Variable if the edge is a reference.
EdgeValue: TypeAlias = Any


class FunctionRunner(abc.ABC):
    """Runs the functions of one graph's library for kernels that call them (If, While, Map, …)."""

    @abc.abstractmethod
    def call(
        self, step: Step, function: NameAttrList, arguments: Sequence[TensorValue]
    ) -> list[TensorValue]:
        """Run a function in the calling thread and return its outputs."""

    @abc.abstractmethod
    def may_wait(self, function: NameAttrList) -> bool:
        """Return whether `function`, or one that it calls, has ops that may wait for a step."""

    @abc.abstractmethod
    def start(
        self, step: Step, function: NameAttrList, arguments: Sequence[TensorValue]
    ) -> Deferred:
        """Start a function without blocking and return a Deferred of its outputs."""

    @abc.abstractmethod
    def definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """Return the functions called `names` in the library, and all functions that they call."""

    @abc.abstractmethod
    def of_library(self, library: pb.FunctionDefLibrary) -> FunctionRunner:
        """Return a runner of the same kind for the functions of `library`."""


class Step:
    """The state of one run of a session.

    `runner` schedules a closure on the step's thread pool; if it is None, closures run in the
    current thread.
    `can_run_in_parallel` is true if the pool has more than one thread.
    `is_low_priority` makes executors wait at the priority gate between nodes.
    `derived` has the values that the step got instead of computing them from variables, or is None.
    `memory` is the account of the step, or None if nothing limits it.
    `failure` is the first error of an executor. It is set as soon as the error occurs, while other
    kernels may still be running.
    """

    __slots__ = (
        "_resources",
        "can_run_in_parallel",
        "cancellation",
        "collector",
        "derived",
        "failure",
        "files",
        "functions",
        "is_low_priority",
        "memory",
        "rendezvous",
        "runner",
        "session",
        "step_id",
    )

    def __init__(
        self,
        session: SessionState,
        cancellation: CancellationManager,
        files: FileGate,
        functions: FunctionRunner | None,
        *,
        runner: Runner | None = None,
        can_run_in_parallel: bool = False,
        is_low_priority: bool = False,
        collector: StepStatsCollector | None = None,
    ) -> None:
        self.step_id = next(_step_ids)
        self.session = session
        self.cancellation = cancellation
        self.files = files
        self.runner = runner
        self.can_run_in_parallel = can_run_in_parallel
        self.is_low_priority = is_low_priority
        self.collector = collector
        self.derived: DerivedValues | None = None
        memory = session.memory
        self.memory = memory if memory is None or not memory.step_limit else memory.of_step()
        self.failure: OpError | None = None
        self.functions = functions
        self.rendezvous: Rendezvous | None = None  # created by the first `send` or `receive`
        self._resources: ResourceManager | None = None

    @property
    def resources(self) -> ResourceManager:
        """The resources that live as long as the step, for example tensor arrays and stacks."""
        if self._resources is None:
            self._resources = ResourceManager(self.session.resources.max_bytes)
        return self._resources

    @property
    def bytes_held(self) -> int:
        """The bytes of the resources that live as long as the step."""
        return 0 if self._resources is None else self._resources.bytes_held

    def send(self, key: str, value: TensorValue) -> None:
        """Put a value into the step's rendezvous."""
        self._get_or_create_rendezvous().send(key, value)

    def receive(self, key: str) -> Deferred:
        """Return a Deferred of the value for `key`; it completes when the value is sent."""
        return self._get_or_create_rendezvous().receive(key)

    def _get_or_create_rendezvous(self) -> Rendezvous:
        if self.rendezvous is None:
            self.rendezvous = Rendezvous(self.cancellation)
        return self.rendezvous

    def function_definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """Return the functions called `names` in the library, and all functions that they call."""
        return self._functions.definitions(names)

    def function_runner(self, library: pb.FunctionDefLibrary) -> FunctionRunner:
        """Return a runner for the functions of `library`, as an argument of `with_functions`."""
        return self._functions.of_library(library)

    def with_functions(self, runner: FunctionRunner) -> Step:
        """Return a copy of the step that calls functions through `runner`."""
        step = self._copy()
        step.functions = runner
        return step

    def with_runner(self, runner: Runner | None) -> Step:
        """Return a copy of the step that schedules its closures by `runner`.

        `runner` must run one closure at a time.
        """
        step = self._copy()
        step.runner = runner
        step.can_run_in_parallel = False
        return step

    def _copy(self) -> Step:
        """Return a copy for another executor, which shares the resources but not `failure`."""
        step = Step.__new__(Step)
        for name in Step.__slots__:
            setattr(step, name, getattr(self, name))
        step._resources = self.resources
        step.failure = None
        return step

    def call_function(
        self, function: NameAttrList, arguments: Sequence[TensorValue]
    ) -> list[TensorValue]:
        """Run a function of the library as part of this step, in the calling thread."""
        return self._functions.call(self, function, arguments)

    def may_wait(self, function: NameAttrList) -> bool:
        """Return whether `function`, or one that it calls, has ops that may wait for a step."""
        return self._functions.may_wait(function)

    def start_function(self, function: NameAttrList, arguments: Sequence[TensorValue]) -> Deferred:
        """Start a function without blocking and return a Deferred of its outputs."""
        return self._functions.start(self, function, arguments)

    @property
    def _functions(self) -> FunctionRunner:
        if self.functions is None:
            raise InternalError("A step without a graph calls a function")
        return self.functions


class Executor(abc.ABC):
    """Runs a pruned graph. Re-entrant: many steps may use one executor at the same time."""

    # Whether `run` may wait for another step, for example at a queue. Such a step must not run in
    # the thread of an event loop.
    may_block: bool
    # Whether `run_async` uses several threads. If so, `run`, which uses one, takes longer than
    # `duration`.
    uses_threads = False
    # Whether a child process would lack what makes runs in this process short.
    stays_in_process = False
    # Whether a step may keep fed arrays, in a variable or a queue for example.
    keeps_feeds = True
    # The seconds that it took to compute derived values; the runs that reuse them are shorter.
    preparation_seconds = 0.0

    def __init__(self, graph: StepGraph) -> None:
        self.graph = graph  # the graph after pruning and all passes, for RunMetadata
        self.calls_functions = any(map(calls_function, graph.nodes))
        # The seconds that the newest asynchronous step took until `done`, or, if a child process
        # ran it, the seconds of work there; infinite before the first step. Decides which
        # low-priority steps a child process runs.
        self.last_seconds = math.inf
        self.runs = 0  # number of asynchronous runs in this process; a race may lose a run
        # The estimate decides which steps run in the caller's thread. It leaves out low-priority
        # steps, because their time includes waits at the priority gate.
        self.duration = DurationEstimate()
        self._make_portable: Callable[[], PortableStep | None] = lambda: None
        # The size of the largest feeds of which the newest run ended within BRIEF_SECONDS.
        self.brief_size = -1
        # The number of changes of variables' shapes before the newest measured run.
        self.measured_shapes = -1
        self._is_steady: bool | None = None  # None until `is_steady` is first read
        self._has_variables = False
        self._bytes = 0  # 0 until `bytes_held` is first read
        self._portable: list[PortableStep | None] = []  # empty until it is first needed
        self._is_refused = False  # by another process
        self.steps = itertools.count()  # next() is atomic; counts only if a cost model is built

    def note_run(self, seconds: float, size: int) -> None:
        """Record a completed run of normal priority, until its end, with feeds of this size."""
        self.runs += 1
        self.last_seconds = seconds
        if seconds > BRIEF_SECONDS:
            self.brief_size = min(self.brief_size, size - 1)
        elif size > self.brief_size:
            self.brief_size = size

    @property
    def is_steady(self) -> bool:
        """Whether the sizes of feeds and variables bound the work; then no function is called."""
        if self._is_steady is None:
            self._has_variables = any(node.op in VARIABLE_OPS for node in self.graph.nodes)
            self._is_steady = has_steady_work(self.graph)
        return self._is_steady

    @property
    def is_bounded(self) -> bool:
        """Whether the sizes of feeds and variables bound the work, that of functions as well."""
        return self.is_steady

    @property
    def is_predictable(self) -> bool:
        """Whether the sizes of the feeds bound the work of the next run, as in measured runs."""
        # `_is_steady` is read here, because a call of the property takes longer.
        return (self._is_steady or self.is_bounded) and (
            self.measured_shapes == shape_changes.count or not self._has_variables
        )

    def set_portable_factory(self, make_portable: Callable[[], PortableStep | None]) -> None:
        """Set the function that makes the step's portable form when it is first needed."""
        self._make_portable = make_portable

    @property
    def portable(self) -> PortableStep | None:
        """The step in a form that another process can run; None if it must run in this process."""
        return None if self.stays_in_process or self._is_refused else self._portable_form()

    @property
    def has_lasting_effect(self) -> bool:
        """Whether the step may change or keep state, wherever it runs."""
        return self._portable_form() is None

    def _portable_form(self) -> PortableStep | None:
        portable = self._portable
        if not portable:
            portable.append(self._make_portable())  # if two threads append, the first wins
        return portable[0]

    def mark_not_portable(self) -> None:
        """Record that another process was not able to run the step."""
        self._is_refused = True

    @property
    def bytes_held(self) -> int:
        """The bytes that the compiled step keeps in memory, estimated from its nodes."""
        if not self._bytes:
            self._bytes = plan_bytes(self.graph)
        return self._bytes

    @property
    def clusters(self) -> list[ClusterSummary]:
        """The clusters of the step, of which an engine may compute some."""
        return []

    def is_prepared(self, session: SessionState) -> bool:
        """Return whether the next run in `session` needs no time for derived values."""
        return True

    @abc.abstractmethod
    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run in the calling thread with `arguments` for the feeds and return the fetched values.

        Blocks until each `Deferred` of a kernel is complete. Raises the OpError of the step.
        """

    def run_noted(
        self, step: Step, arguments: Sequence[TensorValue], began: float, size: int
    ) -> list[TensorValue]:
        """Run like `run`, and note the duration since `began`, even if this raises.

        `began` is an instant of `time.monotonic()`, `size` the size of `arguments`.
        """
        is_completed, shapes, worked_before = False, shape_changes.count, _processor_time()
        try:
            values = self.run(step, arguments)
            is_completed = True
        finally:
            seconds = _now() - began
            worked = _processor_time() - worked_before if seconds >= SHORT_SECONDS else seconds
            self.duration.note_here(seconds, worked, is_completed=is_completed, size=size)
            self.measured_shapes = shapes
        return values

    def run_async(self, step: Step, arguments: Sequence[TensorValue], done: Done) -> None:
        """Run, and call `done(values, None)` or `done(None, error)` once, in any thread."""
        try:
            values = self.run(step, arguments)
        except OpError as error:
            done(None, error)
        else:
            done(values, None)


class AsynchronousExecutor(Executor):
    """An executor whose kernels may return `Deferred`s, so another thread may end the run."""

    may_block = True

    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run the step, and the closures that completed Deferreds add, in the calling thread."""
        tasks: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        result: list[tuple[list[TensorValue] | None, OpError | None]] = []

        def done(values: list[TensorValue] | None, error: OpError | None) -> None:
            result.append((values, error))
            tasks.put(None)

        self.run_async(step.with_runner(tasks.put), arguments, done)
        while (task := tasks.get()) is not None:
            task()
        values, error = result[0]
        if error is not None:
            raise error
        assert values is not None
        return values

    @abc.abstractmethod
    def run_async(self, step: Step, arguments: Sequence[TensorValue], done: Done) -> None:
        """Start the run in this thread; the thread of the last kernel calls `done`, once."""
