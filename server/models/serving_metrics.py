"""TensorFlow Serving's metrics under their original names, for existing dashboards and alerts.

As in TensorFlow Serving, latencies are in microseconds and are recorded for successful requests
only.

TF: tensorflow_serving/servables/tensorflow/util.cc
"""

from __future__ import annotations

import collections
from collections.abc import Iterator

from prometheus_client.core import UnknownMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from server.metrics import Distribution, Tally, histogram_family

_PREFIX = ":tensorflow:serving:"
# Upper bounds of the buckets in microseconds; the largest is about 20 minutes.
_BOUNDS = tuple(10 * 1.8**power for power in range(33))


class ServingMetrics(Collector):
    """A collector for a CollectorRegistry; all methods are called from the event loop's thread."""

    def __init__(self) -> None:
        self._requests: collections.Counter[tuple[str, str]] = collections.Counter()
        self._answered: dict[tuple[str, ...], Tally] = {}
        self._examples: collections.Counter[str] = collections.Counter()
        self._request_latency: dict[tuple[str, ...], Distribution] = {}
        self._runtime_latency: dict[tuple[str, ...], Distribution] = {}

    def request_failed(self, model: str, code: str) -> None:
        """Count a request that failed; `code` is the name of its status code."""
        self._requests[model, code] += 1

    def requests(self, model: str, api: str, entrypoint: str) -> Tally:
        """Return the tally, in microseconds, of requests that succeeded.

        `api` is Predict, Classify or Regress. `entrypoint` is REST or GRPC.
        """
        found = self._answered.get((model, api, entrypoint))
        if found is None:
            latency = _of(self._request_latency, (model, api, entrypoint))
            found = self._answered[model, api, entrypoint] = Tally(latency)
            self._requests[model, "OK"] += 0  # the order in which outcomes occur is the order here
        return found

    def steps(self, model: str, api: str) -> Distribution:
        """Return the distribution of the microseconds of steps, including the time in queues."""
        return _of(self._runtime_latency, (model, api, "TF1"))

    def examples_received(self, model: str, count: int) -> None:
        """Count the examples of a classify or regress request."""
        self._examples[model] += count

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        requests = UnknownMetricFamily(
            f"{_PREFIX}request_count", "Requests by status", labels=["model_name", "status"]
        )
        for labels, count in self._counts().items():
            requests.add_metric(labels, count)
        examples = UnknownMetricFamily(
            f"{_PREFIX}request_example_count_total", "Examples", labels=["model_name"]
        )
        for model, count in self._examples.items():
            examples.add_metric([model], count)
        yield requests
        yield examples
        yield _latency(
            "request_latency", ("model_name", "API", "entrypoint"), self._request_latency
        )
        yield _latency("runtime_latency", ("model_name", "API", "runtime"), self._runtime_latency)

    def _counts(self) -> collections.Counter[tuple[str, str]]:
        """Return the number of requests by model and name of the status code."""
        counts = self._requests.copy()
        for (model, _, _), tally in self._answered.items():
            counts[model, "OK"] += tally.count
        return counts


def _of(distributions: dict[tuple[str, ...], Distribution], key: tuple[str, ...]) -> Distribution:
    found = distributions.get(key)
    if found is None:
        found = distributions[key] = Distribution(_BOUNDS)
    return found


def _latency(
    name: str, label_names: tuple[str, ...], distributions: dict[tuple[str, ...], Distribution]
) -> Metric:
    return histogram_family(_PREFIX + name, f"{name} in microseconds", label_names, distributions)
