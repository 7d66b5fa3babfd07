"""SignatureBatches: decides which requests on one signature of one model version are batched.

A request whose inputs do not have the signature's shapes, or that has no rows, runs alone, so that
its error is what it is without batching.

Guarantees: used on the event loop's thread only, apart from `refused`, `mode` and `parameters`.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from runtime.api import RunRequest, RuntimeSession
from server.memory_in_flight import COUNTED_BYTES, hold
from server.steps.batching.adaptive_size import AdaptiveSize
from server.steps.batching.batch_queue import BatchQueue, Waiting
from server.steps.batching.batch_scheduler import BatchScheduler, BatchSource, Outputs
from server.steps.batching.batched_step import BatchedStep, StepPart
from server.steps.batching.crowd import (
    RUN_AT_ONCE,
    RUNS_THAT_DECIDE,
    SHORT_SECONDS,
    WORTH_SECONDS,
    Crowd,
)
from server.steps.batching.crowd_trial import CrowdTrial
from server.steps.batching.parameters import BatchParameters
from server.steps.batching.tensors import Inputs, key_of, rows_of
from server.steps.priorities import Priority

_log = logging.getLogger(__name__)

# The lists of outputs, by priority, that have queues; requests for other lists run alone.
MAX_SOURCES = 32


@dataclasses.dataclass(frozen=True, slots=True)
class BatchedSignature:
    """The signature of a model; `shapes` are the static shapes of the inputs by feed name."""

    model: str
    version: int
    name: str
    shapes: Mapping[str, Sequence[int]]


@dataclasses.dataclass(slots=True, eq=False)
class Begun:
    """A step that waits or runs; `leave` must be called once, when nobody waits for it."""

    future: Outputs
    leave: Callable[[], None]


class SignatureBatches:
    """The batches of one signature; `parameters` is None in the adaptive form.

    `refused` is why the signature is not batched, or None. It is set at the latest when an output
    turns out not to have one row for each row of the inputs.
    """

    def __init__(
        self,
        scheduler: BatchScheduler,
        signature: BatchedSignature,
        parameters: BatchParameters | None,
        refused: str | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._signature = signature
        self.parameters = parameters
        self._feeds = tuple(signature.shapes)
        self._sources: dict[tuple[tuple[str, ...], str], BatchSource] = {}
        self._crowd = Crowd()
        self._trial = CrowdTrial()
        self._waiting = 0  # short steps that had to wait
        self._step_seconds = math.inf  # of short steps; infinite before there was one
        self._shortest = math.inf  # run of those since `_step_seconds` was last decided
        self._runs = 0  # of short steps at once
        self.refused: str | None = None
        if refused is not None:
            self._refuse(refused)

    @property
    def mode(self) -> str:
        """The form of batching: "adaptive" or "parameters"."""
        return "adaptive" if self.parameters is None else "parameters"

    @property
    def padded_sizes(self) -> tuple[int, ...]:
        """The numbers of rows that batches are padded to; empty if they are not padded."""
        if self.parameters is None or self.refused is not None:
            return ()
        return self.parameters.allowed_batch_sizes

    @property
    def allows_short_step(self) -> bool:
        """Whether a short step may run at once, outside the queue."""
        return self.parameters is None or self.refused is not None

    @property
    def is_crowded(self) -> bool:
        """Whether a short step should wait for the others that arrive at the same time."""
        return (
            self.parameters is None
            and self.refused is None
            and self._may_pay
            and self._trial.batches
            and self._crowd.is_crowded
            and not any(source.size.is_one for source in self._sources.values())
        )

    @property
    def _may_pay(self) -> bool:
        """Whether short steps take so long that a batch of them may be worth what it costs.

        A trial that has begun is finished: steps that take now more and now less than that would
        have it show what a mixture of both ways takes.
        """
        return self._step_seconds >= WORTH_SECONDS or self._trial.is_under_way

    def arrives(self) -> bool:
        """Count a request with a short step; return whether it should wait for others.

        One of many that should does not: how long short steps take is seen only if some run. Where
        they are too short for batches, or a trial has shown that these do not pay, arrivals are not
        counted by turns of the event loop, as that takes it another turn.
        """
        if self._trial.runs_at_once or not self._may_pay:
            return False
        self._crowd.add()
        if not self.is_crowded:
            return False
        self._waiting += 1
        return self._waiting % RUN_AT_ONCE != 0

    def note_run(self, seconds: float) -> None:
        """Note how long a short step took that ran at once.

        The shortest of several runs decides: beside batches, a step also waits for processors and
        for the interpreter lock. If these waits counted, batches would lead to more batches. While
        steps run at once however long they take, it is not looked at.
        """
        if self._trial.passes():
            return
        self._count_step()
        self._step_seconds = min(self._step_seconds, seconds)
        self._shortest = min(self._shortest, seconds)
        self._runs += 1
        if self._runs % RUNS_THAT_DECIDE == 0:
            self._step_seconds, self._shortest = self._shortest, math.inf

    def _note_single(self, seconds: float) -> None:
        """Note how long a step of one row took on a pool.

        Where the first callers are a crowd, all steps are batched, and none shows that it is short.
        """
        if seconds < SHORT_SECONDS:
            self._step_seconds = min(self._step_seconds, seconds)

    def _count_step(self) -> None:
        """Count a short step, which has run at once or is to run on a pool, for the trial."""
        if self._may_pay:
            self._trial.add(self._scheduler.clock(), is_crowded=self._crowd.is_crowded)

    def close(self) -> None:
        """Drop the references to the session, which no request uses any more.

        They are in cycles, and what serves for long is exempt from the garbage collector.
        """
        for source in self._sources.values():
            source.fillers.clear()
        self._sources.clear()

    def begin(self, session: RuntimeSession, run: RunRequest, priority: Priority) -> Begun | None:
        """Put a step into its queue; return None if it must run alone.

        Raises InvalidArgumentError if the inputs have different numbers of rows or more than a
        batch may have, UnavailableError if the queue is full, and ResourceExhaustedError if too
        many steps wait for an adaptive batch or the requests in flight would hold too much memory.
        """
        if self.refused is not None or run.feeds.keys() != self._signature.shapes.keys():
            return None
        if run.options is not None or run.metadata is not None or run.targets:
            return None
        inputs = [np.asarray(run.feeds[name]) for name in self._feeds]
        rows = self._rows(inputs)
        source = None if rows is None else self._source(session, tuple(run.fetches), priority)
        if rows is None or source is None:
            return None
        if self.parameters is None:
            if self._step_seconds < math.inf and not self._waits_on_pool():
                return None
            if source.size.is_one:
                source.size.pass_by()
                source.queue.change_limit(source.size.limit)
                return None
        metrics = self._scheduler.metrics
        if self.parameters is None:
            future = self._scheduler.run_now(source, run, rows)
            if future is not None:
                metrics.submitted(len(inputs), rows)
                return self._begun(future, None)
        key = key_of(
            inputs, self.parameters is not None and self.parameters.pad_variable_length_inputs
        )
        sizes = source.queue.parts_of(key, rows)
        self._hold(inputs, rows)
        step = BatchedStep(run)
        begin = 0
        for size in sizes:
            of_part = (
                [array[begin : begin + size] for array in inputs] if len(sizes) > 1 else inputs
            )
            step.parts.append(StepPart(key, size, step=step, inputs=of_part))
            begin += size
        metrics.submitted(len(inputs), rows)
        self._scheduler.add(source, step.parts)
        return self._begun(step.future, lambda: step.leave(source.queue))

    def _waits_on_pool(self) -> bool:
        """Count a step that is known to be short; return whether it should wait for others.

        That it is to run on a pool nevertheless may be because some runs took long beside other
        work. By itself it becomes short again there; batches, which take longer, would keep it
        there.
        """
        if not self._crowd.is_crowded and not self._trial.runs_at_once:
            self._crowd.add()  # `arrives` counts only those that may run at once
        self._count_step()
        return self.is_crowded

    def _begun(self, future: Outputs, leave: Callable[[], None] | None) -> Begun:
        self._crowd.batched += 1

        def left() -> None:
            self._crowd.batched -= 1
            if leave is not None:  # a step that runs by itself ends by its own cancellation
                leave()

        return Begun(future, left)

    def _rows(self, inputs: Inputs) -> int | None:
        """Return the number of rows, or None if the step must run alone."""
        if self.parameters is not None:
            if not rows_of(inputs):
                return None
        elif any(array.ndim == 0 or len(array) != len(inputs[0]) for array in inputs):
            return None
        shapes = self._signature.shapes.values()
        if not all(map(_fits, inputs, shapes)):
            return None
        return len(inputs[0]) or None

    def _hold(self, inputs: Inputs, rows: int) -> None:
        """Reserve the memory of the request's part of a batch, which is a copy of its inputs."""
        size = sum(array.nbytes for array in inputs)
        if self.parameters is not None:
            size = size * self.parameters.padded_size(rows) // rows
        if size >= COUNTED_BYTES:
            hold(size)

    def _source(
        self, session: RuntimeSession, fetches: tuple[str, ...], priority: Priority
    ) -> BatchSource | None:
        found = self._sources.get((fetches, priority.name))
        if found is not None:
            return found
        if len(self._sources) >= MAX_SOURCES:
            return None
        parameters, pool, size = self.parameters, priority.pool, AdaptiveSize()
        limit = size.limit if parameters is None else parameters.execution_size
        waiting = Waiting(pool.queue_size, pool.name) if parameters is None else None
        others = [
            source for (names, _), source in self._sources.items()
            if names == fetches and source.pool.low_priority is not pool.low_priority
        ]  # fmt: skip
        found = self._sources[fetches, priority.name] = BatchSource(
            BatchQueue(parameters, limit, waiting),
            session,
            self._feeds,
            fetches,
            pool,
            (self._signature.model, self._signature.name, priority.name),
            parameters,
            size,
            [] if pool.low_priority else others,
            lambda error: self._refuse(error.message),
            self._note_single,
        )
        if pool.low_priority:
            for source in others:
                source.fillers.append(found)
        return found

    def _refuse(self, reason: str) -> None:
        if self.refused is None:
            self.refused = reason
            signature = self._signature
            _log.warning(
                "Signature %s of %s version %d is not batched: %s",
                signature.name, signature.model, signature.version, reason,
            )  # fmt: skip


def _fits(array: np.ndarray, shape: Sequence[int]) -> bool:
    return array.ndim == len(shape) and all(
        known in (-1, size) for known, size in zip(shape, array.shape, strict=True)
    )
