"""DirectSession: a session whose graph, state and steps are in this process.

Guarantees: every method may be called from any thread. A run keeps the graph with which it started;
`extend` is atomic. `close` cancels all running steps and refuses new ones. The session stays usable
after a step that fails, is cancelled or exceeds its deadline.

Locks: `_lock` guards `_is_closed`; it is never held while a step runs. The graph, resources, the
executor cache, callables, partial runs and pools have locks of their own.

TF: tensorflow/core/common_runtime/direct_session.cc
"""

from __future__ import annotations

import concurrent.futures
import secrets
import threading
import time
from collections.abc import Mapping, Sequence

import protos as pb
from runtime.devices.device import Device
from runtime.executors.step import Executor, Step
from runtime.executors.step_stats import StepStatsCollector
from runtime.foundation.errors import CancelledError, InternalError, OpError
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import RUN_CANCELLED, CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import AllowAll
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import FileGate
from runtime.framework.resource_manager import ResourceManager
from runtime.sessions.direct.asynchronous_step import AsynchronousStep, forget_frames
from runtime.sessions.direct.callables import Callable, Callables
from runtime.sessions.direct.executor_cache import CompiledStep, ExecutorCache
from runtime.sessions.direct.kernel_states import KernelStates
from runtime.sessions.direct.partial_runs import PartialRuns
from runtime.sessions.direct.prepared_step import PreparedStep, feed_arguments
from runtime.sessions.direct.run_metadata import MetadataRequest
from runtime.sessions.direct.session_graph import SessionGraph
from runtime.sessions.direct.session_pools import SessionPools
from runtime.sessions.direct.session_template import SessionTemplate
from runtime.sessions.direct.step_compiler import StepCompiler
from runtime.sessions.direct.step_limits import StepLimits
from runtime.sessions.runtime_session import RunRequest, RuntimeSession, Tensor
from runtime.sessions.session_counts import session_counts
from runtime.sessions.session_options import SessionOptions

RUNTIME_TYPE = "DIRECT_SESSION"
_INLINE_SECONDS = 0.0002  # a step with a shorter measured duration may run in the caller's thread
_now = time.monotonic


