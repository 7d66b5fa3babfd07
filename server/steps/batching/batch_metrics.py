"""The metrics of batching: TensorFlow Serving's under their names, and Runstep's by model.

TF: tensorflow_serving/batching/batching_session.cc (queuing_latency, wrapped_run_count),
batching_util.h (RecordPaddingSize, RecordInputBatchSize, RecordProcessedBatchSize)
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from server.metrics import Distribution, histogram_family
from server.tensorflow_metrics import tensorflow_counter

_PREFIX = ":tensorflow:serving:batching_session:"
_QUEUING = tuple(100 * 1.2**power for power in range(52))  # upper bounds in microseconds
_ROWS = tuple(float(1 << power) for power in range(14))  # upper bounds
Labels = tuple[str, str, str]  # model, signature, priority
_LABEL_NAMES = ("model", "signature", "priority")


class BatchMetrics(Collector):
    """A collector for a CollectorRegistry; all methods are called on the event loop's thread."""

    def __init__(self) -> None:
        self._runs = 0
        self._queuing: dict[tuple[str, ...], Distribution] = {}
        self._inputs: dict[tuple[str, ...], Distribution] = {}
        self._processed: dict[tuple[str, ...], Distribution] = {}
        self._padding: dict[tuple[str, ...], Distribution] = {}
        self._batches: collections.Counter[Labels] = collections.Counter()
        self._rows: collections.Counter[Labels] = collections.Counter()
        self._padded: collections.Counter[Labels] = collections.Counter()
        self._alone: collections.Counter[Labels] = collections.Counter()

    def waited(self, pool: str, seconds: float) -> None:
        """Record how long a task was in a queue; `pool` is the name of the batch threads."""
        _of(self._queuing, (pool,), _QUEUING).add(seconds * 1e6)

    def submitted(self, inputs: int, rows: int) -> None:
        """Record a task: one sample for each input, as in TensorFlow Serving."""
        for _ in range(inputs):
            _of(self._inputs, (), _ROWS).add(rows)

    def ran(self, labels: Labels, rows: int, padding: int) -> None:
        """Record a batch; `rows` are those of callers, without the `padding` ones."""
        self._runs += 1
        size = rows + padding
        _of(self._processed, (), _ROWS).add(size)
        _of(self._padding, (str(size),), _ROWS).add(padding)
        self._batches[labels] += 1
        self._rows[labels] += rows
        self._padded[labels] += padding

    def repeated(self, labels: Labels) -> None:
        """Count a step that runs alone because its batch has failed."""
        self._runs += 1
        self._alone[labels] += 1

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        yield tensorflow_counter(f"{_PREFIX}wrapped_run_count", (), {(): self._runs})
        for name, label_names, found in (
            ("queuing_latency", ("thread_pool_name",), self._queuing),
            ("input_batch_size", (), self._inputs),
            ("processed_batch_size", (), self._processed),
            ("padding_size", ("execution_batch_size",), self._padding),
        ):
            yield histogram_family(_PREFIX + name, name, label_names, found)
        for name, text, counts in (
            ("runstep_batches", "Batches that ran", self._batches),
            ("runstep_batch_rows", "Rows of callers in batches", self._rows),
            ("runstep_batch_padding_rows", "Rows of padding in batches", self._padded),
            ("runstep_batch_steps_alone", "Steps repeated alone", self._alone),
        ):
            yield _counters(name, text, counts)


def _counters(name: str, text: str, counts: collections.Counter[Labels]) -> Metric:
    family = CounterMetricFamily(name, text, labels=_LABEL_NAMES)
    for labels, count in counts.items():
        family.add_metric(labels, count)
    return family


def _of(
    found: dict[tuple[str, ...], Distribution], key: tuple[str, ...], bounds: Sequence[float]
) -> Distribution:
    distribution = found.get(key)
    if distribution is None:
        distribution = found[key] = Distribution(bounds)
    return distribution
