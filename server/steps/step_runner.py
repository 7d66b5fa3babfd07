"""StepRunner: decides how a step runs, for every REST and gRPC endpoint.

It chooses the pool by priority, sets the deadline, runs short steps in this thread and starts the
others. It waits until a step ends, reaches its deadline, is cancelled or loses its client. It
counts the steps and limits the size of responses. `off_loop` decides which bodies are decoded and
encoded on another thread.

Guarantees: used from one event loop; `run` returns or raises at the latest when the deadline passes
or the step is cancelled.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from runtime.api import (
    CancellationManager,
    DirectSession,
    RunRequest,
    RuntimeSession,
    ShortStep,
    ThreadPool,
    priority_gate,
)
from runtime.errors import (
    Code,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from server.access.caller import Caller
from server.memory_in_flight import COUNTED_BYTES, TIMES_ANSWER, hold
from server.metrics import Metrics, Tally
from server.steps.allowed_pools import allowed_priority
from server.steps.batching.signature_batches import SignatureBatches
from server.steps.pool_calls import call_on, submit
from server.steps.priorities import Priorities, Priority
from server.steps.step_account import StepAccount
from server.steps.step_answer import StepAnswer, bytes_of_brackets, bytes_of_strings
from server.steps.step_metrics import StepLabels, StepMetrics, StepTimes
from server.steps.step_request import StepRequest
from server.steps.step_waiter import TIMED_OUT, wait_for_step
from server.steps.time_limit import call_until, in_time

T = TypeVar("T")
OFF_LOOP_BYTES = 1 << 18  # content of this size is coded on another thread; 3 ms of JSON
# How many times longer content takes if Python code reads or writes it element by element.
BY_ELEMENT = 32
# The number of threads for steps that are to run in the caller's thread. They must not run in the
# event loop's thread.
CALLER_THREADS = 8
CALL_THREADS = 2  # for calls that run no step but may compile one
_CALLERS_THREAD = -1  # RunOptions.inter_op_thread_pool for the caller's thread
_NO_WATCH = contextlib.nullcontext()
_ARRAYS = (np.ndarray, np.generic)
# The fetched values, whether they may be encoded in this thread, and the seconds of the step. If
# they may not, `StepRunner.limited` must check their size.
ShortAnswer = tuple[list[Any], bool, float]


class StepRunner:
    """Runs the steps of one server."""

    def __init__(self, priorities: Priorities, metrics: Metrics, max_answer_bytes: int) -> None:
        self._priorities = priorities
        self._default = priorities.default
        # A step of low priority must not run in the loop's thread, because it waits between nodes.
        self._default_may_run_here = not self._default.pool.low_priority
        self.metrics = StepMetrics()
        metrics.registry.register(self.metrics)
        # Of the steps of the default priority that ran at once and succeeded, by model.
        self._short_tallies: dict[str, Tally] = {}
        self._max_answer_bytes = max_answer_bytes
        self._callers = ThreadPool("callers", CALLER_THREADS)
        self._calls = ThreadPool("calls", CALL_THREADS)

    async def run(
        self,
        session: RuntimeSession,
        request: StepRequest,
        account: StepAccount | None = None,
        batches: SignatureBatches | None = None,
    ) -> StepAnswer:
        """Run one step; return the fetched values in the order of `request.fetches`.

        `batches` is set if the step may run together with those of other requests.

        Raises the step's error, DeadlineExceededError at the deadline, CancelledError if the step
        is cancelled, ResourceExhaustedError if the pool's queue is full, the values are too large
        or the caller has reached a limit, UnavailableError if the queue of a batch is full,
        InvalidArgumentError if the priority is unknown, and PermissionDeniedError if the caller may
        not use the priority or the pool.
        """
        priority = self._priority(request, session)
        deadline = deadline_of(request, account, priority)
        run = _run_request(request, None if priority is None else priority.pool)
        if priority is not None:
            request.pool = priority.pool.name
        usage = request.caller.usage
        if usage is not None:
            usage.begin_step()
        try:
            if account is not None:
                account.begin_step(request)
        except OpError:
            if usage is not None:
                usage.end_step()
            raise
        started = time.perf_counter()
        code, queued = Code.OK, None
        # The loop does such a request in parts, between which it answers others.
        is_low = run.pool is not None and run.pool.low_priority
        try:
            _check_deadline(deadline)
            # A step of low priority must not run here, because it waits between its nodes; nor may
            # a step on large inputs, because it was short with smaller ones.
            may_run_here = (
                run.pool is not None
                and not is_low
                and request.body_bytes < OFF_LOOP_BYTES
                and (batches is None or batches.allows_short_step)
                and not (batches is not None and batches.is_crowded)
            )
            values = session.run_if_short(run) if may_run_here else None
            if values is None:
                cancellation = run.cancellation = _cancellation_of(request)
                if account is not None:
                    run.deadline = deadline  # it takes precedence over the session's configuration
                    run.owner = account.queue_owner
                elif request.caller.is_authenticated:
                    run.owner = ("owner", request.caller.owner)  # is no session id
                if is_low:
                    await asyncio.sleep(0)
                queued = 0 if run.pool is None else run.pool.queued
                begun = None
                with _NO_WATCH if priority is None else priority.admitted(run):
                    if batches is not None and priority is not None:
                        begun = batches.begin(session, run, priority)
                    future = self._start(session, run, account) if begun is None else begun.future
                    try:
                        values = await _wait(future, request, cancellation, deadline)
                    finally:
                        if begun is not None:
                            begun.leave()
        except BaseException as error:
            code = _code_of(error)
            raise
        finally:
            ended = time.perf_counter()
            if account is not None:
                began = started if queued is None else run.began_at or ended
                request.code, request.wait_seconds = code, began - started
                request.run_seconds = ended - began
                account.end_step(request)
            if usage is not None:
                usage.end_step()
            is_usual = queued is None and code is Code.OK and priority is self._default
            tally = self._short_tallies.get(request.model) if is_usual else None
            if tally is not None:
                tally.add(ended - started)
            else:
                times = StepTimes(started, ended, run.began_at, queued)
                self._record(priority, request.model, code, times)
        if is_low:
            await asyncio.sleep(0)
        return await self.limited(values)

    def has_child(self, request: StepRequest, named: str | None = None) -> bool:
        """Return whether a child process may do the work of a request of low priority.

        `named` is the priority that the body names, if that is known.
        """
        return not request.pool_is_chosen and self._priorities.has_child(named or request.priority)

    def run_short(
        self, step: ShortStep, values: Sequence[np.ndarray], model: str = ""
    ) -> ShortAnswer | None:
        """Run a step of the default priority in this thread.

        `values` are the feeds in the order of the step, and `model` is the name of its model, or
        empty for the step of a session. Returns None, without having run or counted
        anything, if the step is not short; `run` must then be used. No deadline is checked. Raises
        the step's error, and ResourceExhaustedError if the values are too large.
        """
        if not self._default_may_run_here:
            return None
        started = time.perf_counter()
        try:
            fetched = step.run(values)
        except OpError as error:
            times = StepTimes(started, time.perf_counter())
            self._record(self._default, model, error.code, times)
            raise
        if fetched is None:
            return None
        # The step was run, whether or not its values are too large.
        seconds = time.perf_counter() - started
        tally = self._short_tallies.get(model) or self._new_tally(model)
        tally.add(seconds)
        return fetched, self._is_small(fetched), seconds

    def _new_tally(self, model: str) -> Tally:
        tally = self._short_tallies[model] = self.metrics.short(_labels(self._default, model))
        return tally

    def _record(self, priority: Priority | None, model: str, code: Code, times: StepTimes) -> None:
        """Record a step that has ended."""
        if times.queued is None and code is Code.OK and priority is self._default:
            tally = self._short_tallies.get(model) or self._new_tally(model)
            tally.add(times.ended - times.started)
        else:
            self.metrics.ended(_labels(priority, model), code, times)

    def _is_small(self, values: Sequence[Any]) -> bool:
        size = 0
        for value in values:
            if isinstance(value, _ARRAYS):
                if value.dtype.kind == "O":
                    return False  # the length of the strings is not known
                size += value.nbytes or bytes_of_brackets(value)
        if size < OFF_LOOP_BYTES:
            self._check_size(size)
        return size < OFF_LOOP_BYTES

    async def run_part(
        self, session: DirectSession, request: StepRequest, account: StepAccount
    ) -> StepAnswer:
        """Feed and fetch a part of a partial run, on the pool that the partial run began with.

        No thread waits for the part. The whole run ends if the part is cancelled, if its deadline
        passes, or if the client disconnects. Raises the same errors as `run`.
        """
        priority = self._default_of(request.caller)
        usage = request.caller.usage
        with contextlib.ExitStack() as in_progress:
            account.begin_step(request)
            in_progress.callback(account.end_step, request)
            if usage is not None:
                usage.begin_step()
                in_progress.callback(usage.end_step)
            deadline = deadline_of(request, account, priority)
            values = await self._run_part(session, request, priority, deadline)
        return await self.limited(values)

    async def _run_part(
        self,
        session: DirectSession,
        request: StepRequest,
        priority: Priority,
        deadline: float | None,
    ) -> list[Any]:
        cancellation = _cancellation_of(request)
        request.pool = priority.pool.name
        started, queued = time.perf_counter(), priority.pool.queued
        code, began = Code.OK, None
        try:
            _check_deadline(deadline)
            future = session.partial_run_async(
                request.partial_run_handle, request.feeds, request.fetches, cancellation
            )
            began = time.perf_counter()
            return await _wait(future, request, cancellation, deadline)
        except BaseException as error:
            code = _code_of(error)
            raise
        finally:
            times = StepTimes(started, time.perf_counter(), began, queued)
            request.code, request.wait_seconds = code, (began or times.ended) - started
            request.run_seconds = times.ended - (began or times.ended)
            self._record(priority, request.model, code, times)

    async def call(self, work: Callable[[], T], seconds: float, owner: Hashable) -> T:
        """Call `work` on a thread of the runner, because it may take long; return its result.

        No step runs on these threads. Raises DeadlineExceededError after `seconds`, and the error
        of `work`.
        """
        return await call_on(self._calls, work, seconds, owner)

    def default_pool(self, caller: Caller) -> ThreadPool:
        """Return the pool of a caller's requests that name no priority.

        Raises PermissionDeniedError if the caller may not use the pool of any priority.
        """
        return self._default_of(caller).pool

    def _default_of(self, caller: Caller) -> Priority:
        usage = caller.usage
        return self._default if usage is None else self._priorities.default_of(usage.limits)

    def pools_of(self, caller: Caller) -> frozenset[str] | None:
        """Return the names of the pools that a caller may use, or None if it may use all."""
        return None if caller.usage is None else self._priorities.pools_of(caller.usage.limits)

    def shutdown(self) -> None:
        """End the runner's threads; called when the server ends."""
        self._callers.shutdown()
        self._calls.shutdown()

    def _priority(self, request: StepRequest, session: RuntimeSession) -> Priority | None:
        """Return the priority of a request; None if the client chose a pool of the session.

        The caller must be allowed to use the priority and the pool.
        """
        found: Priority | None = None
        if not request.pool_is_chosen:
            priority = request.priority
            found = self._default if priority is None else self._priorities.resolve(priority)
        elif request.priority is not None:
            raise InvalidArgumentError(
                "Expected either priority or options.inter_op_thread_pool, got both"
            )
        if request.caller.usage is None:
            return found
        return allowed_priority(self._priorities, request, session, found)

    def _start(
        self, session: RuntimeSession, run: RunRequest, account: StepAccount | None
    ) -> concurrent.futures.Future[list[Any]]:
        index = 0 if run.options is None else run.options.inter_op_thread_pool
        in_caller = index == _CALLERS_THREAD or (account is not None and account.runs_in_caller)
        if run.pool is None and in_caller:
            # A thread of the runner takes the caller's place, because the event loop must not be
            # blocked.
            ended = () if run.cancellation is None else run.cancellation.error
            work = lambda: session.run_async(run).result()  # noqa: E731 - one line
            return submit(self._callers, work, run.owner, ended)
        return session.run_async(run)

    async def limited(self, values: list[Any]) -> StepAnswer:
        """Return the values with their size; raise ResourceExhaustedError if it exceeds the limit.

        The size is in bytes of tensor content. JSON text is several times as long.
        """
        size = 0
        strings: list[np.ndarray] = []
        for value in values:
            if isinstance(value, _ARRAYS):
                size += value.nbytes or bytes_of_brackets(value)
                if value.dtype.kind == "O":
                    strings.append(np.asarray(value))
        if strings:
            size += await off_loop(size, bytes_of_strings, strings)
        self._check_size(size)
        if size >= COUNTED_BYTES:
            hold(size * TIMES_ANSWER)
        return StepAnswer(values, size)

    def _check_size(self, size: int) -> None:
        if size > self._max_answer_bytes:
            raise ResourceExhaustedError(
                f"The tensors of the answer have {size} bytes; "
                f"rest.max_answer_bytes is {self._max_answer_bytes}"
            )


