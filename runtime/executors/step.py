"""Step: what belongs to one run, and the executor interface that runs it.

Guarantees: a Step is used by one run; its cancellation may be triggered from any thread.

TF: tensorflow/core/common_runtime/executor.h (Executor, Executor::Args)
"""

from __future__ import annotations

import abc
import itertools
import math
import queue
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import protos as pb
from runtime.executors.duration_estimate import DurationEstimate
from runtime.executors.portable_step import PortableStep
from runtime.executors.step_stats import StepStatsCollector
from runtime.foundation.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from runtime.framework.attr_value import NameAttrList
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import Deferred, FileGate, SessionState
from runtime.framework.rendezvous import Rendezvous
from runtime.framework.resource_manager import ResourceManager
from runtime.graph.passes.pruning import StepGraph

_step_ids = itertools.count(1)
Runner = Callable[[Callable[[], object]], object]
Done = Callable[[list[Any] | None, OpError | None], None]  # called with the values or the error


class FunctionRunner(abc.ABC):
    """Runs the functions of one graph's library for kernels that call them (If, While, Map, …)."""

    @abc.abstractmethod
    def call(self, step: Step, function: NameAttrList, arguments: Sequence[Any]) -> list[Any]:
        """Run and wait in this thread."""

    @abc.abstractmethod
    def may_wait(self, function: NameAttrList) -> bool:
        """Whether the function has operations that wait for other steps."""

    @abc.abstractmethod
    def start(self, step: Step, function: NameAttrList, arguments: Sequence[Any]) -> Deferred:
        """Begin; no thread waits for the outputs."""

    @abc.abstractmethod
    def definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """Functions of the library, and all that they call."""

    @abc.abstractmethod
    def of_library(self, library: pb.FunctionDefLibrary) -> FunctionRunner:
        """Runs the functions of another library in the same way."""


class Step:
    """The state of one run of a session.

    `runner` starts a closure on the step's thread pool; None runs it in the thread at hand.
    `can_run_in_parallel` says that the pool has more than one thread.
    `is_low_priority` makes executors stop at the priority gate between nodes.
    `failure` is the first error of an executor, noted before the executor has come to its end.
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
        self.rendezvous: Rendezvous | None = None  # made when something is sent or received
        self._resources: ResourceManager | None = None

    @property
    def resources(self) -> ResourceManager:
        """Resources that die with the step: tensor arrays, stacks."""
        if self._resources is None:
            self._resources = ResourceManager()
        return self._resources

    def send(self, key: str, value: Any) -> None:
        """Put a value into the step's rendezvous."""
        self._meeting_place().send(key, value)

    def receive(self, key: str) -> Deferred:
        """Take a value out of the step's rendezvous, when it comes."""
        return self._meeting_place().receive(key)

    def _meeting_place(self) -> Rendezvous:
        if self.rendezvous is None:
            self.rendezvous = Rendezvous(self.cancellation)
        return self.rendezvous

    def function_definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """Functions of the graph's library, and all that they call."""
        return self._functions.definitions(names)

    def function_runner(self, library: pb.FunctionDefLibrary) -> FunctionRunner:
        """What runs the functions of another library."""
        return self._functions.of_library(library)

    def with_functions(self, runner: FunctionRunner) -> Step:
        """The same step, whose functions are those of another library."""
        step = self._copy()
        step.functions = runner
        return step

    def with_runner(self, runner: Runner | None) -> Step:
        """The same step, whose closures go elsewhere."""
        step = self._copy()
        step.runner = runner
        step.can_run_in_parallel = False
        return step

    def _copy(self) -> Step:
        """The same step for another executor, with resources in common and a failure of its own."""
        step = Step.__new__(Step)
        for name in Step.__slots__:
            setattr(step, name, getattr(self, name))
        step._resources = self.resources
        step.failure = None
        return step

    def call_function(self, function: NameAttrList, arguments: Sequence[Any]) -> list[Any]:
        """Run a function of the library in this step and wait for its outputs."""
        return self._functions.call(self, function, arguments)

    def may_wait(self, function: NameAttrList) -> bool:
        """Whether a function has operations that wait for other steps."""
        return self._functions.may_wait(function)

    def start_function(self, function: NameAttrList, arguments: Sequence[Any]) -> Deferred:
        """Begin a function that may wait."""
        return self._functions.start(self, function, arguments)

    @property
    def _functions(self) -> FunctionRunner:
        if self.functions is None:
            raise InternalError("A step without a graph calls a function")
        return self.functions


