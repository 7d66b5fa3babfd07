"""The session service: open, extend and close sessions, and prepare steps.

The REST and gRPC endpoints call it. Steps run through its `runner`.

Guarantees: used from one event loop; work that may take long (building graphs, closing) runs on
other threads; a lease does not run out while a call works on the session.

TF: tensorflow/core/distributed_runtime/master.h (Master), master_session.h
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import protos as pb
from runtime.api import (
    RUN_CANCELLED,
    CancellationManager,
    DirectSession,
    FolderGate,
    SessionOptions,
    ThreadPool,
    load_meta_graph_into_session,
    new_session,
    process_account,
)
from runtime.errors import (
    AbortedError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
)
from server.access.caller import LOCAL, Caller
from server.host import ALONE, Host
from server.metrics import Metrics
from server.models.freed_memory import cycles_were_left
from server.sessions.clock import Clock
from server.sessions.open_session import Lease, OpenSession
from server.sessions.registry import CLOSED_MESSAGE, SessionRegistry, new_session_id
from server.sessions.requests import (
    CreateRequest,
    FolderSource,
    ModelSource,
    OpenedModel,
    as_direct_session,
)
from server.sessions.session_config import runs_in_caller, session_config
from server.settings import Settings
from server.steps.pool_calls import call_on, submit
from server.steps.step_runner import StepRunner
from server.steps.step_waiter import wait_for_step

_log = logging.getLogger(__name__)
T = TypeVar("T")

REAP_INTERVAL_SECONDS = 1.0  # the time between two checks of all leases
BUILDING_THREADS = 2  # number of sessions that are opened or extended at the same time

ModelOpener = Callable[[ModelSource, SessionOptions], OpenedModel]
FolderOpener = Callable[[FolderSource, SessionOptions], OpenedModel]


class SessionService:
    """The sessions of one server."""

    def __init__(
        self,
        settings: Settings,
        runner: StepRunner,
        metrics: Metrics,
        *,
        open_model: ModelOpener,
        open_folder: FolderOpener,
        clock: Clock | None = None,
        host: Host = ALONE,
    ) -> None:
        self._settings = settings.sessions
        self._step_seconds = settings.step_seconds
        self._call_seconds = settings.sessions.call_timeout_ms / 1000
        self._pool_settings = settings.thread_pools
        self._clusters, self._engine = settings.clusters, settings.engine_of()
        self.runner = runner
        self._metrics = metrics
        self._open_model = open_model
        self._open_folder = open_folder
        self._clock = clock or Clock()
        self._host = host
        self._registry = SessionRegistry(
            settings.sessions.max_open, self._clock, settings.sessions.max_owner_steps, host
        )
        self._files = FolderGate(
            settings.sessions.allowed_paths, write=True, setting="sessions.allowed_paths"
        )
        self._builders = ThreadPool("sessions", BUILDING_THREADS)
        # Returns the open session with an id; raises SessionGoneError or NotFoundError.
        self.get = self._registry.get
        # Returns the owner of an open session by its id, or None.
        self.owner_of = self._registry.owner_of
        metrics.watch_sessions(self.open_count)

    # --- opening and closing ------------------------------------------------------------------

    def open_count(self) -> int:
        """Return the number of open sessions."""
        return len(self._registry)

    async def create(self, request: CreateRequest) -> OpenSession:
        """Open a session.

        Raises InvalidArgumentError if the config or the lease is invalid, NotFoundError if the
        model or folder is unknown, UnavailableError if it is being loaded, TooManySessionsError if
        the limit or a limit of the caller is reached, and PermissionDeniedError if this server
        opens no sessions or none on this folder, or if the caller may not bring a graph. No session
        is left open after an error.
        """
        caller = request.caller
        if not self._settings.enabled:
            raise PermissionDeniedError("This server opens no sessions (sessions.enabled: false)")
        if request.brings_graph:
            caller.check_may_bring_graphs()
        seconds = self._lease_seconds(request.lease_seconds, self._settings.default_lease_seconds)
        config = session_config(
            request.config, self._settings, self._pool_settings, self.runner.pools_of(caller)
        )
        max_bytes = self.session_bytes
        options = SessionOptions(
            config=config,
            files=self._files,
            max_graph_nodes=self._settings.max_graph_nodes,
            resources=request.resources,
            clusters=self._clusters,
            engine=self._engine.engine,
            precision=self._engine.precision,
            max_session_bytes=max_bytes,
            max_step_bytes=self._settings.max_step_bytes,
            is_counted=True,
        )
        with self._registry.place(caller):
            made = await self._made(request, options)
            timeout_ms = config.operation_timeout_in_ms
            if timeout_ms <= 0:
                timeout_ms = self._settings.default_timeout_ms
            opened = OpenSession(
                id=new_session_id(self._host.suffix_of_id(timeout_ms)),
                session=made.session,
                name=request.name,
                model=_describe_model(request, made),
                shared_weights=made.shared_weights,
                lease=Lease(seconds, self._clock.monotonic()),
                clock=self._clock,
                owner=caller.owner,
                default_timeout_ms=timeout_ms,
                max_step_seconds=self._step_seconds,
                max_running_steps=self._settings.max_running_steps,
                owner_steps=self._registry.steps_of(caller),
                max_bytes=sys.maxsize if max_bytes is None else max_bytes,
                runs_in_caller=runs_in_caller(config),
                last_used_at=self._clock.wall(),
            )
            self._registry.add(opened)
        self._metrics.session_opened()
        _log.info(
            "Session opened",
            extra={"session": opened.id, "model": opened.model, "owner": opened.owner},
        )
        return opened

    @property
    def session_bytes(self) -> int | None:
        """The memory that a new session may have; None if there is no limit."""
        given, of_process = self._settings.max_session_bytes, process_account.limit
        return of_process // 2 if given is None and of_process is not None else given

    async def _made(self, request: CreateRequest, options: SessionOptions) -> OpenedModel:
        """Make a session on a builder thread; destroy it if nobody waits for it any more."""
        cancellation = CancellationManager()
        making = submit(
            self._builders, lambda: self._make(request, options), ended=cancellation.error
        )
        try:
            deadline = time.monotonic() + self._call_seconds
            made: OpenedModel = await wait_for_step(making, cancellation, deadline)
        except BaseException:  # the deadline has passed, or the waiting task was cancelled
            making.add_done_callback(_destroy_made)
            raise
        return made

    def _make(self, request: CreateRequest, options: SessionOptions) -> OpenedModel:
        """Make a session; called on a builder thread."""
        if request.model is not None:
            return self._open_model(request.model, options)
        if request.folder is not None:
            return self._open_folder(request.folder, options)
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

    async def close(self, session_id: str, step_message: str = RUN_CANCELLED) -> None:
        """Close a session and cancel its steps; closing a closed session has no effect.

        `step_message` is the error of the cancelled steps. If it is RUN_CANCELLED, a step that
        waits in an operation has that operation's error. Raises NotFoundError if the id was never
        known.
        """
        if self._registry.is_gone(session_id):
            return
        try:
            self._registry.get(session_id)
        except NotFoundError:
            raise
        except OpError:  # the lease has just run out
            await self.reap()
            return
        await self._end(session_id, CLOSED_MESSAGE, "closed", step_message)

    async def reap(self) -> None:
        """Close the sessions whose lease has run out."""
        for opened in self._registry.expired():
            message = opened.expiry_message
            await self._end(opened.id, message, "expired", message)

    async def reap_forever(self) -> None:
        """Close expired sessions until cancelled; one task runs this method."""
        while True:
            await asyncio.sleep(REAP_INTERVAL_SECONDS)
            try:
                await self.reap()
            except Exception:
                _log.exception("Closing expired sessions failed; trying again")

    async def close_all(self) -> None:
        """Close every session, and end the threads of the service and of its runner."""
        for opened in self._registry:
            await self._end(opened.id, CLOSED_MESSAGE, "server stopped", CLOSED_MESSAGE)
        self._builders.shutdown()
        self.runner.shutdown()

    async def _end(self, session_id: str, message: str, reason: str, step_message: str) -> None:
        opened = self._registry.remove(session_id, message)
        if opened is None:
            return
        opened.cancel_all(step_message)
        await asyncio.to_thread(_destroy, opened.session)
        self._metrics.session_closed(reason)
        _log.info("Session %s after %d steps", reason, opened.steps, extra={"session": session_id})

    # --- steps --------------------------------------------------------------------------------

    def cancel(self, session_id: str, request_id: str) -> None:
        """Cancel the step of a request; raise NotFoundError if no step runs under `request_id`."""
        if not self.get(session_id).cancel(request_id):
            raise NotFoundError(f"Session {session_id} runs no step of request {request_id!r}")

    async def partial_run_setup(
        self,
        session_id: str,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str],
        caller: Caller = LOCAL,
    ) -> str:
        """Begin a partial run on the pool of the caller's default priority; return its handle."""
        opened = self.get(session_id)
        pool = self.runner.default_pool(caller)
        return await self._call(
            opened,
            lambda: opened.session.partial_run_setup(
                feeds, fetches, targets, pool, opened.queue_owner
            ),
        )

    async def make_callable(self, session_id: str, options: pb.CallableOptions) -> int:
        """Prepare a step with fixed feeds, fetches and targets; return its handle."""
        opened = self.get(session_id)
        return await self._call(opened, lambda: opened.session.make_callable(options))

    async def release_callable(self, session_id: str, handle: int) -> None:
        """Release a prepared step."""
        opened = self.get(session_id)
        await self._call(opened, lambda: opened.session.release_callable(handle))

    async def _call(self, opened: OpenSession, work: Callable[[], T]) -> T:
        """Call `work`, which may compile a step, on a thread of the runner; return its result."""
        with opened.using():
            return await self.runner.call(work, self._call_seconds, opened.queue_owner)

    # --- graph, lease and pools ----------------------------------------------------------------

    async def extend(
        self, session_id: str, graph_def: pb.GraphDef, expected_version: int | None
    ) -> int:
        """Add nodes to the graph; return the new graph version.

        Raises AbortedError if `expected_version` is given and is not the current version. The graph
        is unchanged if this method raises.
        """
        opened = self.get(session_id)
        async with opened.extend_lock:
            current = opened.graph_version
            if expected_version is not None and expected_version != current:
                raise AbortedError(
                    f"Current version is {current} but caller expected {expected_version}."
                )
            with opened.using():
                await self._build(opened, lambda: opened.session.extend(graph_def))
        return opened.graph_version

    def open_sessions(self, caller: Caller = LOCAL) -> list[OpenSession]:
        """Return the open sessions that a caller may see, oldest first."""
        now = self._clock.monotonic()
        return [
            opened
            for opened in self._registry
            if caller.may_use(opened.owner) and not opened.lease.has_expired(now)
        ]

    def keep_alive(self, session_id: str, lease_seconds: float | None) -> OpenSession:
        """Renew the lease; its length changes if `lease_seconds` is given."""
        opened = self.get(session_id)
        seconds = self._lease_seconds(lease_seconds, opened.lease.seconds)
        opened.lease.renew(self._clock.monotonic(), seconds)
        opened.last_used_at = self._clock.wall()
        return opened

    async def graph_def(self, session_id: str) -> tuple[pb.GraphDef, int]:
        """Return the current graph and its version."""
        opened = self.get(session_id)
        async with opened.extend_lock:
            graph_def = await self._build(opened, opened.session.graph_def)
            return graph_def, opened.graph_version

    def thread_pools(self, caller: Caller = LOCAL) -> list[tuple[str, ThreadPool]]:
        """Return (name, pool) pairs of the pools that only one session uses.

        These are the sessions that the caller may see; their ids are as in a listing.
        """
        return [
            entry
            for opened in self.open_sessions(caller)
            for entry in opened.own_thread_pools(caller.shown_id(opened.id, opened.owner))
        ]

    def _lease_seconds(self, requested: float | None, default: float) -> float:
        if requested is None:
            return default
        return check_lease_seconds(requested, self._settings.max_lease_seconds)

    async def _build(self, opened: OpenSession, work: Callable[[], T]) -> T:
        return await call_on(self._builders, work, self._call_seconds, opened.queue_owner)


def _destroy_made(making: concurrent.futures.Future[OpenedModel]) -> None:
    if not making.cancelled() and making.exception() is None:
        _destroy(making.result().session)


def _destroy(session: DirectSession) -> None:
    left = session.nodes_for_collector
    session.destroy()
    if left:
        cycles_were_left(left)


def _describe_model(request: CreateRequest, made: OpenedModel) -> dict[str, Any] | None:
    if request.folder is not None:
        return {"export_dir": request.folder.export_dir, "tags": list(request.folder.tags)}
    if request.model is None:
        return None
    return {"name": request.model.name, "version": made.version}


def check_lease_seconds(seconds: object, longest: float) -> float:
    """Return the length of a lease; raise InvalidArgumentError unless 0 < `seconds` ≤ `longest`."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidArgumentError(f"lease_seconds must be a number, got {seconds!r:.80}")
    if not 0 < seconds <= longest:  # NaN fails too
        raise InvalidArgumentError(
            f"lease_seconds must be more than 0 and at most {longest:g}, got {seconds:g}"
        )
    return float(seconds)
