"""A session whose steps end when the test says so, and what is needed to batch its steps."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.api import CancellationManager, RunRequest
from runtime.errors import InvalidArgumentError
from server.settings import Settings
from server.steps.batching.batch_metrics import BatchMetrics
from server.steps.batching.batch_scheduler import BatchScheduler
from server.steps.batching.parameters import BatchParameters
from server.steps.batching.signature_batches import BatchedSignature, Begun, SignatureBatches
from server.steps.priorities import Priorities

POISON = -1.0  # a row of it fails the step


@dataclasses.dataclass(eq=False)
class StartedStep:
    """A step that runs."""

    request: RunRequest
    future: concurrent.futures.Future[list[Any]]

    @property
    def rows(self) -> list[Any]:
        rows: list[Any] = self.request.feeds["x"].tolist()
        return rows

    def end(self) -> None:
        """Give twice the input; fail if there is poison."""
        if self.future.done():
            return
        x = self.request.feeds["x"]
        if (x == POISON).any():
            self.future.set_exception(InvalidArgumentError("poison"))
        else:
            self.future.set_result([self.result(x)])

    @staticmethod
    def result(x: np.ndarray) -> Any:
        return x * 2


class HandSession:
    """Notes its steps, which begin at the instant of `clock`; each ends when the test says so."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.started: list[StartedStep] = []
        self._clock = clock

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Any]]:
        request.began_at = self._clock()
        step = StartedStep(request, concurrent.futures.Future())
        self.started.append(step)
        return step.future

    def running(self) -> list[StartedStep]:
        return [step for step in self.started if not step.future.done()]


class House:
    """One signature `x` → `y` of any row shape, its queues, and the instant `now`."""

    def __init__(self, parameters: BatchParameters | None, *shape: int) -> None:
        self.now = 100.0
        self.session = HandSession(lambda: self.now)
        self.metrics = BatchMetrics()
        self.priorities = Priorities(Settings())
        self.scheduler = BatchScheduler(self.metrics, lambda: self.now)
        self.batches = SignatureBatches(
            self.scheduler,
            BatchedSignature("m", 1, "serving_default", {"x": (-1, *shape)}),
            parameters,
        )

    def begin(self, *rows: Any, priority: str = "normal", **more: Any) -> Begun | None:
        """Send a step with these rows."""
        run = RunRequest(
            {"x": np.array(rows, np.float64)}, ["y"], cancellation=CancellationManager(), **more
        )
        return self.batches.begin(self.session, run, self.priorities.resolve(priority))  # type: ignore[arg-type] # the fake

    def waits(self, *rows: Any, priority: str = "normal") -> Begun:
        """Send a step that is batched."""
        begun = self.begin(*rows, priority=priority)
        assert begun is not None
        return begun

    async def pass_time(self, seconds: float = 0) -> None:
        """Let time pass, and everything run that can run without an end of a step."""
        self.now += seconds
        for priority in ("normal", "low"):
            pool = self.priorities.resolve(priority).pool
            self.scheduler.start_due(self.scheduler.lane(pool))
        for _ in range(12):
            await asyncio.sleep(0)

    async def end_all(self) -> None:
        """End the steps that run, and those that start then, until nothing runs."""
        await self.pass_time()
        while self.session.running():
            for step in self.session.running():
                step.end()
            await self.pass_time()
