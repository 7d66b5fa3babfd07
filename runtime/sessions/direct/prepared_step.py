"""PreparedStep: a step with its executor, its arguments and its report, ready to run.

TF: tensorflow/core/common_runtime/direct_session.cc (RunInternal, DirectSessionCallFrame)
"""

from __future__ import annotations

import dataclasses
import functools
import reprlib
import threading
import time
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from runtime.executors.duration_estimate import size_of
from runtime.executors.step import FunctionRunner, Step
from runtime.executors.step_stats import StepStatsCollector
from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.op_kernel import FileGate
from runtime.framework.resource_manager import ResourceHandle, ResourceManager
from runtime.framework.resources.variable import shape_changes
from runtime.framework.tensor_codec import as_bytes
from runtime.kernels.state.session_tensors import session_tensor
from runtime.sessions.child_process.step_processes import run_in_process
from runtime.sessions.direct.executor_cache import CompiledStep
from runtime.sessions.direct.kernel_states import KernelStates
from runtime.sessions.direct.run_metadata import MetadataRequest
from runtime.sessions.runtime_session import RunRequest, Tensor
from runtime.sessions.session_options import SessionOptions

_STRING = DataType.STRING  # Python takes 0.1 µs for a member of an enumeration
_ONLY = (0,)  # the fetch positions of a request with one fetch
_now = time.monotonic
_processor_time = time.thread_time


