"""RowSlices: runs of a batch in slices of rows, each with one thread, where that is faster.

The tensors of a slice stay in the caches of its processor. If a run has several threads, each takes
one slice after the other: they wait for each other at the end of the run instead of at the end of
each operation. Convolutions of a batch of 32 take 0.7 to 0.95 times as long.

Which is faster is measured, for each shape of the inputs, by runs of both kinds in turns: the time
that passes, while nothing else runs, or the processor's time if the run has one thread.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from runtime.clusters.running.compiled_form import CompiledForm
from runtime.clusters.running.engine import Backend
from runtime.clusters.running.form_use import Use
from runtime.clusters.running.input_shapes import Sample
from runtime.foundation.intra_op_pool import intra_op_pool

WORTH_SECONDS = 2e-3  # a shorter run is not divided; a slice costs about 20 µs besides its work
# Of the weights of a model that is compiled once more for slices. Each slice reads all of them, so
# that larger models gain less.
MOST_BYTES = 64 << 20
_SLICE_SECONDS = 8e-3  # a slice has more rows only if they take less
_WHOLE_RUNS = 3  # before the first run in slices
# Runs of each kind that are compared, each with the one after it: the speed of a machine can change
# from one second to the next.
_PAIRS = 4
_MISSES = 3  # runs that have no form for slices, before one is made
_OFTEN_SECONDS = 10.0  # between two runs, at most, where a form is made for slices
_GAIN = 1.03  # slices must be faster by this, because they need another form
_OF_SLICES = frozenset((Use.NARROW, Use.CROWDED))  # uses of a form that any number of threads run
# Runs one slice: (its part of each input) → outputs
Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


class RowSlices:
    """Whether runs for one sample, in up to `width` threads, are divided into slices.

    A race of threads may lose a measurement.
    """

    def __init__(self, batch: int, width: int) -> None:
        self.width = width
        self.is_wanted: bool | None = None  # None until it is known
        self._batch = batch
        self._whole_runs = 0
        self._whole_seconds = math.inf  # of the fastest run as a whole
        self._work_seconds = math.inf  # the least of the processor's time of such a run's thread
        self._sliced_seconds: float | None = None  # of the run before, if it was in slices
        # How many times as long runs in slices have taken as those after them.
        self._ratios: list[float] = []
        self._misses = 0  # runs in a row, each soon after the one before, that had no form
        self._missed_at = -math.inf

    def now(self) -> float:
        """Return an instant of the clock by which runs are compared."""
        return time.perf_counter() if self.width > 1 else time.thread_time()

    def take_turn(self) -> bool:
        """Return whether the next run is to be in slices."""
        if self.is_wanted is not None:
            return self.is_wanted
        return self._whole_runs >= _WHOLE_RUNS and self._sliced_seconds is None

    def note(self, is_sliced: bool, seconds: float, work_seconds: float | None = None) -> None:
        """Record a run, which no other run has disturbed.

        `work_seconds` is the processor's time of its thread, by default as long. Where many threads
        wait for the interpreter lock, a run of 0.2 ms takes 5 ms, and in slices even longer.
        """
        if self.is_wanted is not None:
            return
        if is_sliced:
            self._sliced_seconds = seconds
            return
        self._whole_runs += 1
        self._whole_seconds = min(self._whole_seconds, seconds)
        work_seconds = seconds if work_seconds is None else work_seconds
        self._work_seconds = min(self._work_seconds, work_seconds)
        if self._sliced_seconds is not None:
            self._ratios.append(self._sliced_seconds / seconds)
            self._sliced_seconds = None
        if self._whole_runs >= _WHOLE_RUNS and self._work_seconds < WORTH_SECONDS:
            self.is_wanted = False  # the first run was long for another reason
        elif len(self._ratios) > _PAIRS:
            _, *ratios = self._ratios  # the first run in slices allocates
            self.is_wanted = statistics.median(ratios) * _GAIN < 1

    def misses_form(self) -> bool:
        """Count a run that has no form for slices; return whether they come often enough for one.

        A form that is used once a minute would be freed each time.
        """
        now = time.monotonic()
        self._misses = self._misses + 1 if now - self._missed_at < _OFTEN_SECONDS else 1
        self._missed_at = now
        return self._misses >= _MISSES

    @property
    def rows(self) -> int:
        """The rows of a slice: one, or so many that each thread still has two slices."""
        seconds = self._whole_seconds * self.width / self._batch  # of one row, in one thread
        return max(1, min(self._batch // (2 * self.width), math.ceil(_SLICE_SECONDS / seconds)))


def batch_of(form: CompiledForm, sample: Sample) -> int:
    """Return the rows of a sample; 0 if the form can't run them in slices."""
    return 0 if form.rows is None else sample[form.rows.index(True)][0]


def runs_slices(form: CompiledForm) -> bool:
    """Return whether several threads may run slices with a form, each in its own thread."""
    return form.rows is not None and form.is_baked and form.uses >= _OF_SLICES


def can_run_slices(backend: Backend) -> bool:
    """Return whether an engine makes such forms."""
    return backend.uses(Use.NARROW, 1) >= _OF_SLICES


def run_in_slices(
    has_rows: Sequence[bool], inputs: Sequence[np.ndarray], rows: int, width: int, run: Run
) -> list[np.ndarray]:
    """Return the outputs of `run` for slices of so many rows, on at most `width` threads.

    `has_rows` says which of `inputs` have rows. If a slice fails, no other one is begun.
    """
    batch = len(inputs[list(has_rows).index(True)])
    bounds = [*range(0, batch, rows), batch]
    parts: dict[int, list[np.ndarray]] = {}

    def work(start: int, limit: int) -> None:
        parts[start] = run(
            [
                each[start:limit] if is_divided else each
                for each, is_divided in zip(inputs, has_rows, strict=True)
            ]
        )

    if width > 1:
        intra_op_pool.run(work, bounds, width)
    else:  # a run that is not to count among those with helpers
        for start, limit in itertools.pairwise(bounds):
            work(start, limit)
    return [
        np.concatenate([parts[start][output] for start in bounds[:-1]])
        for output in range(len(parts[0]))
    ]
