"""The session service: open, run, extend, close. REST and gRPC are thin fronts of it.

Guarantees: used from one event loop; what may take long (building graphs, closing) happens on
threads of its own; a step's answer comes at its deadline or cancellation at the latest; a lease
does not run out while something works on the session.

TF: tensorflow/core/distributed_runtime/master.h (Master), master_session.h
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import protos as pb
from runtime.api import (
    RUN_CANCELLED,
    CancellationManager,
    FolderGate,
    RunRequest,
    SessionOptions,
    ThreadPool,
    load_meta_graph_into_session,
    new_session,
)
from runtime.errors import (
    AbortedError,
    Code,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
)
from server.metrics import Metrics
from server.priorities import Priorities, Priority
from server.sessions.lease import Clock, Lease, check_lease_seconds
from server.sessions.open_session import OpenSession
from server.sessions.registry import CLOSED_MESSAGE, SessionRegistry, new_session_id
from server.sessions.requests import (
    CreateRequest,
    ModelSource,
    OpenedModel,
    StepRequest,
    as_direct_session,
    check_names,
)
from server.sessions.session_config import runs_in_caller, session_config
from server.sessions.step_waiter import wait_for_step
from server.settings import Settings

_log = logging.getLogger(__name__)
T = TypeVar("T")

REAP_INTERVAL_SECONDS = 1.0  # how late a lease may be noticed; calls notice at once
BUILDING_THREADS = 2  # sessions that are opened or extended at the same time
CALLER_THREADS = 8  # steps that run "in the caller's thread", which must not be the event loop

Starter = Callable[[RunRequest], concurrent.futures.Future[list[Any]]]
ModelOpener = Callable[[ModelSource, SessionOptions], OpenedModel]


class SessionService:
    """The sessions of one server."""

    def __init__(
        self,
        settings: Settings,
        priorities: Priorities,
        metrics: Metrics,
        *,
        open_model: ModelOpener,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings.sessions
        self._pool_settings = settings.thread_pools
        self._priorities = priorities
        self._metrics = metrics
        self._open_model = open_model
        self._clock = clock or Clock()
        self._registry = SessionRegistry(settings.sessions.max_open, self._clock)
        self._files = FolderGate(settings.sessions.allowed_paths, write=True)
        self._builders = ThreadPool("sessions", BUILDING_THREADS)
        self._callers = ThreadPool("callers", CALLER_THREADS)
        metrics.watch_sessions(lambda: len(self._registry))

    # --- opening and closing ------------------------------------------------------------------

    async def create(self, request: CreateRequest) -> OpenSession:
        """Open a session.

        Raises InvalidArgumentError for a bad config or lease, NotFoundError for an unknown model,
        UnavailableError for one that is loading, TooManySessionsError at the limit; no session is
        left behind.
        """
        if not self._settings.enabled:
            raise PermissionDeniedError("This server opens no sessions (sessions.enabled: false)")
        seconds = self._lease_seconds(request.lease_seconds, self._settings.default_lease_seconds)
        config = session_config(request.config, self._settings, self._pool_settings)
        options = SessionOptions(
            config=config,
            files=self._files,
            max_graph_nodes=self._settings.max_graph_nodes,
            resources=request.resources,
        )
        with self._registry.place():
            made = await self._made(request, options)
            opened = OpenSession(
                id=new_session_id(),
                session=made.session,
                name=request.name,
                model=_describe_model(request.model, made),
                shared_weights=made.shared_weights,
                lease=Lease(seconds, self._clock.monotonic()),
                clock=self._clock,
                operation_timeout_ms=config.operation_timeout_in_ms,
                runs_in_caller=runs_in_caller(config),
                last_used_at=self._clock.wall(),
            )
            self._registry.add(opened)
        self._metrics.session_opened()
        _log.info("Session opened", extra={"session": opened.id, "model": opened.model})
        return opened

    async def _made(self, request: CreateRequest, options: SessionOptions) -> OpenedModel:
        """A session from a builder thread; it is destroyed when the caller has gone meanwhile."""
        making = _submit(self._builders, lambda: self._make(request, options))
        try:
            return await asyncio.wrap_future(making)
        except asyncio.CancelledError:
            making.add_done_callback(_destroy)
            raise

    def _make(self, request: CreateRequest, options: SessionOptions) -> OpenedModel:
        """Runs on a builder thread."""
        if request.model is not None:
            return self._open_model(request.model, options)
        if request.meta_graph_def is not None:
            session = load_meta_graph_into_session(options, request.meta_graph_def)
        else:
            session = new_session(options)
        session = as_direct_session(session)
        try:
            if request.graph_def is not None:
                session.create(request.graph_def)
        except BaseException:
            session.destroy()
            raise
        return OpenedModel(session, version=0, shared_weights=False)

    async def close(self, session_id: str, steps_hear: str = RUN_CANCELLED) -> None:
        """End a session at once: running steps are cancelled. Closing a closed one is fine.

        With the default text a step that waits hears from the operation that waited. Raises
        NotFoundError for an id that was never known.
        """
        if self._registry.is_gone(session_id):
            return
        try:
            self._registry.get(session_id)
        except NotFoundError:
            raise
        except OpError:  # it expired a moment ago
            await self.reap()
            return
        await self._end(session_id, CLOSED_MESSAGE, "closed", steps_hear)

    async def reap(self) -> None:
        """Close the sessions whose lease has run out."""
        for opened in self._registry.expired():
            message = self._registry.expiry_message(opened)
            await self._end(opened.id, message, "expired", message)

    async def reap_forever(self) -> None:
        """The one task that looks at leases."""
        while True:
            await asyncio.sleep(REAP_INTERVAL_SECONDS)
            try:
                await self.reap()
            except Exception:
                _log.exception("Closing expired sessions failed; trying again")

    async def close_all(self) -> None:
        """Close every session, and the threads of the service: the server ends."""
        for opened in self._registry:
            await self._end(opened.id, CLOSED_MESSAGE, "server stopped", CLOSED_MESSAGE)
        self._builders.shutdown()
        self._callers.shutdown()

    async def _end(self, session_id: str, message: str, reason: str, steps_hear: str) -> None:
        opened = self._registry.remove(session_id, message)
        if opened is None:
            return
        opened.cancel_all(steps_hear)
        await asyncio.to_thread(opened.session.destroy)
        self._metrics.session_closed(reason)
        _log.info("Session %s after %d steps", reason, opened.steps, extra={"session": session_id})

    # --- steps --------------------------------------------------------------------------------

    async def run(self, session_id: str, step: StepRequest) -> list[Any]:
        """Run one step; the fetched values in the order of `step.fetches`.

        Raises whatever the step fails with, DeadlineExceededError at the deadline, CancelledError
        when it is cancelled, ResourceExhaustedError when the pool's queue is full.
        """
        opened = self.get(session_id)
        check_names(list(step.feeds), step.fetches)
        return await self._run(opened, step, opened.session.run_async)

    async def _run(self, opened: OpenSession, step: StepRequest, start: Starter) -> list[Any]:
        opened.check_bytes(self._settings.max_session_bytes)
        priority = self._priority(step)
        request = RunRequest(
            feeds=step.feeds,
            fetches=step.fetches,
            targets=step.targets,
            options=step.options,
            metadata=step.metadata,
            cancellation=step.cancellation,
            deadline=self._deadline(opened, step),
            pool=None if priority is None else priority.pool,
            allow_inline=priority is not None and not priority.pool.low_priority,
        )
        started = time.perf_counter()
        code = Code.OK
        try:
            with opened.step(step.request_id, step.cancellation):
                future = self._start(opened, request, start)
                return await wait_for_step(future, step.cancellation, request.deadline)  # type: ignore[no-any-return]
        except OpError as error:
            code = error.code
            raise
        finally:
            name = "pool" if priority is None else priority.name
            self._metrics.step_finished(name, code.name, time.perf_counter() - started)

    def _priority(self, step: StepRequest) -> Priority | None:
        """The pool to run on; None when the client chose one of the session's by index."""
        if not step.pool_is_chosen:
            return self._priorities.resolve(step.priority)
        if step.priority is not None:
            raise InvalidArgumentError(
                "Expected either priority or options.inter_op_thread_pool, got both"
            )
        return None

    def _deadline(self, opened: OpenSession, step: StepRequest) -> float | None:
        """Counted from receipt: options, else the transport's, else the session's, else ours."""
        candidates = (
            step.options.timeout_in_ms if step.options is not None else 0,
            step.timeout_ms or 0,
            opened.operation_timeout_ms,
            self._settings.default_timeout_ms,
        )
        timeout_ms = next((each for each in candidates if each > 0), 0)
        return step.received_at + timeout_ms / 1000 if timeout_ms else None

    def _start(
        self, opened: OpenSession, request: RunRequest, start: Starter
    ) -> concurrent.futures.Future[list[Any]]:
        index = 0 if request.options is None else request.options.inter_op_thread_pool
        if request.pool is None and (index == -1 or opened.runs_in_caller):
            # The caller's thread: one of ours stands in for it, the event loop's must not block.
            return _submit(self._callers, lambda: start(request).result())
        return start(request)

    def cancel(self, session_id: str, request_id: str) -> None:
        """Cancel the step of a request; NotFoundError when none runs under that id."""
        if not self.get(session_id).cancel(request_id):
            raise NotFoundError(f"Session {session_id} runs no step of request {request_id!r}")

    async def partial_run_setup(
        self, session_id: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> str:
        """Begin a step that is fed and fetched in parts; its handle.

        It runs on the pool of the default priority.
        """
        opened = self.get(session_id)
        pool = self._priorities.resolve(None).pool
        handle: str = await self._call(
            opened, lambda: opened.session.partial_run_setup(feeds, fetches, targets, pool)
        )
        return handle

    async def partial_run(self, session_id: str, handle: str, step: StepRequest) -> list[Any]:
        """Feed and fetch a part of a step; no thread waits for it."""
        opened = self.get(session_id)
        opened.check_bytes(self._settings.max_session_bytes)
        with opened.step(step.request_id, step.cancellation):
            future = opened.session.partial_run_async(handle, step.feeds, step.fetches)
            deadline = self._deadline(opened, step)
            values: list[Any] = await wait_for_step(future, step.cancellation, deadline)
        return values

    async def make_callable(self, session_id: str, options: pb.CallableOptions) -> int:
        """Prepare a step with fixed feeds, fetches and targets; its handle."""
        opened = self.get(session_id)
        handle: int = await self._call(opened, lambda: opened.session.make_callable(options))
        opened.callable_made(handle, options)
        return handle

    async def run_callable(
        self, session_id: str, handle: int, feeds: Sequence[Any], step: StepRequest
    ) -> list[Any]:
        """Run a prepared step; feeds in the order of its options. Raises as `run`."""
        opened = self.get(session_id)
        session = opened.session
        return await self._run(
            opened, step, lambda request: session.run_callable_async(handle, feeds, request)
        )

    async def release_callable(self, session_id: str, handle: int) -> None:
        """Forget a prepared step."""
        opened = self.get(session_id)
        await self._call(opened, lambda: opened.session.release_callable(handle))
        opened.callable_released(handle)

    async def _call(self, opened: OpenSession, work: Callable[[], Any]) -> Any:
        """Do work that compiles on a caller's thread."""
        with opened.using():
            return await wait_for_step(_submit(self._callers, work), CancellationManager(), None)

    # --- the rest -----------------------------------------------------------------------------

    async def extend(
        self, session_id: str, graph_def: pb.GraphDef, expected_version: int | None
    ) -> int:
        """Add nodes to the graph; the new version. The graph is unchanged when this raises.

        Raises AbortedError when `expected_version` is given and is not the current one.
        """
        opened = self.get(session_id)
        async with opened.extend_lock:
            current = opened.graph_version
            if expected_version is not None and expected_version != current:
                raise AbortedError(
                    f"Current version is {current} but caller expected {expected_version}."
                )
            with opened.using():
                await self._build(lambda: opened.session.extend(graph_def))
        return opened.graph_version

    def get(self, session_id: str) -> OpenSession:
        """The open session; SessionGoneError or NotFoundError."""
        return self._registry.get(session_id)

    def open_sessions(self) -> list[OpenSession]:
        """The open sessions, oldest first."""
        now = self._clock.monotonic()
        return [opened for opened in self._registry if not opened.lease.has_expired(now)]

    def keep_alive(self, session_id: str, lease_seconds: float | None) -> OpenSession:
        """Renew the lease, with another length from now on if one is given."""
        opened = self.get(session_id)
        seconds = self._lease_seconds(lease_seconds, opened.lease.seconds)
        opened.lease.renew(self._clock.monotonic(), seconds)
        opened.last_used_at = self._clock.wall()
        return opened

    async def graph_def(self, session_id: str) -> tuple[pb.GraphDef, int]:
        """The graph as it is, and its version."""
        opened = self.get(session_id)
        async with opened.extend_lock:
            graph_def = await self._build(opened.session.graph_def)
            return graph_def, opened.graph_version

    def thread_pools(self) -> list[tuple[str, ThreadPool]]:
        """(name, pool) of the pools that belong to sessions alone."""
        return [entry for opened in self.open_sessions() for entry in opened.own_thread_pools()]

    def _lease_seconds(self, asked: float | None, otherwise: float) -> float:
        if asked is None:
            return otherwise
        return check_lease_seconds(asked, self._settings.max_lease_seconds)

    async def _build(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(_submit(self._builders, work))


def _submit(pool: ThreadPool, work: Callable[[], T]) -> concurrent.futures.Future[T]:
    """Do `work` on the pool; the future has its result or its exception."""
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def task() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    pool.schedule(task)
    return future


def _destroy(making: concurrent.futures.Future[OpenedModel]) -> None:
    if not making.cancelled() and making.exception() is None:
        making.result().session.destroy()


def _describe_model(source: ModelSource | None, made: OpenedModel) -> dict[str, Any] | None:
    if source is None:
        return None
    return {"name": source.name, "version": made.version}