class Executor(abc.ABC):
    """Runs a pruned graph. Re-entrant: many steps may be in it at once."""

    # Whether `run` may wait for other steps (queues): then it must not run on the caller's thread
    # of an event loop.
    may_block: bool
    # Whether `run_async` hands work to other threads: then `run` takes longer than was measured.
    uses_threads = False

    def __init__(self, graph: StepGraph) -> None:
        self.graph = graph  # as it is run, for those who want to see it
        # Of the newest asynchronous step, until `done`, or of its work in a child process; infinite
        # before the first. It decides which low-priority steps go to a child process.
        self.last_seconds = math.inf
        self.runs = 0  # asynchronous ones in this process; a race may lose one
        # Of steps that are not of low priority: they wait for no others. It decides which steps run
        # in the caller's thread.
        self.duration = DurationEstimate()
        self._make_portable: Callable[[], PortableStep | None] = lambda: None
        self._portable: list[PortableStep | None] = []  # empty until somebody has asked
        self.steps = itertools.count()  # next() is atomic; counted only when costs are asked for

    def may_be_portable(self, make_portable: Callable[[], PortableStep | None]) -> None:
        """Say how to find out whether another process may run it."""
        self._make_portable = make_portable

    @property
    def portable(self) -> PortableStep | None:
        """What another process needs to run it; None when it has to run in this one."""
        portable = self._portable
        if not portable:
            portable.append(self._make_portable())  # a race makes two and keeps the first
        return portable[0]

    def stays_here(self) -> None:
        """No other process can run it after all."""
        self._portable = [None]

    @abc.abstractmethod
    def run(self, step: Step, arguments: Sequence[Any]) -> list[Any]:
        """Run with `arguments` for the feeds; the fetched values. Waits for deferred kernels."""

    def run_async(self, step: Step, arguments: Sequence[Any], done: Done) -> None:
        """Run and call `done(values, None)` or `done(None, error)` once, in whatever thread."""
        try:
            values = self.run(step, arguments)
        except OpError as error:
            done(None, error)
        else:
            done(values, None)


class AsynchronousExecutor(Executor):
    """Runs by `run_async`: kernels may wait, and what follows them may run in other threads."""

    may_block = True

    def run(self, step: Step, arguments: Sequence[Any]) -> list[Any]:
        """Run in this thread alone; it takes what deferred kernels go on with until the end."""
        tasks: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        result: list[Any] = [None, None]

        def done(values: list[Any] | None, error: OpError | None) -> None:
            result[:] = values, error
            tasks.put(None)

        self.run_async(step.with_runner(tasks.put), arguments, done)
        while (task := tasks.get()) is not None:
            task()
        if result[1] is not None:
            raise result[1]
        values: list[Any] = result[0]
        return values

    @abc.abstractmethod
    def run_async(self, step: Step, arguments: Sequence[Any], done: Done) -> None:
        """Begin in this thread; `done` is called once, in the thread that ends the last kernel."""


def as_op_error(error: BaseException, node: str) -> OpError:
    """What a kernel raised, as an OpError that names the node.

    numpy complains about values by ValueError, TypeError and IndexError: a bad argument. Anything
    else is a fault of ours.
    """
    if isinstance(error, OpError):
        return error.with_node(node)
    if isinstance(error, MemoryError):
        return ResourceExhaustedError(f"OOM when allocating tensor: {error}", node)
    if isinstance(error, RecursionError):
        return ResourceExhaustedError("Functions call each other too deep", node)
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, ValueError | TypeError | IndexError | OverflowError):
        return InvalidArgumentError(text, node)
    return InternalError(text, node)
