"""BatchedStep: one request's step in the queue of its signature, as one task or as several parts.

Guarantees: used on the event loop's thread only; `future` is completed at most once.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from typing import Any

import numpy as np

from runtime.api import CancellationManager, RunRequest
from runtime.errors import CancelledError, OpError
from server.steps.batching.batch_queue import BatchQueue, Task
from server.steps.batching.tensors import Inputs, joined


@dataclasses.dataclass(slots=True, eq=False)
class RunningBatch:
    """The tasks that run as one step; it is cancelled once nobody waits for any of them."""

    tasks: list[StepPart]
    cancellation: CancellationManager = dataclasses.field(default_factory=CancellationManager)

    def task_left(self) -> None:
        """Cancel the step if every caller has gone."""
        if all(task.step.has_left for task in self.tasks):
            self.cancellation.cancel(CancelledError("Nobody waits for the batch any more."))


@dataclasses.dataclass(slots=True, eq=False)
class StepPart(Task):
    """A task with its inputs, in the order of the signature; `outputs` is set when it has run."""

    step: BatchedStep = dataclasses.field(kw_only=True)
    inputs: Inputs = dataclasses.field(kw_only=True)
    outputs: list[np.ndarray] | None = None
    running: RunningBatch | None = None


class BatchedStep:
    """A request's step; `future` receives the outputs, or the error of one of its parts.

    `run` is what the request would have run alone; it is noted there when a batch begins.
    """

    def __init__(self, run: RunRequest | None = None) -> None:
        self._run = run
        self.future: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()
        self.parts: list[StepPart] = []
        self.has_left = False

    def leave(self, queue: BatchQueue) -> None:
        """Leave the queue, or the batch that runs, because the caller no longer waits."""
        if self.future.done():
            return
        self.has_left = True
        for part in self.parts:
            queue.remove(part)
            if part.running is not None:
                part.running.task_left()

    def begins(self) -> None:
        """Note that the step no longer waits: the batch of its first part starts."""
        if self._run is not None and self._run.began_at is None:
            self._run.began_at = time.perf_counter()

    def part_done(self, part: StepPart, outputs: list[np.ndarray]) -> None:
        """Take in the outputs of a part; the last one completes the future."""
        part.outputs = outputs
        found = [each.outputs for each in self.parts if each.outputs is not None]
        if self.future.done() or len(found) < len(self.parts):
            return
        if len(found) == 1:
            self.future.set_result(outputs)
            return
        try:
            self.future.set_result(joined(found))
        except OpError as error:
            self.future.set_exception(error)

    def fail(self, error: BaseException, queue: BatchQueue) -> None:
        """Complete the future with an error; parts that still wait leave the queue."""
        if self.future.done():
            return
        for part in self.parts:
            queue.remove(part)
        self.future.set_exception(error)
