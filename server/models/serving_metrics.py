"""TensorFlow Serving's metrics under their original names, for existing dashboards and alerts.

As in TensorFlow Serving, latencies are in microseconds and are recorded for successful requests
only, and every request below `/v1/models` and every Predict, Classify and Regress over gRPC is
counted, also of models that do not exist. A request over REST has the call of its URL as `API`
("predict", or nothing if it asks for information); one over gRPC has the name of its method
("Predict").

TF: tensorflow_serving/servables/tensorflow/util.cc, model_servers/http_server.cc,
model_servers/prediction_service_impl.cc
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from server.metrics import Distribution, Tally, histogram_family
from server.tensorflow_metrics import tensorflow_counter

_PREFIX = ":tensorflow:serving:"
# Upper bounds of the buckets in microseconds; the largest is about 20 minutes.
LATENCY_BOUNDS = tuple(10 * 1.8**power for power in range(33))
_EXAMPLES = tuple(float(1 << power) for power in range(15))  # upper bounds
# Clients make up names of models, and each is a series in the memory of this process and of
# Prometheus; TensorFlow Serving has no limit.
MAX_UNKNOWN_MODELS = 100
_LONGEST_UNKNOWN = 128  # characters
OTHER_MODELS = "(other)"


class ServingMetrics(Collector):
    """A collector for a CollectorRegistry; all methods are called from the event loop's thread.

    `is_configured` returns whether a model of that name is configured. The names of others are
    labels up to MAX_UNKNOWN_MODELS; further ones are OTHER_MODELS together.
    """

    def __init__(self, is_configured: Callable[[str], bool] = lambda name: False) -> None:
        self._is_configured = is_configured
        self._unknown: set[str] = set()
        self._requests: collections.Counter[tuple[str, str]] = collections.Counter()
        self._answered: dict[tuple[str, ...], Tally] = {}
        self._examples: dict[tuple[str, ...], Distribution] = {}
        self._request_latency: dict[tuple[str, ...], Distribution] = {}
        self._runtime_latency: dict[tuple[str, ...], Distribution] = {}

    def request_failed(self, model: str, code: str) -> None:
        """Count a request that failed; `code` is the name of its status code."""
        self._requests[self._label(model), code] += 1

    def requests(self, model: str, api: str, entrypoint: str) -> Tally:
        """Return the tally, in microseconds, of requests that succeeded.

        `entrypoint` is REST or GRPC. `api` is predict, classify, regress or empty over REST, and
        Predict, Classify or Regress over gRPC.
        """
        found = self._answered.get((model, api, entrypoint))
        if found is None:
            latency = _of(self._request_latency, (model, api, entrypoint), LATENCY_BOUNDS)
            found = self._answered[model, api, entrypoint] = Tally(latency)
            self._requests[model, "OK"] += 0  # the order in which outcomes occur is the order here
        return found

    def steps(self, model: str, api: str) -> Distribution:
        """Return the distribution of the microseconds of steps, including the time in queues.

        `api` is Predict, Classify or Regress.
        """
        return _of(self._runtime_latency, (model, api, "TF1"), LATENCY_BOUNDS)

    def examples_received(self, model: str, count: int) -> None:
        """Count the examples of a request."""
        _of(self._examples, (model,), _EXAMPLES).add(count)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        yield tensorflow_counter(
            f"{_PREFIX}request_count", ("model_name", "status"), self._counts()
        )
        yield tensorflow_counter(
            f"{_PREFIX}request_example_count_total",
            ("model",),
            {key: int(each.sum) for key, each in self._examples.items()},
        )
        for name, label_names, found in (
            ("request_example_counts", ("model",), self._examples),
            ("request_latency", ("model_name", "API", "entrypoint"), self._request_latency),
            ("runtime_latency", ("model_name", "API", "runtime"), self._runtime_latency),
        ):
            yield histogram_family(_PREFIX + name, name, label_names, found)

    def _counts(self) -> dict[tuple[str, ...], int]:
        """Return the number of requests by model and name of the status code."""
        counts: collections.Counter[tuple[str, ...]] = collections.Counter(self._requests)
        for (model, _, _), tally in self._answered.items():
            counts[model, "OK"] += tally.count
        return counts

    def _label(self, model: str) -> str:
        if not model or model in self._unknown or self._is_configured(model):
            return model
        if len(self._unknown) >= MAX_UNKNOWN_MODELS or len(model) > _LONGEST_UNKNOWN:
            return OTHER_MODELS
        self._unknown.add(model)
        return model


def _of(
    distributions: dict[tuple[str, ...], Distribution],
    key: tuple[str, ...],
    bounds: tuple[float, ...],
) -> Distribution:
    found = distributions.get(key)
    if found is None:
        found = distributions[key] = Distribution(bounds)
    return found
