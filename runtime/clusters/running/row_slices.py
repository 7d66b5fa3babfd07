"""RowSlices: runs of a batch in slices of rows, each with one thread, where that is faster.

All threads work on one slice after the other, each with its own: they wait for each other at the
end of the run instead of at the end of each operation, and the tensors of a slice stay in the
caches of its processor. Convolutions of a batch of 32 take 0.7 to 0.95 times as long.

Which is faster is measured, for each shape of the inputs, by runs of both kinds in turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from runtime.clusters.running.compiled_form import CompiledForm
from runtime.clusters.running.form_use import Use
from runtime.clusters.running.input_shapes import Sample
from runtime.foundation.intra_op_pool import intra_op_pool

WORTH_SECONDS = 2e-3  # a shorter run is not divided; a slice costs about 20 µs besides its work
_SLICE_SECONDS = 8e-3  # a slice has more rows only if they take less
_TRIALS = 3  # runs of each kind, of which the fastest counts
_GAIN = 1.03  # slices must be faster by this, because they need another form
# Runs one of its slices: (inputs, the weights of the derived form among them) → outputs
Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


class RowSlices:
    """Whether runs for one sample are divided. A race of threads may lose a measurement."""

    def __init__(self) -> None:
        self._seconds = [math.inf, math.inf]  # the fastest run as a whole, and in slices
        self._runs = [0, 0]
        self._was_sliced = False  # the run before
        self.is_wanted: bool | None = None  # None until it is known

    def take_turn(self) -> bool:
        """Return whether the next run is to be in slices."""
        if self.is_wanted is not None:
            return self.is_wanted
        return self._runs[False] >= _TRIALS and not self._was_sliced

    def note(self, is_sliced: bool, seconds: float) -> None:
        """Record a run that nothing else has disturbed."""
        if self.is_wanted is not None:
            return
        self._runs[is_sliced] += 1
        self._was_sliced = is_sliced
        if not is_sliced or self._runs[True] > 1:  # the first one allocates
            self._seconds[is_sliced] = min(self._seconds[is_sliced], seconds)
        if self._runs[True] > _TRIALS:
            self.is_wanted = self._seconds[True] * _GAIN < self._seconds[False]

    def rows(self, batch: int, width: int) -> int:
        """Return the rows of a slice: one, or so many that each thread still has two slices."""
        seconds = self._seconds[False] * width / batch  # of one row, in one thread
        return max(1, min(batch // (2 * width), int(_SLICE_SECONDS / seconds)))


def batch_of(form: CompiledForm, sample: Sample) -> int:
    """Return the rows of a sample; 0 if the form can't run them in slices."""
    return 0 if form.rows is None else sample[form.rows.index(True)][0]


def runs_slices(form: CompiledForm) -> bool:
    """Return whether several threads may run slices with a form, each in its own thread."""
    return form.rows is not None and form.is_baked and {Use.NARROW, Use.CROWDED} <= form.uses


def run_in_slices(
    rows: Sequence[bool], inputs: Sequence[np.ndarray], size: int, width: int, run: Run
) -> list[np.ndarray]:
    """Return the outputs of `run` for slices of `size` rows, on at most `width` threads.

    `rows` says which of `inputs` have rows. If a slice fails, no other one is begun.
    """
    batch = len(inputs[list(rows).index(True)])
    bounds = [*range(0, batch, size), batch]
    parts: dict[int, list[np.ndarray]] = {}

    def work(start: int, limit: int) -> None:
        parts[start] = run(
            [
                each[start:limit] if has_rows else each
                for each, has_rows in zip(inputs, rows, strict=True)
            ]
        )

    intra_op_pool.run(work, bounds, width)
    return [
        np.concatenate(outputs)
        for outputs in zip(*(parts[each] for each in bounds[:-1]), strict=True)
    ]
