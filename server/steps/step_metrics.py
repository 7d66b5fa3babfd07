"""What is measured of steps, once for every front: outcomes, queues, waits and runs.

A step that runs at once, in the event loop's thread, is one value in one distribution. What else
there is to say of it (that it found no queue and did not wait) is added when the metrics are
scraped.

Guarantees: used from the event loop's thread only, as `server.metrics`.

TF: tensorflow/core/framework/metrics.cc (graph_runs …), common_runtime/direct_session.cc
(direct_session_runs)
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from runtime.errors import Code
from server.metrics import Distribution, Tally, histogram_family
from server.tensorflow_metrics import tensorflow_counter

# Upper bounds in seconds, 62.5 µs to 524 s: those of TensorFlow's graph_run_time_usecs_histogram
# (1 ms and each double), and four smaller ones.
_SECONDS = tuple(0.0000625 * 2**power for power in range(24))
_FIRST_OF_TENSORFLOW = 4  # the index of 1 ms
_STEPS = (0.0, *(float(1 << power) for power in range(14)))  # upper bounds of queues: 0 to 8192
_ENDED_IN_QUEUE = (Code.DEADLINE_EXCEEDED, Code.CANCELLED)
_LABELS = ("pool", "priority", "model")


class StepLabels(NamedTuple):
    """The labels of a step.

    `pool` is empty, and `priority` is "pool", if the client chose a pool of its session by index.
    `model` is empty for the steps of sessions.
    """

    pool: str
    priority: str
    model: str


class StepTimes(NamedTuple):
    """Instants of `time.perf_counter()`, and the number of steps that waited before this one.

    `began` is when a thread began the step, or None if none did; `queued` is None if the step ran
    at once.
    """

    started: float
    ended: float
    began: float | None = None
    queued: int | None = None


class _Figures:
    """The distributions of the steps with the same labels."""

    __slots__ = ("queues", "runs", "short", "waits")

    def __init__(self) -> None:
        self.short = Tally(Distribution(_SECONDS))  # the steps of `short`, in seconds
        self.queues = Distribution(_STEPS)
        self.waits = Distribution(_SECONDS)
        self.runs = Distribution(_SECONDS)


class StepMetrics(Collector):
    """A collector for a CollectorRegistry."""

    def __init__(self) -> None:
        self._figures: dict[StepLabels, _Figures] = {}
        self._outcomes: collections.Counter[tuple[str, Code]] = collections.Counter()
        self._totals: dict[str, Distribution] = {}  # by priority, without those of `short`

    def short(self, labels: StepLabels) -> Tally:
        """Return the tally, in seconds, of steps that run at once and succeed."""
        return self._of(labels).short

    def ended(self, labels: StepLabels, code: Code, times: StepTimes) -> None:
        """Record a step that is not recorded in `short`."""
        self._outcomes[labels.priority, code] += 1
        total = self._totals.get(labels.priority)
        if total is None:
            total = self._totals[labels.priority] = Distribution(_SECONDS)
        total.add(times.ended - times.started)
        figures = self._of(labels)
        began = times.began
        if times.queued is None:
            began = times.started
        elif began is None and code not in _ENDED_IN_QUEUE:
            # It was refused, or it ran where nobody notes when it begins.
            if code is not Code.OK:
                return
            began = times.started
        figures.queues.add(times.queued or 0)
        figures.waits.add((times.ended if began is None else began) - times.started)
        if began is not None:
            figures.runs.add(times.ended - began)

    def count(self, priority: str, code: Code) -> int:
        """Return the number of ended steps of a priority with this outcome."""
        short = sum(figures.short.count for figures in self._of_priority(priority))
        return self._outcomes[priority, code] + (short if code is Code.OK else 0)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        yield from self._outcome_families()
        figures = self._figures.items()
        yield histogram_family(
            "runstep_step_queue_steps", "Steps that waited in the pool when a step arrived",
            _LABELS, {key: _with_zeros(each.queues, each.short.count) for key, each in figures},
        )  # fmt: skip
        yield histogram_family(
            "runstep_step_wait_seconds", "Time that steps waited for a thread of the pool",
            _LABELS, {key: _with_zeros(each.waits, each.short.count) for key, each in figures},
        )  # fmt: skip
        yield histogram_family(
            "runstep_step_run_seconds", "Time from a step's begin on a thread to its end",
            _LABELS, {key: _runs(each) for key, each in figures},
        )  # fmt: skip
        yield from self._tensorflow_families()

    def _outcome_families(self) -> Iterator[Metric]:
        codes = [*self._outcomes, *((key.priority, Code.OK) for key in self._figures)]
        counts = CounterMetricFamily(
            "runstep_steps", "Session steps by outcome", labels=("priority", "code")
        )
        for priority, code in dict.fromkeys(codes):
            count = self.count(priority, code)
            if count:
                counts.add_metric([priority, code.name], count)
        yield counts
        yield histogram_family(
            "runstep_step_seconds", "Time of session steps, queueing included", ("priority",),
            {
                (priority,): _sum(
                    [
                        *([self._totals[priority]] if priority in self._totals else []),
                        *(each.short.distribution for each in self._of_priority(priority)),
                    ]
                )
                for priority in {priority: None for priority, _ in codes}
            },
        )  # fmt: skip

    def _tensorflow_families(self) -> Iterator[Metric]:
        """Yield what TensorFlow counts of its sessions; restoring and warm-up are not included."""
        runs = _sum([_runs(each) for each in self._figures.values()])
        count = sum(runs.counts)
        short = sum(figures.short.count for figures in self._figures.values())
        calls = short + sum(self._outcomes.values())
        core = ":tensorflow:core:"
        yield tensorflow_counter(f"{core}direct_session_runs", (), {(): calls})
        yield tensorflow_counter(f"{core}graph_runs", (), {(): count})
        yield tensorflow_counter(f"{core}graph_run_time_usecs", (), {(): int(runs.sum * 1e6)})
        name = f"{core}graph_run_time_usecs_histogram"
        yield histogram_family(name, name, (), {(): _microseconds(runs)})

    def _of(self, labels: StepLabels) -> _Figures:
        figures = self._figures.get(labels)
        if figures is None:
            figures = self._figures[labels] = _Figures()
        return figures

    def _of_priority(self, priority: str) -> Iterable[_Figures]:
        return [each for key, each in self._figures.items() if key.priority == priority]


def _runs(figures: _Figures) -> Distribution:
    return _sum([figures.runs, figures.short.distribution])


def _with_zeros(distribution: Distribution, count: int) -> Distribution:
    """Return the distribution with `count` values more that are zero."""
    found = _sum([distribution])
    found.counts[0] += count
    return found


def _sum(distributions: Sequence[Distribution]) -> Distribution:
    """Return a distribution of the values of all; without any, one of times."""
    total = Distribution(distributions[0].bounds if distributions else _SECONDS)
    for each in distributions:
        total.counts = [one + other for one, other in zip(total.counts, each.counts, strict=True)]
        total.sum += each.sum
    return total


def _microseconds(seconds: Distribution) -> Distribution:
    """Return times with the buckets and the unit of TensorFlow's histogram."""
    first = _FIRST_OF_TENSORFLOW
    found = Distribution(tuple(1000.0 * 2**power for power in range(20)))
    found.counts = [sum(seconds.counts[: first + 1]), *seconds.counts[first + 1 :]]
    found.sum = seconds.sum * 1e6
    return found
