"""BatchScheduler: takes batches from queues and runs each as one step, on one event loop.

The batches of one pool share its threads: the queue whose batch has been due for longest comes
first. In a batch of normal priority, slots that would be padding go to tasks of low priority.

Guarantees: a batch that fails is run again task by task, so that one caller's error is no other
caller's; a task whose caller has gone is not run. Used on the event loop's thread only.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from runtime.api import CancellationManager, RunRequest, RuntimeSession, ThreadPool, process_account
from runtime.errors import (
    CancelledError,
    FailedPreconditionError,
    OpError,
)
from server.memory_in_flight import COUNTED_BYTES
from server.steps.batching.adaptive_size import AdaptiveSize
from server.steps.batching.batch_metrics import BatchMetrics, Labels
from server.steps.batching.batch_queue import BatchQueue
from server.steps.batching.batched_step import RunningBatch, StepPart
from server.steps.batching.parameters import BatchParameters
from server.steps.batching.tensors import Inputs, merged, merged_bytes, split
from server.steps.step_waiter import wait_for_step

_log = logging.getLogger(__name__)

Outputs: TypeAlias = concurrent.futures.Future[list[Any]]


@dataclasses.dataclass(slots=True, eq=False)
class TimedStep:
    """A step on a pool, and how long it runs in its threads.

    `seconds` is None until it has run. The wait for a thread does not count, nor how long a busy
    event loop takes to hear of its end: both would make large batches look cheap.
    """

    run: RunRequest
    clock: Callable[[], float]
    seconds: float | None = None

    def start(self, session: RuntimeSession) -> Outputs:
        """Start the step; return its future, to which this object has no reference."""
        future: Outputs = session.run_async(self.run)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: Outputs) -> None:
        if self.run.began_at is not None:
            self.seconds = self.clock() - self.run.began_at


@dataclasses.dataclass(slots=True, eq=False)
class BatchSource:
    """A queue, and how its batches run: the step of one signature on the pool of one priority.

    `fillers` are the sources of low priority with the same step. `parameters` is None in the
    adaptive form, whose batches have at most `size.limit` rows. `on_unsplit` is called if an output
    has not one row for each row of a batch, `on_single` in the adaptive form with the seconds of
    each step of one row.
    """

    queue: BatchQueue
    session: RuntimeSession
    feeds: Sequence[str]
    fetches: Sequence[str]
    pool: ThreadPool
    labels: Labels
    parameters: BatchParameters | None
    size: AdaptiveSize
    fillers: list[BatchSource]
    on_unsplit: Callable[[OpError], None]
    on_single: Callable[[float], None]

    def request(self, inputs: Inputs, cancellation: CancellationManager) -> RunRequest:
        """Return the step that computes these inputs."""
        feeds = dict(zip(self.feeds, inputs, strict=True))
        return RunRequest(
            feeds, self.fetches, cancellation=cancellation, pool=self.pool, gives_feeds=True
        )

    def learn(self, rows: int, step: TimedStep) -> None:
        """Take in the duration of a step that has succeeded; set the size of the next batch."""
        if self.parameters is None and step.seconds is not None:
            if rows == 1:
                self.on_single(step.seconds)
            self.size.add(rows, step.seconds)
            self.queue.change_limit(self.size.limit)

    def may_start(self, lane: Lane) -> bool:
        """Whether a batch that is due may start; if not, it waits for others to end.

        Where larger batches cost more per row, those that wait still may start at once: they wait
        in the pool's own queue, as the steps do that follow.
        """
        batches_nothing = self.parameters is None and self.size.is_one
        return lane.running < self.num_threads or batches_nothing

    @property
    def num_threads(self) -> int:
        """How many batches may run at the same time on the pool."""
        return (
            self.pool.num_threads if self.parameters is None else self.parameters.num_batch_threads
        )

    @property
    def pool_name(self) -> str:
        """The name of the batch threads in metrics."""
        return self.pool.name if self.parameters is None else self.parameters.thread_pool_name


@dataclasses.dataclass(slots=True, eq=False)
class Lane:
    """The batches of one pool: how many run, and the sources in which tasks wait."""

    running: int = 0
    waiting: dict[BatchSource, None] = dataclasses.field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None


class BatchScheduler:
    """The scheduler of one server; `clock` gives seconds, as that of steps does."""

    def __init__(
        self, metrics: BatchMetrics, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.metrics = metrics
        self.clock = clock
        self._lanes: dict[str, Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # the loop keeps only weak references

    def lane(self, pool: ThreadPool) -> Lane:
        """Return the lane of a pool."""
        found = self._lanes.get(pool.name)
        if found is None:
            found = self._lanes[pool.name] = Lane()
        return found

    def add(self, source: BatchSource, parts: Sequence[StepPart]) -> None:
        """Put the parts of a step into the queue of a source, and start what is due."""
        lane = self.lane(source.pool)
        now = self.clock()
        for part in parts:
            source.queue.add(part, now)
        lane.waiting[source] = None
        self.start_due(lane)

    def run_now(self, source: BatchSource, run: RunRequest, rows: int) -> Outputs | None:
        """Start the step of one request at once, as a batch of its own; return its future.

        Returns None if other steps wait, or if no thread is free and a batch might pay: `add` must
        then be used.
        """
        lane = self.lane(source.pool)
        if len(source.queue) or not source.may_start(lane):
            return None
        loop = asyncio.get_running_loop()
        step = TimedStep(run, self.clock)

        def ended(future: Outputs) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._ended, lane, source, rows, step, future)

        future = step.start(source.session)
        lane.running += 1
        future.add_done_callback(ended)
        return future

    def _ended(
        self, lane: Lane, source: BatchSource, rows: int, step: TimedStep, future: Outputs
    ) -> None:
        lane.running -= 1
        if not future.cancelled() and future.exception() is None:
            self.metrics.ran(source.labels, rows, 0)
            source.learn(rows, step)
        self.start_due(lane)

    def start_due(self, lane: Lane) -> None:
        """Start batches while one is due and a thread is free; set the timer for the next one."""
        if lane.timer is not None:
            lane.timer.cancel()
            lane.timer = None
        while True:
            due = [
                (at, source)
                for source in list(lane.waiting)
                if (at := self._due_at(lane, source)) is not None
            ]
            free = [each for each in due if each[1].may_start(lane)]
            if not free:
                return
            at, source = min(free, key=lambda each: each[0])
            now = self.clock()
            if at > now:
                loop = asyncio.get_running_loop()
                lane.timer = loop.call_later(at - now, self.start_due, lane)
                return
            self._start(lane, source, cast("list[StepPart]", source.queue.take(now)), now)

    def _due_at(self, lane: Lane, source: BatchSource) -> float | None:
        at = source.queue.due_at()
        if at is None:
            del lane.waiting[source]
        return at

    def _start(self, lane: Lane, source: BatchSource, tasks: list[StepPart], now: float) -> None:
        rows = sum(task.rows for task in tasks)
        size = rows if source.parameters is None else source.parameters.padded_size(rows)
        for filler in source.fillers:
            room = size - sum(task.rows for task in tasks)
            tasks += cast("list[StepPart]", filler.queue.take_fitting(tasks[0].key, room))
        for task in tasks:
            task.step.begins()
            self.metrics.waited(source.pool_name, now - task.since)
        lane.running += 1
        # A batch belongs to no request: it must not hold memory, or log, in the name of one.
        loop = asyncio.get_running_loop()
        running = contextvars.Context().run(
            loop.create_task, self._run(lane, source, RunningBatch(tasks), size)
        )
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)

    async def _run(self, lane: Lane, source: BatchSource, batch: RunningBatch, size: int) -> None:
        for task in batch.tasks:
            task.running = batch
        try:
            await self._run_together(source, batch, size)
        except asyncio.CancelledError:  # the loop ends
            for task in batch.tasks:
                task.step.fail(CancelledError("The request was cancelled."), source.queue)
            raise
        finally:
            lane.running -= 1
            self.start_due(lane)

    async def _run_together(self, source: BatchSource, batch: RunningBatch, size: int) -> None:
        """Run the tasks as one step; if that fails, one by one."""
        tasks = batch.tasks
        rows = sum(task.rows for task in tasks)
        if len(tasks) == 1 and rows == size:
            step = await self._run_alone(source, tasks[0], batch)
            if step is not None:
                self.metrics.ran(source.labels, rows, 0)
                source.learn(rows, step)
            return
        try:
            parts = await self._outputs(source, batch, rows, size)
        except OpError as error:
            if isinstance(error, FailedPreconditionError) and error.message.startswith("Batched"):
                source.on_unsplit(error)
            await self._run_one_by_one(source, tasks)
            return
        except Exception:
            _log.exception("A batch of %s failed", source.labels)
            await self._run_one_by_one(source, tasks)
            return
        for task, outputs in zip(tasks, parts, strict=True):
            task.step.part_done(task, outputs)

    async def _outputs(
        self, source: BatchSource, batch: RunningBatch, rows: int, size: int
    ) -> list[list[np.ndarray]]:
        inputs = [task.inputs for task in batch.tasks]
        held = merged_bytes(inputs, size)
        if held < COUNTED_BYTES:
            arrays = merged(inputs, size)
            return await self._outputs_of(source, batch, rows, arrays)
        process_account.reserve(held)
        try:
            arrays = await asyncio.to_thread(merged, inputs, size)
            return await self._outputs_of(source, batch, rows, arrays)
        finally:
            process_account.release(held)

    async def _outputs_of(
        self, source: BatchSource, batch: RunningBatch, rows: int, arrays: Sequence[np.ndarray]
    ) -> list[list[np.ndarray]]:
        size = len(arrays[0])
        step = TimedStep(source.request(arrays, batch.cancellation), self.clock)
        future = step.start(source.session)
        values: list[Any] = await wait_for_step(future, batch.cancellation, None)
        self.metrics.ran(source.labels, rows, size - rows)
        source.learn(size, step)
        return split(values, [task.rows for task in batch.tasks], size)

    async def _run_one_by_one(self, source: BatchSource, tasks: Sequence[StepPart]) -> None:
        for task in tasks:
            if not task.step.has_left:
                self.metrics.repeated(source.labels)
                await self._run_alone(source, task, RunningBatch([task]))

    async def _run_alone(
        self, source: BatchSource, task: StepPart, batch: RunningBatch
    ) -> TimedStep | None:
        """Run one task as it is; return its step, or None if it has failed."""
        task.running = batch
        step = TimedStep(source.request(task.inputs, batch.cancellation), self.clock)
        try:
            future = step.start(source.session)
            values = await wait_for_step(future, batch.cancellation, None)
        except Exception as error:
            task.step.fail(error, source.queue)
            return None
        task.step.part_done(task, values)
        return step