@dataclasses.dataclass(frozen=True, slots=True)
class PreparedStep:
    """The executor, arguments and report of one run; it must be used once."""

    compiled: CompiledStep
    step: Step
    arguments: list[Tensor]
    report: MetadataRequest | None
    began: float  # `_now()` before the feeds were read, because reading them counts
    worked_before: float  # the processor time of a pool's thread at that instant

    def run(self) -> list[Tensor]:
        """Run in the calling thread and return the fetched values in the request's order."""
        return self.results(self.compiled.executor.run(self.step, self.arguments))

    def start(
        self,
        pool: ThreadPool | None,
        done: Callable[[list[Tensor] | None, OpError | None], None],
    ) -> None:
        """Start the step in this thread, or run it in a child process of `pool`.

        `done` is called once, in any thread, as by `Executor.run_async`.
        """
        executor, began, shapes = self.compiled.executor, self.began, shape_changes.count
        is_low_priority = self.step.is_low_priority
        if pool is not None and pool.own_process:
            values = run_in_process(pool, executor, self.step, self.arguments)
            if values is not None:
                done(values, None)
                return
            began = _now()  # the time in `run_in_process` does not count

        thread = threading.get_ident()

        def ended(values: list[Tensor] | None, error: OpError | None) -> None:
            seconds, size = _now() - began, 0
            if not is_low_priority:
                size = size_of(self.arguments)
                # What a pool's thread waits for the others is no reason to expect that the step
                # takes long where it runs at once: it would be queued, and wait, for ever.
                is_alone = pool is not None and threading.get_ident() == thread
                if is_alone and not executor.uses_threads:
                    alone = min(seconds, _processor_time() - self.worked_before)
                else:
                    alone = seconds
                executor.duration.note(alone, is_completed=error is None, size=size)
                executor.measured_shapes = shapes
            if error is None and is_low_priority:
                executor.runs += 1
                executor.last_seconds = seconds
            elif error is None:
                executor.note_run(seconds, size)
            done(values, error)

        executor.run_async(self.step, self.arguments, ended)

    def results(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Write the report and return the executor's values in the request's order."""
        if self.report is not None:
            self.report.fill()
        return list(map(values.__getitem__, self.compiled.fetch_positions))


class StepPreparer:
    """Makes the steps of one session ready to run. Thread-safe, because it never changes.

    A step that runs in its caller's thread is cancelled with its session. If it calls functions, it
    has a manager of its own besides: a function that fails cancels its step.
    """

    def __init__(self, options: SessionOptions, state: KernelStates, device: str) -> None:
        self._config = options.config
        self.state = state
        self._files = options.files or AllowAll()
        self._device = device
        self.reports_every_step = self._config.graph_options.build_cost_model > 0
        self._has_metadata = self._config.experimental.HasField("session_metadata")

    def prepare(
        self,
        request: RunRequest,
        compiled: CompiledStep,
        functions: FunctionRunner | None,
        cancellation: CancellationManager,
        pool: ThreadPool | None,
    ) -> PreparedStep:
        """Return the prepared step for a run on `pool`, or in the calling thread if it is None.

        Raises what `feed_arguments` raises, and InvalidArgumentError if the request wants partition
        graphs although the configuration disables them.
        """
        began, worked_before = _now(), 0.0 if pool is None else _processor_time()
        report = self._report(request, compiled)
        arguments = feed_arguments(compiled, request, self.state.resources)
        collector = report.collector if report is not None else None
        step = self.new_step(functions, cancellation, pool, request.files, collector, request.owner)
        return PreparedStep(compiled, step, arguments, report, began, worked_before)

    def run_here(
        self,
        request: RunRequest,
        compiled: CompiledStep,
        functions: FunctionRunner | None,
        cancellation: CancellationManager,
    ) -> list[Tensor]:
        """Run in this thread, and record the executor's duration even if this raises."""
        own = CancellationManager(cancellation) if compiled.executor.calls_functions else None
        try:
            prepared = self.prepare(request, compiled, functions, own or cancellation, None)
            values = compiled.executor.run_noted(
                prepared.step, prepared.arguments, prepared.began, size_of(prepared.arguments)
            )
        finally:
            if own is not None:
                own.detach()
        if prepared.report is not None:
            prepared.report.fill()
        positions = compiled.fetch_positions
        return values if positions == _ONLY else list(map(values.__getitem__, positions))

    def run_plain(
        self,
        request: RunRequest,
        compiled: CompiledStep,
        functions: FunctionRunner | None,
        cancellation: CancellationManager,
    ) -> list[Tensor]:
        """Run in this thread, without a report, and without measuring the executor's duration."""
        arguments = feed_arguments(compiled, request, self.state.resources)
        own = CancellationManager(cancellation) if compiled.executor.calls_functions else None
        step = Step(self.state, own or cancellation, request.files or self._files, functions)
        try:
            values = compiled.executor.run(step, arguments)
        finally:
            if own is not None:
                own.detach()
        positions = compiled.fetch_positions
        return values if positions == _ONLY else list(map(values.__getitem__, positions))

    def run_arguments(
        self,
        arguments: Sequence[Tensor],
        size: int,
        compiled: CompiledStep,
        functions: FunctionRunner | None,
        cancellation: CancellationManager,
    ) -> list[Tensor]:
        """Run like `run_here`, with checked arguments in the executor's order, without a report.

        `size` is the size of the arguments (see `size_of`).
        """
        began = _now()
        own = CancellationManager(cancellation) if compiled.executor.calls_functions else None
        step = Step(self.state, own or cancellation, self._files, functions)
        try:
            values = compiled.executor.run_noted(step, arguments, began, size)
        finally:
            if own is not None:
                own.detach()
        positions = compiled.fetch_positions
        return values if positions == _ONLY else list(map(values.__getitem__, positions))

    def new_step(
        self,
        functions: FunctionRunner | None,
        cancellation: CancellationManager,
        pool: ThreadPool | None,
        files: FileGate | None = None,
        collector: StepStatsCollector | None = None,
        owner: Hashable = None,
    ) -> Step:
        """Return the state of one run; if `files` is None, the gate of the session is used.

        `owner` is the owner of the tasks that the step adds to `pool`.
        """
        return Step(
            self.state,
            cancellation,
            files or self._files,
            functions,
            runner=None
            if pool is None
            else functools.partial(pool.schedule, owner=owner, ended=cancellation.error),
            can_run_in_parallel=pool is not None and pool.num_threads > 1,
            is_low_priority=pool is not None and pool.low_priority,
            collector=collector,
        )

    def _report(self, request: RunRequest, compiled: CompiledStep) -> MetadataRequest | None:
        """Return the report that the step must fill, or None if nothing is to be reported."""
        options = request.options
        if not self.reports_every_step and (
            request.metadata is None
            or not (
                self._has_metadata
                or (options is not None and options.trace_level)
                or (options is not None and options.output_partition_graphs)
            )
        ):
            return None
        return MetadataRequest(
            request.metadata, options, self._config, self._device, compiled.executor
        )


def feed_arguments(
    compiled: CompiledStep, request: RunRequest, resources: ResourceManager
) -> list[Tensor]:
    """Return the feeds in the executor's order; Python numbers, strings and lists become arrays.

    Arrays of another byte order, or of strings of a fixed length, are converted.
    The handle of a session tensor is replaced by the tensor. Arrays that the step may keep are
    copied, unless the request gives them. Raises InvalidArgumentError if an array has the wrong
    element type, if another value can't become an array of it, or if a handle belongs to any other
    resource.
    """
    arguments = []
    is_kept = compiled.executor.keeps_feeds and not request.gives_feeds
    for position, name in enumerate(compiled.feeds):
        value = request.feeds[name]
        wanted = compiled.feed_types[position]
        if isinstance(value, ResourceHandle):
            value = session_tensor(resources, value)
        if (
            type(value) is not np.ndarray
            or value.dtype != wanted.numpy
            or (wanted is _STRING and not request.gives_feeds)
        ):
            value = argument(value, wanted, position, name)
        arguments.append(value.copy() if is_kept and isinstance(value, np.ndarray) else value)
    return arguments


def argument(value: Tensor, wanted: DataType, position: int, name: str) -> Tensor:
    """Return a fed value as an array of `wanted`; raise InvalidArgumentError if it is none.

    A masked array or a matrix gives the plain array of its elements, as in TensorFlow.
    """
    if isinstance(value, np.ndarray):
        value = np.asarray(value)
    elif not isinstance(value, np.generic):
        return _converted(value, wanted, position, name)
    if value.dtype != wanted.numpy:
        return checked_argument(value, wanted, position)
    if wanted is DataType.STRING and not _has_bytes_only(value):
        return _converted(value, wanted, position, name)
    return value


def checked_argument(value: np.ndarray | np.generic, wanted: DataType, position: int) -> Tensor:
    """Return an array whose dtype is not that of `wanted` as one that has it.

    Raises InvalidArgumentError if its elements are others.

    TF: tensorflow/python/client/session.py (_run converts feeds by `np.asarray`)
    """
    if not has_elements(value.dtype, wanted):
        raise InvalidArgumentError(
            f"Expects arg[{position}] to be {wanted.tf_name} but "
            f"{from_numpy(value.dtype).tf_name} is provided"
        )
    return _as_array(value, wanted)


def has_elements(dtype: np.dtype, wanted: DataType) -> bool:
    """Return whether an array has elements of a type, in any byte order, or of a fixed length."""
    found = from_numpy(dtype)
    return found is wanted or (wanted.numpy.kind != "O" and found.numpy == wanted.numpy)


def _converted(value: Tensor, wanted: DataType, position: int, name: str) -> Tensor:
    """Return a feed that is no array as one; raise InvalidArgumentError if it can't be one."""
    try:
        return _as_array(value, wanted)
    except Exception as error:  # a conversion of the value's own may raise anything
        raise InvalidArgumentError(
            f"Expects arg[{position}] to be {wanted.tf_name} but {reprlib.repr(value)} is provided "
            f"for {name}: {error}"
        ) from None


def _has_bytes_only(value: np.ndarray) -> bool:
    return all(issubclass(each, bytes) for each in set(map(type, value.ravel().tolist())))


def _as_array(value: Tensor, wanted: DataType) -> Tensor:
    if wanted is DataType.STRING:
        array = np.array(value, object)
        flat = np.empty(array.size, object)
        flat[:] = [as_bytes(item) for item in array.ravel()]
        return flat.reshape(array.shape)
    if wanted.numpy.kind == "O":  # a resource or a variant stays the object it is
        return value
    return np.asarray(value, wanted.numpy)
