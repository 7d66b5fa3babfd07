"""RequestLimits: which shapes of inputs get compiled forms, and how many.

A caller may send ever new shapes. Then the compiler must not be busy with them all the time, nor
may they drive out the forms that other callers use.

Guarantees: none for threads; the caller holds a lock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from runtime.clusters.running.compiled_form import CompiledForm
from runtime.clusters.running.input_shapes import Pattern, Sample, ranks

MAX_COMPILATIONS = 16  # of one cluster, and then one each time that RENEWAL_SECONDS are over
RENEWAL_SECONDS = 60.0
RECURRING_RUNS = 3  # of one sample, before it gets a form that takes no other sample
MAX_PATTERNS = 3  # of shapes that have forms at the same time
_MAX_SAMPLES = 8  # that are kept for each combination of ranks
_MAX_RANKS = 3  # combinations of ranks that get a form
_MAX_MISSES = 64  # samples of which runs are counted


class RequestLimits:
    """What one cluster has requested so far."""

    def __init__(self) -> None:
        self._samples: dict[tuple[int, ...], list[Sample]] = {}
        self._compilations = 0
        self._last_compilation = 0.0  # an instant of time.monotonic()
        self._has_single_forms = False
        self._misses: dict[Sample, int] = {}  # runs without a form, if there are single forms

    def recurs(self, sample: Sample) -> bool:
        """Count a run without a form; return whether the sample comes often enough for one.

        Once is enough as long as a form takes all samples.
        """
        if not self._has_single_forms:
            return True
        if len(self._misses) >= _MAX_MISSES:
            self._misses.clear()
        count = self._misses[sample] = self._misses.get(sample, 0) + 1
        return count >= RECURRING_RUNS

    def request(self, sample: Sample, forms: Sequence[CompiledForm]) -> tuple[Sample, ...] | None:
        """Return the samples for which to compile, `sample` last; None if a limit is reached."""
        kind = ranks(sample)
        if kind not in self._samples and len(self._samples) == _MAX_RANKS:
            unused = [
                each
                for each, known in self._samples.items()
                if not any(form.fits(known[-1]) for form in forms)
            ]
            if not unused:
                return None
            del self._samples[unused[0]]
        if not self._may_compile():
            return None
        samples = self._samples.setdefault(kind, [])
        if sample not in samples:
            samples.append(sample)
            del samples[:-_MAX_SAMPLES]
        return (*(each for each in samples if each != sample), sample)

    def _may_compile(self) -> bool:
        now = time.monotonic()
        if self._compilations >= MAX_COMPILATIONS:
            if now - self._last_compilation < RENEWAL_SECONDS:
                return False
        else:
            self._compilations += 1
        self._last_compilation = now
        return True

    def accept(self, form: CompiledForm, samples: Sequence[Sample]) -> None:
        """Take notice of the form for a request."""
        if not all(map(form.fits, samples)):
            self._has_single_forms = True


def surplus(form: CompiledForm, others: Sequence[CompiledForm]) -> list[CompiledForm]:
    """Return those of `others` that have to go for `form`: of the patterns longest unused."""
    used: dict[Pattern, float] = {}
    for each in others:
        if each.pattern != form.pattern:
            used[each.pattern] = max(used.get(each.pattern, 0.0), each.last_used)
    kept = sorted(used, key=used.__getitem__)[1 - MAX_PATTERNS :]
    return [each for each in others if each.pattern != form.pattern and each.pattern not in kept]
