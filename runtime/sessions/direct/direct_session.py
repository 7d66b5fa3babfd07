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
import weakref
from collections.abc import Hashable, Mapping, Sequence

import protos as pb
from runtime.clusters.running.cluster_counts import ClusterSummary
from runtime.clusters.running.engine import EngineUse, known_use
from runtime.devices.device import Device
from runtime.executors.clustered import ClusterMode, ClusterOptions, prepare_engine
from runtime.executors.duration_estimate import size_of
from runtime.executors.step import Step
from runtime.foundation.errors import CancelledError, InternalError, OpError, ResourceExhaustedError
from runtime.foundation.priority_gate import gate
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import RUN_CANCELLED, CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.memory_account import (
    SESSION_SETTING,
    MemoryAccount,
    SessionAccount,
    process_account,
)
from runtime.framework.resource_manager import ResourceManager
from runtime.sessions.argument_types import check_message
from runtime.sessions.direct.arrays_of_callers import copies, owned
from runtime.sessions.direct.asynchronous_step import AsynchronousStep
from runtime.sessions.direct.callables import Callable, Callables
from runtime.sessions.direct.executor_cache import CompiledStep, ExecutorCache, spelled_key
from runtime.sessions.direct.kernel_states import KernelStates
from runtime.sessions.direct.partial_runs import PartialRuns
from runtime.sessions.direct.prepared_step import PreparedStep, StepPreparer
from runtime.sessions.direct.request_checks import check_names, check_request
from runtime.sessions.direct.session_graph import SessionGraph
from runtime.sessions.direct.session_pools import SessionPools
from runtime.sessions.direct.session_template import SessionTemplate
from runtime.sessions.direct.short_step import DirectShortStep, is_short
from runtime.sessions.direct.step_compiler import StepCompiler
from runtime.sessions.direct.step_in_place import StepInPlace, brief_size
from runtime.sessions.direct.step_limits import StepLimits
from runtime.sessions.runtime_session import RunRequest, RuntimeSession, ShortStep, Tensor
from runtime.sessions.session_counts import session_counts
from runtime.sessions.session_options import SessionOptions

RUNTIME_TYPE = "DIRECT_SESSION"
_now = time.monotonic