async def off_loop(
    size: int, work: Callable[..., T], *arguments: Any, deadline: float | None = None
) -> T:
    """Call `work(*arguments)`, on another thread if `size` is OFF_LOOP_BYTES or more.

    `size` must be the number of bytes that `work` decodes or encodes. If it is large, raises
    DeadlineExceededError at `deadline`, an instant of `time.monotonic()`; `work` ends at its next
    `check_time`, and does not begin if all threads are busy until then.
    """
    if size < OFF_LOOP_BYTES:
        return work(*arguments)
    with priority_gate.short_turns():
        if deadline is None:
            return await asyncio.to_thread(work, *arguments)
        _check_deadline(deadline)
        call = asyncio.to_thread(call_until, deadline, work, *arguments)
        return await in_time(deadline, call)


async def read_in_time(
    size: int,
    request: StepRequest,
    account: StepAccount | None,
    work: Callable[..., T],
    *arguments: Any,
) -> T:
    """Do as `off_loop`, until the deadline of the request; `work` reads a part of its body.

    What the body says of the deadline is not known yet: that of the transport holds.
    """
    if size < OFF_LOOP_BYTES:
        return work(*arguments)
    deadline = deadline_of(request, account)
    return await off_loop(size, work, *arguments, deadline=deadline)


def _code_of(error: BaseException) -> Code:
    """Return the code under which a step that ended with this error is counted."""
    if isinstance(error, OpError):
        return error.code
    return Code.CANCELLED if isinstance(error, asyncio.CancelledError) else Code.INTERNAL


