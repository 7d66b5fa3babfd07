"""DirectSession: a graph and its state in this process.

Guarantees: every method may be called from any thread. A run keeps the graph that it began with;
an extend is atomic. `close` cancels all running steps and refuses new ones. A step that fails, is
cancelled or runs out of time leaves the session usable.

Locks: `_lock` guards `_graph`, `_is_closed`, the callables and partial runs; it is never held while
a step runs. Resources, the executor cache and the pools have locks of their own.

TF: tensorflow/core/common_runtime/direct_session.cc
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.devices.device import Device
from runtime.executors.compiler import compile_step, executor_factory, function_caller
from runtime.executors.dataflow import DataflowExecutor
from runtime.executors.step import FunctionCaller, Step
from runtime.executors.step_stats import StepStatsCollector
from runtime.foundation.deadline_timer import Timeout, deadline_timer
from runtime.foundation.errors import (
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    OpError,
)
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.file_gate import AllowAll
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import FileGate
from runtime.framework.resource_manager import ResourceManager
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.placer import place
from runtime.graph.pruning import find_endpoint
from runtime.sessions.executor_cache import CompiledStep, ExecutorCache
from runtime.sessions.partial_runs import PartialRuns
from runtime.sessions.run_metadata import MetadataRequest
from runtime.sessions.runtime_session import RunRequest, RuntimeSession, Tensor
from runtime.sessions.session_options import SessionOptions
from runtime.sessions.session_pools import SessionPools
from runtime.sessions.session_template import SessionTemplate

_INLINE_SECONDS = 0.0002  # a step that measured shorter may run in the caller's thread
_DEFAULT_OPTIONS = pb.RunOptions()


class _KernelStates:
    """The part of the session that kernels see (runtime.framework.op_kernel.SessionState)."""

    def __init__(self, resources: ResourceManager, session_handle: str) -> None:
        self.resources = resources
        self.kernel_state: dict[str, Any] = {}
        self.kernel_state_lock = threading.RLock()  # guards the creation of entries
        self.session_handle = session_handle


class DirectSession(RuntimeSession):
    """A session of the direct runtime."""

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
        self._executor_factory = executor_factory(options.config.experimental.executor_type)
        self._lock = threading.Lock()
        self._graph: Graph | None = None
        self._call_function: FunctionCaller | None = None
        self._cache = ExecutorCache()
        if template is not None:
            # Steps of the unchanged template compile into its cache, for all its sessions.
            self._cache = template.cache
            self._set_graph(template.graph)
        self._template = template
        self._is_closed = False
        self._is_finalized = False
        self._cancellation = CancellationManager()
        self._state = _KernelStates(
            resources or options.resources or ResourceManager(), self.session_handle
        )
        self._files = options.files or AllowAll()
        self.graph_version = 0
        self._partial_runs = PartialRuns()
        self._callables: dict[int, pb.CallableOptions] = {}
        self._next_callable = 1
        self._measured: dict[int, float] = {}  # id of an executor → seconds of its last run

    # The graph

    def create(self, graph_def: pb.GraphDef) -> None:
        """Give the session its graph. An empty one changes nothing."""
        self._check_open()
        if not graph_def.node:
            return
        with self._lock:
            if self._graph is not None:
                raise AlreadyExistsError("A Graph has already been created for this session.")
            self._set_graph(self._extended(Graph(), graph_def))

    def extend(self, graph_def: pb.GraphDef) -> None:
        """Add nodes and functions, or nothing at all when any of them is refused."""
        self._check_open()
        with self._lock:
            self._check_not_finalized()
            is_first = self._graph is None
            graph = self._extended(self._graph or Graph(), graph_def)
            if self._template is not None and self._cache is self._template.cache:
                self._cache = ExecutorCache(parent=self._template.cache)
            self._set_graph(graph)
            if not is_first:
                self.graph_version += 1

    def _set_graph(self, graph: Graph) -> None:
        self._call_function = function_caller(graph.library, self._kernels)
        self._graph = graph

    def _extended(self, graph: Graph, graph_def: pb.GraphDef) -> Graph:
        extended = extend_graph(graph, graph_def, self.options.max_graph_nodes)
        config = self.options.config
        fresh = [extended.nodes[node.name] for node in graph_def.node]
        if not config.graph_options.place_pruned_graph:
            place(fresh, self._devices, config.allow_soft_placement)
        return extended

    def graph_def(self) -> pb.GraphDef:
        """The graph as it is now."""
        return (self._graph or Graph()).to_graph_def()

    def tensor_info(self, name: str) -> tuple[DataType, tuple[int, ...] | None]:
        """Element type of an output, and its static shape when the node states one.

        Raises as a run that feeds or fetches `name`.
        """
        node, index = find_endpoint(self._graph_for("Run"), name)
        shapes = node.find_attr("_output_shapes")
        if shapes:
            return node.output_types[index], shapes[index]
        if node.op.startswith("Placeholder"):
            return node.output_types[index], node.attr("shape")
        return node.output_types[index], None

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
        request = RunRequest(feeds, fetches, targets, options, metadata)
        pool = self._choose_pool(request)
        if pool is None and not self._timeout_seconds(request):
            return self._run_here(request)
        return self.run_async(request).result()

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Start one step; its future ends at the deadline, even when a kernel does not."""
        run = _Run(self, request)
        try:
            self._check_open()
            pool = self._choose_pool(request)
            if pool is not None and request.allow_inline and self._is_short(request):
                pool = None
            run.start(pool)
        except OpError as error:
            run.finish(None, error)
        return run.future

    def _run_here(self, request: RunRequest) -> list[Tensor]:
        """Run in this thread, without a future."""
        self._check_open()
        cancellation = request.cancellation or CancellationManager(self._cancellation)
        try:
            compiled = self._compiled(request)
            report = self._report(request, compiled)
            step = self._new_step(
                cancellation, None, report.collector if report else None, request.files
            )
            values = compiled.executor.run(step, self._arguments(compiled, request))
            if report is not None:
                report.fill()
            return [values[position] for position in compiled.fetch_positions]
        finally:
            if request.cancellation is None:
                cancellation.detach()

    def _compiled(self, request: RunRequest) -> CompiledStep:
        key = (tuple(request.feeds), tuple(request.fetches), tuple(request.targets))
        found = self._cache.find(key)
        if found is not None:
            return found
        graph = self._graph_for("Run")
        self._check_not_finalized()
        return self._cache.find_or_compile(
            graph,
            key,
            lambda feeds, fetches, targets: compile_step(
                graph, self._kernels, feeds, fetches, targets, self._executor_factory
            ),
        )

    def _is_short(self, request: RunRequest) -> bool:
        key = (tuple(request.feeds), tuple(request.fetches), tuple(request.targets))
        found = self._cache.find(key)
        if found is None or found.executor.may_block:
            return False
        return self._measured.get(id(found.executor), 1.0) < _INLINE_SECONDS

    def _arguments(self, compiled: CompiledStep, request: RunRequest) -> list[Tensor]:
        arguments = []
        for position, name in enumerate(compiled.feeds):
            value = request.feeds[name]
            wanted = compiled.feed_types[position]
            if isinstance(value, np.ndarray | np.generic) and value.dtype != wanted.numpy:
                raise InvalidArgumentError(
                    f"Expects arg[{position}] to be {wanted.tf_name} but "
                    f"{from_numpy(value.dtype).tf_name} is provided"
                )
            arguments.append(value)
        return arguments

    def _new_step(
        self,
        cancellation: CancellationManager,
        pool: ThreadPool | None,
        collector: StepStatsCollector | None = None,
        files: FileGate | None = None,
    ) -> Step:
        if self._call_function is None:
            self._graph_for("Run")  # raises: there is no graph
        return Step(
            self._state,
            cancellation,
            files or self._files,
            self._call_function,
            runner=pool.schedule if pool is not None else None,
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

    def _choose_pool(self, request: RunRequest) -> ThreadPool | None:
        if request.pool is not None:
            return request.pool
        return self._pools.choose((request.options or _DEFAULT_OPTIONS).inter_op_thread_pool)

    def _timeout_seconds(self, request: RunRequest) -> float:
        options = request.options
        milliseconds = options.timeout_in_ms if options is not None else 0
        if milliseconds <= 0:
            milliseconds = self.options.config.operation_timeout_in_ms
        return max(0, milliseconds) / 1000

    def deadline_of(self, request: RunRequest) -> float | None:
        """The instant (`time.monotonic()`) at which a request has to be over, or None."""
        if request.deadline is not None:
            return request.deadline
        seconds = self._timeout_seconds(request)
        return time.monotonic() + seconds if seconds else None

    def _graph_for(self, what: str) -> Graph:
        graph = self._graph
        if graph is None:
            raise InvalidArgumentError(f"Session was not created with a graph before {what}()!")
        return graph

    # Partial runs and callables

    def partial_run_setup(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> str:
        """Begin a step in parts, in the threads that run its parts."""
        self._check_open()
        graph = self._graph_for("PRunSetup")
        self._check_not_finalized()
        executor = compile_step(graph, self._kernels, feeds, fetches, targets, DataflowExecutor)
        assert isinstance(executor, DataflowExecutor)
        step = self._new_step(CancellationManager(self._cancellation), None)
        return self._partial_runs.set_up(executor, step, feeds, fetches, targets)

    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed and fetch a part; errors as `PartialRun.run_part`."""
        self._check_open()
        return self._partial_runs.run_part(handle, feeds, fetches)

    def make_callable(self, options: pb.CallableOptions) -> int:
        """Check and compile a step; feeds, fetches and targets as for `run`."""
        self._check_open()
        self._graph_for("MakeCallable")
        self._check_not_finalized()
        self._compiled(RunRequest(dict.fromkeys(options.feed), options.fetch, options.target))
        with self._lock:
            handle = self._next_callable
            self._next_callable += 1
            self._callables[handle] = options
            return handle

    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step."""
        self._check_open()
        options = self._callable(handle)
        if len(feeds) != len(options.feed):
            raise InvalidArgumentError(
                f"Expected {len(options.feed)} feed tensors, but got {len(feeds)}"
            )
        named = dict(zip(options.feed, feeds, strict=True))
        return self.run(named, options.fetch, options.target, options.run_options, metadata)

    def _callable(self, handle: int) -> pb.CallableOptions:
        options = self._callables.get(handle)
        if options is not None:
            return options
        if 0 < handle < self._next_callable:
            raise InvalidArgumentError("Attempted to run callable after handle was released")
        raise InvalidArgumentError("No such callable handle")

    def release_callable(self, handle: int) -> None:
        """Forget a prepared step; InvalidArgumentError for a handle that was never given."""
        self._check_open()
        with self._lock:
            if not 0 < handle < self._next_callable:
                raise InvalidArgumentError(f"ReleaseCallable called with invalid handle: {handle}")
            self._callables.pop(handle, None)

    # State

    def freeze_template(self) -> SessionTemplate:
        """The graph, executors and resources as they are now, for others to start from."""
        return SessionTemplate(
            self._graph_for("Run"), self._cache, self._state.resources.fork(), self._kernels
        )

    def finalize(self) -> None:
        """Accept no graph, step or callable that is not compiled already."""
        self._check_open()
        self._is_finalized = True

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
        """The compiled steps, with hit and miss counters."""
        return self._cache

    @property
    def bytes_held(self) -> int:
        """Bytes of tensors that this session alone keeps alive."""
        return self._state.resources.bytes_held

    def list_devices(self) -> list[pb.DeviceAttributes]:
        """The devices, the client device first."""
        self._check_open()
        return [device.to_proto() for device in self._devices]

    def close(self) -> None:
        """Cancel running steps and refuse new ones. Closing again changes nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        error = CancelledError("Session has been closed.")
        self._cancellation.cancel(error)
        self._partial_runs.close(error)

    def destroy(self) -> None:
        """Close, end the session's own pools, and let go of graph and resources."""
        self.close()
        self._pools.shutdown()
        if self.options.resources is None:
            self._state.resources.clear()
        self._state.kernel_state.clear()
        self._callables.clear()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise CancelledError("Session has been closed.")

    def _check_not_finalized(self) -> None:
        if self._is_finalized:
            raise FailedPreconditionError("Session has been finalized.")


class _Run:
    """One asynchronous step: from its request to the end of its future."""

    __slots__ = ("_compiled", "_pool", "_report", "_request", "_session", "_timeout", "_token",
                 "cancellation", "future")  # fmt: skip

    def __init__(self, session: DirectSession, request: RunRequest) -> None:
        self._session = session
        self._request = request
        self._pool: ThreadPool | None = None
        self._timeout: Timeout | None = None
        self._report: MetadataRequest | None = None
        self._compiled: CompiledStep | None = None
        self.future: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()
        self.cancellation = CancellationManager(session._cancellation)
        self._token: int | None = None

    def start(self, pool: ThreadPool | None) -> None:
        """Run on `pool`, or here and now."""
        given = self._request.cancellation
        if given is not None:
            self._token = given.add_callback(lambda: self.cancellation.cancel(given.error[0]))
            if self._token is None:
                given.check()
        deadline = self._session.deadline_of(self._request)
        if deadline is not None:
            self._timeout = deadline_timer.call_at(deadline, self._expire)
        self._pool = pool
        if pool is None:
            self._execute()
            return
        self.cancellation.add_callback(self._answer_cancelled)
        pool.schedule(self._execute)

    def _expire(self) -> None:
        self.cancellation.cancel(DeadlineExceededError("Timed out waiting for notification"))

    def _answer_cancelled(self) -> None:
        """The future ends at once; what still runs behind it ends when it notices."""
        self._resolve(None, self.cancellation.copy_of_error())

    def _execute(self) -> None:
        if self.cancellation.error:
            self.finish(None, self.cancellation.copy_of_error())
            return
        try:
            session = self._session
            self._compiled = session._compiled(self._request)
            arguments = session._arguments(self._compiled, self._request)
            self._report = report = session._report(self._request, self._compiled)
            step = session._new_step(
                self.cancellation,
                self._pool,
                report.collector if report else None,
                self._request.files,
            )
            executor = self._compiled.executor
            started = time.monotonic()
            executor.run_async(step, arguments, self.finish)
            if not executor.may_block:
                session._measured[id(executor)] = time.monotonic() - started
        except OpError as error:
            self.finish(None, error)
        except Exception as error:
            self.finish(None, InternalError(f"{type(error).__name__}: {error}"))
            raise

    def finish(self, values: list[Any] | None, error: OpError | None) -> None:
        """The executor has ended."""
        if self._timeout is not None:
            self._timeout.cancel()
        if self._request.cancellation is not None:
            self._request.cancellation.remove_callback(self._token)
        self.cancellation.detach()
        if error is not None or values is None or self._compiled is None:
            cancelled = self.cancellation.error
            if cancelled and cancelled[0].code == DeadlineExceededError.code:
                error = self.cancellation.copy_of_error()
            self._resolve(None, error or InternalError("A step ended without values"))
            return
        if self._report is not None:
            self._report.fill()
        self._resolve([values[i] for i in self._compiled.fetch_positions], None)

    def _resolve(self, values: list[Any] | None, error: OpError | None) -> None:
        """Set the future once; a deadline or a close may have been faster."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result(values or [])
