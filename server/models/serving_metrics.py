"""TensorFlow Serving's metrics under their original names, for existing dashboards and alerts.

As in TensorFlow Serving, latencies are in microseconds and are recorded for successful requests
only.

TF: tensorflow_serving/servables/tensorflow/util.cc
"""

from __future__ import annotations

import bisect
import collections
import threading
from collections.abc import Iterator

from prometheus_client.core import HistogramMetricFamily, UnknownMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_PREFIX = ":tensorflow:serving:"
# Upper bounds of the buckets in microseconds; the largest is about 20 minutes.
_BOUNDS = tuple(10 * 1.8**power for power in range(33))


class _Histogram:
    """The number of values in each bucket, and the sum of all values."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.sum = 0.0

    def add(self, microseconds: float) -> None:
        self.counts[bisect.bisect_left(_BOUNDS, microseconds)] += 1
        self.sum += microseconds

    def cumulative(self) -> list[tuple[str, float]]:
        """Return (upper bound, number of values up to this bound) for each bucket."""
        total = 0
        buckets = []
        for bound, count in zip([*map(repr, _BOUNDS), "+Inf"], self.counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        return buckets


class ServingMetrics(Collector):
    """A collector for a CollectorRegistry; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards every attribute below
        self._requests: collections.Counter[tuple[str, str]] = collections.Counter()
        self._examples: collections.Counter[str] = collections.Counter()
        self._request_latency: dict[tuple[str, ...], _Histogram] = {}
        self._runtime_latency: dict[tuple[str, ...], _Histogram] = {}

    def request_finished(
        self, model: str, api: str, entrypoint: str, code: str, seconds: float
    ) -> None:
        """Count a request; record its time if `code`, the name of its status code, is OK.

        `api` is Predict, Classify or Regress. `entrypoint` is REST or GRPC.
        """
        with self._lock:
            self._requests[model, code] += 1
            if code == "OK":
                _add(self._request_latency, (model, api, entrypoint), seconds)

    def step_finished(self, model: str, api: str, seconds: float) -> None:
        """Record the time of a request's step, including the time in queues."""
        with self._lock:
            _add(self._runtime_latency, (model, api, "TF1"), seconds)

    def examples_received(self, model: str, count: int) -> None:
        """Count the examples of a classify or regress request."""
        with self._lock:
            self._examples[model] += count

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        with self._lock:
            requests = UnknownMetricFamily(
                f"{_PREFIX}request_count", "Requests by status", labels=["model_name", "status"]
            )
            for labels, count in self._requests.items():
                requests.add_metric(labels, count)
            examples = UnknownMetricFamily(
                f"{_PREFIX}request_example_count_total", "Examples", labels=["model_name"]
            )
            for model, count in self._examples.items():
                examples.add_metric([model], count)
            request_latency = _family(
                "request_latency", ("model_name", "API", "entrypoint"), self._request_latency
            )
            runtime_latency = _family(
                "runtime_latency", ("model_name", "API", "runtime"), self._runtime_latency
            )
        yield from (requests, examples, request_latency, runtime_latency)


def _add(
    histograms: dict[tuple[str, ...], _Histogram], labels: tuple[str, ...], seconds: float
) -> None:
    histogram = histograms.get(labels)
    if histogram is None:
        histogram = histograms[labels] = _Histogram()
    histogram.add(seconds * 1e6)


def _family(
    name: str, label_names: tuple[str, ...], histograms: dict[tuple[str, ...], _Histogram]
) -> Metric:
    family = HistogramMetricFamily(
        _PREFIX + name, f"{name} in microseconds", labels=list(label_names)
    )
    for labels, histogram in histograms.items():
        family.add_metric(list(labels), histogram.cumulative(), histogram.sum)
    return family
