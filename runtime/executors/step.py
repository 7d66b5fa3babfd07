"""Step: the state of one run, and Executor: the interface of what runs it.

Guarantees: a Step is used by one run; any thread may cancel it.

TF: tensorflow/core/common_runtime/executor.h (Executor, Executor::Args)
"""

from __future__ import annotations

import abc
import itertools
import math
import queue
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import protos as pb
from runtime.executors.duration_estimate import DurationEstimate
from runtime.executors.portable_step import PortableStep
from runtime.executors.step_stats import StepStatsCollector
from runtime.foundation.errors import InternalError, OpError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred, FileGate, SessionState
from runtime.framework.rendezvous import Rendezvous
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.tensor_value import TensorValue
from runtime.graph.passes.pruning import StepGraph

_step_ids = itertools.count(1)
Runner = Callable[[Callable[[], object]], object]

# Takes (fetched values, None) or (None, error).
Done: TypeAlias = Callable[[list[TensorValue] | None, OpError | None], None]

# A value on an edge: a TensorValue or DEAD; the Variable itself if the edge is a reference.
EdgeValue: TypeAlias = Any


class FunctionRunner(abc.ABC):
    """Runs the functions of one graph's library for kernels that call them (If, While, Map, …)."""

    @abc.abstractmethod
    def call(
        self, step: Step, function: NameAttrList, arguments: Sequence[TensorValue]
    ) -> list[TensorValue]:
        """Run a function in the calling thread; its outputs."""

    @abc.abstractmethod
    def may_wait(self, function: NameAttrList) -> bool:
        """Whether the function, or one that it calls, has ops that may block on other steps."""

    @abc.abstractmethod
    def start(
        self, step: Step, function: NameAttrList, arguments: Sequence[TensorValue]
    ) -> Deferred:
        """Start a function without blocking; the Deferred completes with its outputs."""

    @abc.abstractmethod
    def definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """The named functions of the library, and all functions that they call."""

    @abc.abstractmethod
    def of_library(self, library: pb.FunctionDefLibrary) -> FunctionRunner:
        """A runner of the same kind for the functions of another library."""


class Step:
    """The state of one run of a session.

    `runner` schedules a closure on the step's thread pool; without one (None) closures run in the
    current thread.
    `can_run_in_parallel` is true when the pool has more than one thread.
    `is_low_priority` makes executors wait at the priority gate between nodes.
    `failure` is the first error of an executor, set as soon as it occurs: other kernels may still
    be running then.
    """

    __slots__ = (
        "_resources",
        "can_run_in_parallel",
        "cancellation",
        "collector",
        "failure",
        "files",
        "functions",
        "is_low_priority",
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
        self.failure: OpError | None = None
        self.functions = functions
        self.rendezvous: Rendezvous | None = None  # created by the first `send` or `receive`
        self._resources: ResourceManager | None = None

    @property
    def resources(self) -> ResourceManager:
        """The resources that live as long as the step: tensor arrays, stacks."""
        if self._resources is None:
            self._resources = ResourceManager()
        return self._resources

    def send(self, key: str, value: TensorValue) -> None:
        """Put a value into the step's rendezvous."""
        self._get_or_create_rendezvous().send(key, value)

    def receive(self, key: str) -> Deferred:
        """Take a value out of the step's rendezvous; the Deferred completes when it is sent."""
        return self._get_or_create_rendezvous().receive(key)

    def _get_or_create_rendezvous(self) -> Rendezvous:
        if self.rendezvous is None:
            self.rendezvous = Rendezvous(self.cancellation)
        return self.rendezvous

    def function_definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """The named functions of the graph's library, and all functions that they call."""
        return self._functions.definitions(names)

    def function_runner(self, library: pb.FunctionDefLibrary) -> FunctionRunner:
        """A runner for the functions of another library, to be passed to `with_functions`."""
        return self._functions.of_library(library)

    def with_functions(self, runner: FunctionRunner) -> Step:
        """A copy of the step that calls functions through `runner`."""
        step = self._copy()
        step.functions = runner
        return step

    def with_runner(self, runner: Runner | None) -> Step:
        """A copy of the step whose closures are scheduled by `runner`, one at a time."""
        step = self._copy()
        step.runner = runner
        step.can_run_in_parallel = False
        return step

    def _copy(self) -> Step:
        """A copy for another executor: it shares the step's resources, but not its `failure`."""
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
        """Whether a function, or one that it calls, has ops that may block on other steps."""
        return self._functions.may_wait(function)

    def start_function(self, function: NameAttrList, arguments: Sequence[TensorValue]) -> Deferred:
        """Start a function without blocking; the Deferred completes with its outputs."""
        return self._functions.start(self, function, arguments)

    @property
    def _functions(self) -> FunctionRunner:
        if self.functions is None:
            raise InternalError("A step without a graph calls a function")
        return self.functions


class Executor(abc.ABC):
    """Runs a pruned graph. Re-entrant: many steps may use one executor at the same time."""

    # Whether `run` may block until another step acts (queues). Such a step must not run in the
    # thread of an event loop.
    may_block: bool
    # Whether `run_async` uses several threads. `run` uses one, so it takes longer than `duration`.
    uses_threads = False

    def __init__(self, graph: StepGraph) -> None:
        self.graph = graph  # after pruning and all passes, for RunMetadata
        # Whether kernels call functions. The executor of a function may cancel the step.
        self.calls_functions = any(
            kind in ("func", "list(func)")
            for node in graph.nodes
            for kind in node.info.attr_types.values()
        )
        # The seconds of the newest asynchronous step: until `done`, or of its work in a child
        # process; infinite before the first. Decides which low-priority steps a child process runs.
        self.last_seconds = math.inf
        self.runs = 0  # asynchronous runs in this process; a race may lose one
        # Measured without low-priority steps, whose time includes waiting at the priority gate.
        # Decides which steps run in the caller's thread.
        self.duration = DurationEstimate()
        self._make_portable: Callable[[], PortableStep | None] = lambda: None
        self._portable: list[PortableStep | None] = []  # empty until `portable` is first read
        self.steps = itertools.count()  # next() is atomic; counts only when a cost model is built

    def set_portable_factory(self, make_portable: Callable[[], PortableStep | None]) -> None:
        """Set the function that makes the step's portable form when it is first needed."""
        self._make_portable = make_portable

    @property
    def portable(self) -> PortableStep | None:
        """The step in a form that another process can run; None when it has to run in this one."""
        portable = self._portable
        if not portable:
            portable.append(self._make_portable())  # a race makes two and uses the first
        return portable[0]

    def mark_not_portable(self) -> None:
        """Note that another process was not able to run the step."""
        self._portable = [None]

    @abc.abstractmethod
    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run in the calling thread with `arguments` for the feeds; the fetched values.

        Blocks while a `Deferred` of a kernel is not complete. Raises the step's OpError.
        """

    def run_async(self, step: Step, arguments: Sequence[TensorValue], done: Done) -> None:
        """Run, and call `done(values, None)` or `done(None, error)` once, in any thread."""
        try:
            values = self.run(step, arguments)
        except OpError as error:
            done(None, error)
        else:
            done(values, None)


class AsynchronousExecutor(Executor):
    """An executor whose kernels may return `Deferred`s: a run need not end in its first thread."""

    may_block = True

    def run(self, step: Step, arguments: Sequence[TensorValue]) -> list[TensorValue]:
        """Run in the calling thread alone, including the closures that completed Deferreds add."""
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
        """Start in this thread; `done` is called once, in the thread that runs the last kernel."""