def _labels(priority: Priority | None, model: str) -> StepLabels:
    if priority is None:
        return StepLabels("", "pool", model)
    return StepLabels(priority.pool.name, priority.name, model)


def deadline_of(
    request: StepRequest, account: StepAccount | None, priority: Priority | None = None
) -> float | None:
    """Return the instant (`time.monotonic()`) of the deadline, or None if there is no deadline."""
    candidates = (
        0 if request.options is None else request.options.timeout_in_ms,
        request.timeout_ms,
        0 if account is None else account.default_timeout_ms,
    )
    seconds = next((each for each in candidates if each > 0), 0) / 1000
    for longest in (
        0 if account is None else account.max_step_seconds,
        0 if priority is None else priority.timeout_ms / 1000,
    ):
        if longest and not 0 < seconds < longest:
            seconds = longest
    return request.received_at + seconds if seconds else None


def _check_deadline(deadline: float | None) -> None:
    """Raise DeadlineExceededError if the deadline has passed, so that the step does not start."""
    if deadline is not None and time.monotonic() >= deadline:
        raise DeadlineExceededError(TIMED_OUT)


def _run_request(request: StepRequest, pool: ThreadPool | None) -> RunRequest:
    """Convert a request to the session's form, without a deadline.

    A model's step needs none, because `_wait` cancels the step at the deadline. `StepRunner.run`
    sets the deadline of an open session's step.
    """
    return RunRequest(
        request.feeds,
        request.fetches,
        request.targets,
        request.options,
        request.metadata,
        request.cancellation,
        pool=pool,
        compiled=request.compiled,
        gives_feeds=True,
    )


def _cancellation_of(request: StepRequest) -> CancellationManager:
    """Return the cancellation manager of a request, which is made if there is none yet."""
    if request.cancellation is None:
        request.cancellation = CancellationManager()
    return request.cancellation


async def _wait(
    future: concurrent.futures.Future[list[Any]],
    request: StepRequest,
    cancellation: CancellationManager,
    deadline: float | None,
) -> list[Any]:
    watch = request.watch_client
    with _NO_WATCH if watch is None else watch(cancellation):
        values: list[Any] = await wait_for_step(future, cancellation, deadline)
    return values