class DirectSession(RuntimeSession):
    """A session of the direct runtime (target "")."""

    def __init__(
        self,
        options: SessionOptions,
        devices: Sequence[Device],
        pools: SessionPools,
        kernels: KernelRegistry,
        template: SessionTemplate | None = None,
        resources: ResourceManager | None = None,
    ) -> None:
        self.options = options
        self.session_handle = f"direct{secrets.token_hex(8)}"
        self._devices = list(devices)
        self._pools = pools
        self._kernels = kernels
        self._limits = StepLimits(options.config, pools)
        self._graph = SessionGraph(
            options, StepCompiler(options.config, devices, kernels), template
        )
        self._lock = threading.Lock()
        self._is_closed = False
        self._cancellation = CancellationManager()
        self._state = KernelStates(
            resources or options.resources or ResourceManager(), self.session_handle, self._devices
        )
        self._files = options.files or AllowAll()
        self._partial_runs = PartialRuns()
        self._callables = Callables()

    # The graph

    def create(self, graph_def: pb.GraphDef) -> None:
        """Set the session's graph; an empty graph changes nothing.

        Raises AlreadyExistsError when the session has a graph, and what `extend` raises.
        """
        self._check_open()
        if graph_def.node:
            self._graph.create(graph_def)

    def extend(self, graph_def: pb.GraphDef) -> None:
        """Add nodes and functions; the graph is unchanged when this raises."""
        self._check_open()
        self._graph.extend(graph_def)

    def graph_def(self) -> pb.GraphDef:
        """The current graph."""
        return self._graph.to_graph_def()

    @property
    def graph_version(self) -> int:
        """The number of times that the graph was extended."""
        return self._graph.version

    def tensor_info(self, name: str) -> tuple[DataType, tuple[int, ...] | None]:
        """The element type of an output, and its static shape; None if the node declares none.

        Raises what a run that fetches `name` raises.
        """
        return self._graph.tensor_info(name)

    # Runs

    def run(
        self,
        feeds: Mapping[str, Tensor],
        fetches: Sequence[str] = (),
        targets: Sequence[str] = (),
        options: pb.RunOptions | None = None,
        metadata: pb.RunMetadata | None = None,
    ) -> list[Tensor]:
        """Run one step and wait for it."""
        return self._run_and_wait(RunRequest(feeds, fetches, targets, options, metadata), None)

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Start one step; its future ends at the deadline, even when a kernel does not."""
        return self._start(request, None)

    def _start(
        self, request: RunRequest, compiled: CompiledStep | None
    ) -> concurrent.futures.Future[list[Tensor]]:
        if request.allow_inline and not self._is_closed:
            compiled = compiled or self._graph.find_compiled(request)
            if compiled is not None and _is_short(compiled.executor):
                return self._run_inline(request, compiled)
        step = AsynchronousStep(
            lambda cancellation, pool: self._prepare(request, cancellation, pool, compiled),
            self._cancellation,
            request.cancellation,
        )
        try:
            self._check_open()
            step.start(self._limits.pool_of(request), self._limits.deadline_of(request))
        except OpError as error:
            step.finish(None, error)
        return step.future

    def _run_inline(
        self, request: RunRequest, compiled: CompiledStep
    ) -> concurrent.futures.Future[list[Tensor]]:
        """Run a short step here and now: it is over before anything could cancel it."""
        future: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()
        cancellation = request.cancellation or self._cancellation
        try:
            cancellation.check()
            self._limits.pool_of(request)  # raises for an index that no pool has
            prepared = self._prepare(request, cancellation, None, compiled)
            future.set_result(prepared.run_measured())
        except OpError as error:
            forget_frames(error)
            future.set_exception(error)
        except Exception as error:  # a fault of ours: the caller reads it where it waits
            fault = InternalError(f"{type(error).__name__}: {error}")
            fault.__cause__ = error
            future.set_exception(fault)
        return future

    def _run_and_wait(self, request: RunRequest, compiled: CompiledStep | None) -> list[Tensor]:
        """Run in this thread without a future where the options say so, else on a pool."""
        self._check_open()
        if self._limits.pool_of(request) is not None or self._limits.timeout_seconds(request):
            return self._start(request, compiled).result()
        cancellation = CancellationManager(self._cancellation)
        try:
            return self._prepare(request, cancellation, None, compiled).run()
        finally:
            cancellation.detach()

    def _prepare(
        self,
        request: RunRequest,
        cancellation: CancellationManager,
        pool: ThreadPool | None,
        compiled: CompiledStep | None,
    ) -> PreparedStep:
        if compiled is None:
            compiled = self._graph.compiled(request)
        began = _now()
        arguments = feed_arguments(compiled, request, self._state.resources)
        report = self._report(request, compiled)
        collector = report.collector if report is not None else None
        step = self._new_step(cancellation, pool, collector, request.files)
        return PreparedStep(compiled, step, arguments, report, began)

    def _new_step(
        self,
        cancellation: CancellationManager,
        pool: ThreadPool | None,
        collector: StepStatsCollector | None = None,
        files: FileGate | None = None,
    ) -> Step:
        return Step(
            self._state,
            cancellation,
            files or self._files,
            self._graph.functions,
            runner=pool.schedule if pool is not None else None,
            can_run_in_parallel=pool is not None and pool.num_threads > 1,
            is_low_priority=pool is not None and pool.low_priority,
            collector=collector,
        )

    def _report(self, request: RunRequest, compiled: CompiledStep) -> MetadataRequest | None:
        """What the step has to report; None in the common case of nothing."""
        if request.metadata is None and not self.options.config.graph_options.build_cost_model:
            return None
        return MetadataRequest(
            request.metadata,
            request.options,
            self.options.config,
            self._devices[0].name,
            compiled.executor,
        )

    # Partial runs and callables

    def partial_run_setup(
        self,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str] = (),
        pool: ThreadPool | None = None,
    ) -> str:
        """Start a partial run on `pool`, or in the threads that call `partial_run`; its handle."""
        self._check_open()
        executor = self._graph.compiled_in_parts(feeds, fetches, targets)
        step = self._new_step(CancellationManager(self._cancellation), pool)
        return self._partial_runs.set_up(executor, step, feeds, fetches, targets)

    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed some inputs of a partial run; the fetches. Raises as `PartialRun.start_part`."""
        return self.partial_run_async(handle, feeds, fetches).result()

    def partial_run_async(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> concurrent.futures.Future[list[Tensor]]:
        """Feed some inputs of a partial run; a future of the fetches.

        Raises InvalidArgumentError for wrong names; errors of the step are in the future.
        """
        self._check_open()
        return self._partial_runs.start_part(handle, feeds, fetches)

    def make_callable(self, options: pb.CallableOptions) -> int:
        """Check and compile a step; its handle. Raises what `run` and `connect_tensors` raise."""
        self._check_open()
        return self._callables.add(Callable(options, self._graph.compiled_callable(options)))

    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step; InvalidArgumentError for a bad handle or number of feeds."""
        self._check_open()
        made = self._callables.get(handle)
        return self._run_and_wait(made.request(feeds, metadata), made.compiled)

    def run_callable_async(
        self, handle: int, feeds: Sequence[Tensor], request: RunRequest
    ) -> concurrent.futures.Future[list[Tensor]]:
        """Start a prepared step; options, deadline, pool and cancellation are the request's.

        Raises as `run_callable` for a bad handle or number of feeds.
        """
        self._check_open()
        made = self._callables.get(handle)
        return self._start(made.filled_in(request, feeds), made.compiled)

    def release_callable(self, handle: int) -> None:
        """Release a prepared step; InvalidArgumentError for an unknown handle."""
        self._check_open()
        self._callables.release(handle)

    # State

    def freeze_template(self) -> SessionTemplate:
        """A template of the current graph, executors and resources, for new sessions.

        Later changes of this session's resources do not change the template.
        """
        resources = self._state.resources.fork() if self._state.is_shareable else None
        return SessionTemplate(
            self._graph.current("Run"), self._graph.cache, resources, self._kernels
        )

    def finalize(self) -> None:
        """Refuse graphs, and steps and callables that are not compiled yet, from now on."""
        self._check_open()
        self._graph.finalize()

    @property
    def resources(self) -> ResourceManager:
        """The session's resources."""
        return self._state.resources

    @property
    def thread_pools(self) -> list[ThreadPool]:
        """The session's pools, by the index of `RunOptions.inter_op_thread_pool`."""
        return list(self._pools.pools)

    @property
    def executor_cache(self) -> ExecutorCache:
        """The cache of compiled steps, with its hit and miss counters."""
        return self._graph.cache

    @property
    def bytes_held(self) -> int:
        """The bytes of tensors that only this session keeps alive."""
        return self._state.resources.bytes_held

    def list_devices(self) -> list[pb.DeviceAttributes]:
        """The devices of the session, the client device first."""
        self._check_open()
        return [device.to_proto() for device in self._devices]

    def close(self) -> None:
        """Cancel running steps and refuse new ones. Closing again has no effect."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        session_counts.session_closed(RUNTIME_TYPE)
        # The error of running steps, except those in a blocked op, which has an error of its own.
        error = CancelledError(RUN_CANCELLED)
        self._cancellation.cancel(error)
        self._partial_runs.close(error)

    def destroy(self) -> None:
        """Close, shut down the session's own pools, and release resources and callables."""
        self.close()
        self._pools.shutdown()
        self._state.end(self.options.resources is not None)
        self._callables.clear()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise CancelledError("Session has been closed.")


def _is_short(executor: Executor) -> bool:
    """Whether a run delays its caller's thread by less than _INLINE_SECONDS."""
    return (
        executor.duration.seconds < _INLINE_SECONDS
        and not executor.may_block
        and not executor.uses_threads
    )