class DirectSession(RuntimeSession):
    """A session of the direct runtime, whose target is ""."""

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
        # Sessions of one template share compiled steps, and therefore how these are compiled.
        own = ClusterOptions(options.clusters, options.engine, options.precision)
        self._clusters = own if template is None else template.clusters
        self._graph = SessionGraph(
            options, StepCompiler(options.config, devices, kernels, self._clusters), template
        )
        self._lock = threading.Lock()
        self._is_closed = False
        self._cancellation = CancellationManager()
        self._state = KernelStates(
            resources or options.resources or ResourceManager(),
            self.session_handle,
            self._devices,
            self._new_account(),
        )
        if options.resources is None and options.max_session_bytes is not None:
            self._state.resources.limit_bytes(options.max_session_bytes)
        self._steps = StepPreparer(options, self._state, self._devices[0].name)
        self._partial_runs = PartialRuns()
        self._callables = Callables()

    def _new_account(self) -> SessionAccount | None:
        """Return the account of the session; None if neither it nor the process has a limit."""
        options = self.options
        limits = options.max_session_bytes, options.max_step_bytes
        if limits == (None, None) and not options.is_counted:
            return None
        parent: MemoryAccount | None = process_account if options.is_counted else None
        if options.resources is not None:
            parent = options.resources.shared_account(limits[0], SESSION_SETTING, parent)
        account = SessionAccount(*limits, parent)
        # An array may outlive the session and refers to the account.
        reference = weakref.ref(self)
        account.count_kept = lambda: 0 if (session := reference()) is None else session.bytes_held
        return account

    @property
    def memory(self) -> SessionAccount | None:
        """The account of the session's memory; None if neither it nor the process has a limit."""
        return self._state.memory

    def count_memory(self) -> None:
        """Count the memory of steps in the process's from now on; not that which is held already.

        A served model calls this after its weights are loaded.
        """
        if self._state.memory is None:
            self._state.memory = SessionAccount(None, None, process_account)

    # The graph

    def create(self, graph_def: pb.GraphDef) -> None:
        """Set the session's graph; an empty graph changes nothing.

        Raises AlreadyExistsError if the session has a graph, and what `extend` raises.
        """
        self._check_open()
        check_message("The graph", graph_def, pb.GraphDef)
        if graph_def.node:
            self._graph.create(graph_def, self._bytes_left())

    def extend(self, graph_def: pb.GraphDef) -> None:
        """Add nodes and functions to the graph; if this raises, the graph is unchanged.

        Raises ResourceExhaustedError if the session would hold more than `max_session_bytes`.
        """
        self._check_open()
        check_message("The graph", graph_def, pb.GraphDef)
        self._graph.extend(graph_def, self._bytes_left())

    def graph_def(self) -> pb.GraphDef:
        """Return the current graph."""
        return self._graph.to_graph_def()

    @property
    def graph_version(self) -> int:
        """The number of times that the graph was extended."""
        return self._graph.version

    def tensor_info(self, name: str) -> tuple[DataType, tuple[int, ...] | None]:
        """Return the element type and the static shape of an output; None if it declares no shape.

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
        """Run one step, wait for its end and return the fetched values, which are the caller's."""
        return owned(self._run_and_wait(RunRequest(feeds, fetches, targets, options, metadata)))

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Start one step and return its future.

        The future ends at the deadline, even if a kernel is still running.
        """
        step = AsynchronousStep(
            lambda cancellation, pool: self._prepare(request, cancellation, pool),
            self._cancellation,
            request.cancellation,
            request.owner,
        )
        try:
            self._check_open()
            check_request(request)
            step.start(self._limits.pool_of(request), self._limits.deadline_of(request))
        except OpError as error:
            step.finish(None, error)
        return step.future

    def run_if_short(self, request: RunRequest) -> list[Tensor] | None:
        """Run a step in this thread if it can't block and its runs were short; else return None.

        The step can't be cancelled, because it ends too soon. `request.pool` must be set.
        """
        compiled = request.compiled
        if compiled is None:
            key = spelled_key(request.feeds, request.fetches, request.targets)
            compiled = request.compiled = self._graph.cache.find(key)
        if compiled is None or self._is_closed:
            return None
        if not is_short(compiled.executor, self._state, size_of(request.feeds.values())):
            return None
        if request.cancellation is not None:
            request.cancellation.check()
        functions, cancellation = self._graph.functions, self._cancellation
        gate.ended += 1
        try:
            return self._steps.run_here(request, compiled, functions, cancellation)
        except OpError:
            raise
        except Exception as error:
            raise InternalError(f"{type(error).__name__}: {error}") from error

    def short_step(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> ShortStep | None:
        """Return the step of these names; None if every step of the session must be reported."""
        if self._steps.reports_every_step:
            return None
        key = spelled_key(feeds, fetches, targets)
        return DirectShortStep(key, self._graph, self._steps, self._cancellation)

    def has_lasting_effect(self, request: RunRequest) -> bool:
        """Return whether a step may change or keep state; compile it if it is new.

        Steps that read tables, iterators or files count as such too. Raises what compiling raises.
        """
        return self._graph.compiled(request).executor.has_lasting_effect

    def _run_and_wait(self, request: RunRequest) -> list[Tensor]:
        """Run in this thread if the request has neither pool nor time limit, else on a pool.

        A brief step without a time limit runs in this thread too, if a thread of its pool is idle.
        """
        self._check_open()
        check_request(request)
        pool = self._limits.pool_of(request)
        if self._limits.timeout_seconds(request):
            return self.run_async(request).result()
        compiled = self._plain_step(request)
        if pool is not None:
            values = None if compiled is None else self._run_in_place(request, compiled, pool)
            return self.run_async(request).result() if values is None else values
        if compiled is not None:
            return self._steps.run_plain(
                request, compiled, self._graph.functions, self._cancellation
            )
        cancellation = CancellationManager(self._cancellation)
        try:
            return self._prepare(request, cancellation, None).run()
        finally:
            cancellation.detach()

    def _plain_step(self, request: RunRequest) -> CompiledStep | None:
        """Return the compiled step if nothing is reported of it, and it waits for no other."""
        compiled = request.compiled
        if compiled is None:
            key = spelled_key(request.feeds, request.fetches, request.targets)
            compiled = request.compiled = self._graph.cache.find(key)
        if compiled is None or request.metadata is not None or self._steps.reports_every_step:
            return None
        return None if compiled.executor.may_block else compiled

    def _run_in_place(
        self, request: RunRequest, compiled: CompiledStep, pool: ThreadPool
    ) -> list[Tensor] | None:
        """Run a brief step in this thread, in place of one of the pool's; None: it did not run."""
        # A kernel of the session's own takes as long as it likes.
        if pool.low_priority or self.options.kernels:
            return None
        size = brief_size(compiled.executor, self._state, request.feeds.values())
        if size is None:
            return None
        functions, cancellation = self._graph.functions, self._cancellation
        step = StepInPlace(request, compiled, self._steps, functions, cancellation, size)
        return step.run_on(pool)

    def _prepare(
        self, request: RunRequest, cancellation: CancellationManager, pool: ThreadPool | None
    ) -> PreparedStep:
        request.began_at = time.perf_counter()
        compiled = request.compiled
        if compiled is None:
            compiled = self._graph.compiled(request)
        return self._steps.prepare(request, compiled, self._graph.functions, cancellation, pool)

    def _new_step(
        self, cancellation: CancellationManager, pool: ThreadPool | None, owner: Hashable = None
    ) -> Step:
        return self._steps.new_step(self._graph.functions, cancellation, pool, owner=owner)

    # Partial runs and callables

    def partial_run_setup(
        self,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str] = (),
        pool: ThreadPool | None = None,
        owner: Hashable = None,
    ) -> str:
        """Start a partial run and return its handle.

        It runs on `pool`, in the turns of `owner`; if `pool` is None, it runs in the threads that
        call `partial_run`.
        """
        self._check_open()
        self._check_bytes()
        executor, types = self._graph.compiled_in_parts(feeds, fetches, targets)
        cancellation = CancellationManager(self._cancellation)
        step = self._new_step(cancellation, pool, owner)
        typed = dict(zip(feeds, types, strict=True))
        return self._partial_runs.set_up(executor, step, typed, fetches, targets)

    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed some inputs of a partial run and return the values of `fetches`.

        Raises what `PartialRun.start_part` raises, and the error of the step.
        """
        return owned(self.partial_run_async(handle, copies(feeds), fetches).result())

    def partial_run_async(
        self,
        handle: str,
        feeds: Mapping[str, Tensor],
        fetches: Sequence[str],
        cancellation: CancellationManager | None = None,
    ) -> concurrent.futures.Future[list[Tensor]]:
        """Feed some inputs of a partial run and return a future of the values of `fetches`.

        Until the future is complete, `cancellation` can end the whole run. Raises
        InvalidArgumentError if a name is wrong; errors of the step are in the future.
        """
        self._check_open()
        check_request(RunRequest(feeds, fetches))
        check_names("fetches", fetches)
        return self._partial_runs.start_part(handle, feeds, fetches, cancellation)

    def make_callable(self, options: pb.CallableOptions) -> int:
        """Check and compile a step and return its handle.

        Raises what `run` and `connect_tensors` raise.
        """
        self._check_open()
        check_message("The options of a callable", options, pb.CallableOptions)
        self._check_bytes()
        return self._callables.add(Callable(options, self._graph.compiled_callable(options)))

    def callable(self, handle: int) -> Callable:
        """Return the prepared step of `handle`.

        Raises InvalidArgumentError if the handle was released or never given.
        """
        self._check_open()
        return self._callables.get(handle)

    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step and return the fetched values.

        Raises InvalidArgumentError if the handle or the number of feeds is wrong.
        """
        return owned(self._run_and_wait(self.callable(handle).request(feeds, metadata)))

    def release_callable(self, handle: int) -> None:
        """Release a prepared step; raise InvalidArgumentError if its handle was never given."""
        self._check_open()
        self._callables.release(handle)

    # State

    def freeze_template(self) -> SessionTemplate:
        """Return a template of the graph, executors and resources, from which sessions can start.

        Later changes of this session's resources do not change the template. The steps that were
        compiled so far are dropped: they have restored and initialised the session, which no
        session of the template does again, and were a third of the objects of a loaded model.
        """
        self._graph.drop_compiled()
        resources = self._state.resources.fork() if self._state.is_shareable else None
        return SessionTemplate(
            self._graph.current("Run"),
            self._graph.cache,
            resources,
            self._kernels,
            self._clusters,
        )

    def finalize(self) -> None:
        """Refuse new graphs, and steps and callables that are not compiled yet, from now on."""
        self._check_open()
        self._graph.finalize()

    @property
    def resources(self) -> ResourceManager:
        """The session's resources."""
        return self._state.resources

    @property
    def thread_pools(self) -> list[ThreadPool]:
        """The session's pools; `RunOptions.inter_op_thread_pool` is an index into this list."""
        return list(self._pools.pools)

    @property
    def executor_cache(self) -> ExecutorCache:
        """The cache of compiled steps, with its hit and miss counters."""
        return self._graph.cache

    @property
    def nodes_for_collector(self) -> int:
        """The number of nodes that only the garbage collector frees when the session is gone."""
        return self._graph.nodes_for_collector

    def clusters(self) -> dict[tuple[str, ...], list[ClusterSummary]]:
        """Return the clusters of each compiled step that has some, by the step's fetches."""
        return self._graph.cache.clusters()

    def engine(self) -> EngineUse | None:
        """Return what computes the clusters of this session.

        None if they are off, or if no session of the process has wanted the engine until now.
        """
        if self._clusters.mode(self.options.config) is ClusterMode.OFF:
            return None
        return known_use(self._clusters.choice)

    def prepare_engine(self) -> None:
        """Have the engine imported in the background if it was named.

        So the log says at once if it is missing. Otherwise the first step that is worth it does so.
        """
        prepare_engine(self._clusters, self.options.config)

    @property
    def bytes_held(self) -> int:
        """The bytes that only this session keeps: its resources, graph and compiled steps.

        Sessions that share a resource manager have its resources in common.
        """
        return (
            self._state.bytes_held
            + self._graph.bytes_held
            + self._partial_runs.bytes_held
            + self._callables.bytes_held
        )

    def _bytes_left(self) -> int | None:
        limit = self.options.max_session_bytes
        return None if limit is None else max(0, limit - self.bytes_held)

    def _check_bytes(self) -> None:
        if self._bytes_left() == 0:
            raise ResourceExhaustedError(
                f"The session holds {self.bytes_held} bytes; "
                f"sessions.max_session_bytes is {self.options.max_session_bytes}"
            )

    def list_devices(self) -> list[pb.DeviceAttributes]:
        """Return the devices of the session, the client device first."""
        self._check_open()
        return [device.to_proto() for device in self._devices]

    def close(self) -> None:
        """Cancel running steps and refuse new ones. Closing again has no effect."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        session_counts.session_closed(RUNTIME_TYPE)
        # Running steps end with this error, unless they wait in an op that has an error of its own.
        error = CancelledError(RUN_CANCELLED)
        self._cancellation.cancel(error)
        self._partial_runs.close(error)

    def destroy(self) -> None:
        """Close, shut down pools that only this session uses, release resources and callables."""
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
