"""The Prometheus metrics `runstep_…`: requests, thread pools, memory, sessions and clusters.

They are in a separate registry, where others register theirs. The figures of pools and sessions are
read when the metrics are scraped, so a request spends no time on them. Requests are recorded in
tallies.

Guarantees: used from the event loop's thread only, by those who record and by those who scrape;
therefore nothing takes a lock. `Tally.add` takes 0.2 µs, the Prometheus client's counter and
histogram take 5.
"""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from prometheus_client import (
    CollectorRegistry,
    Counter,
    disable_created_metrics,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from server.runtime_metrics import (
    ClusterCollector,
    MemoryCollector,
    PoolCollector,
    RuntimeSessionCollector,
    named_global_pools,
)
from server.tensorflow_metrics import is_of_tensorflow, tensorflow_text

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Upper bounds in seconds: 0.1 ms to 30 s, about 3 in each decade.
_BUCKETS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0,
)  # fmt: skip

# Values that a distribution keeps until it puts them into buckets together, which takes 50 µs.
_MOST_RECENT = 500

# If this were enabled, every series would have a second one with the time of its creation.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Distribution:
    """The number of values in each bucket, and their sum.

    `bounds` are the upper bounds of the buckets: inclusive, ascending, without the infinite one.
    Values are put into buckets many at a time, or when the figures are read.
    """

    __slots__ = ("_counts", "_sum", "bounds", "recent")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        # Values that are in no bucket yet; always the same array. In a list, each would be an
        # object, which may keep a page of its own when models were loaded meanwhile and are gone.
        self.recent = array.array("d")
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count a value in its bucket."""
        recent = self.recent
        recent.append(value)
        if len(recent) >= _MOST_RECENT:
            self.put_into_buckets()

    def put_into_buckets(self) -> None:
        """Count the recent values in their buckets."""
        recent = self.recent
        if recent:
            buckets = np.searchsorted(self.bounds, recent)
            more = np.bincount(buckets, minlength=len(self._counts)).tolist()
            self._counts = [each + new for each, new in zip(self._counts, more, strict=True)]
            self._sum = sum(recent, self._sum)
            del recent[:]

    @property
    def counts(self) -> list[int]:
        """The number of values in each bucket."""
        self.put_into_buckets()
        return self._counts

    @counts.setter
    def counts(self, counts: list[int]) -> None:
        self.put_into_buckets()
        self._counts = counts

    @property
    def sum(self) -> float:
        """The sum of all values."""
        self.put_into_buckets()
        return self._sum

    @sum.setter
    def sum(self, value: float) -> None:
        self.put_into_buckets()
        self._sum = value

    def cumulative(self) -> list[tuple[str, float]]:
        """Return (upper bound, number of values up to this bound) for each bucket."""
        total = 0
        buckets = []
        for bound, count in zip([*map(repr, self.bounds), "+Inf"], self.counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        return buckets


class Tally:
    """A count of events of one outcome, whose durations are added to a distribution.

    Tallies of several outcomes may have the same distribution.
    """

    __slots__ = ("_recent", "count", "distribution")

    def __init__(self, distribution: Distribution) -> None:
        self.count = 0
        self.distribution = distribution
        self._recent = distribution.recent

    def add(self, value: float) -> None:
        """Count an event of this duration."""
        self.count += 1
        recent = self._recent  # as `Distribution.add`, without its call
        recent.append(value)
        if len(recent) >= _MOST_RECENT:
            self.distribution.put_into_buckets()


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # The answered requests, by the name of the function that answers and the HTTP status.
        self.requests = Tallies()
        self.registry.register(
            _TallyCollector(
                self.requests,
                ("runstep_requests", "Requests answered", ("api", "status")),
                ("runstep_request_seconds", "Time from receipt to the last byte of the answer"),
            )
        )
        self._sessions_opened = Counter(
            "runstep_sessions_opened", "Sessions opened", registry=self.registry
        )
        self._sessions_closed = Counter(
            "runstep_sessions_closed", "Sessions ended", ["reason"], registry=self.registry
        )
        self._rpc_errors = Counter(
            "runstep_rpc_errors", "gRPC calls that failed", ["code"], registry=self.registry
        )
        self.registry.register(MemoryCollector())
        self.registry.register(PoolCollector(named_global_pools))
        self.registry.register(RuntimeSessionCollector())
        self.registry.register(ClusterCollector())

    def session_opened(self) -> None:
        """Count a session that was opened."""
        self._sessions_opened.inc()

    def session_closed(self, reason: str) -> None:
        """Count a session that ended; `reason` is "closed", "expired" or "server stopped"."""
        self._sessions_closed.labels(reason).inc()

    def rpc_failed(self, code: str) -> None:
        """Count a gRPC call that ended with a code other than OK."""
        self._rpc_errors.labels(code).inc()

    def watch_sessions(self, count: Callable[[], int]) -> None:
        """Report `count()` as the number of open sessions."""
        self.registry.register(_SessionCollector(count))

    def watch_refusals(self, refusals: Mapping[tuple[str, str], int]) -> None:
        """Report the numbers of refused requests by front and reason."""
        self.registry.register(_RefusalCollector(refusals))

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus's text format, as `exposition_of` does."""
        return exposition_of(self.families())

    def families(self) -> list[Metric]:
        """Return all metrics as they are now."""
        return list(self.registry.collect())


def exposition_of(families: Sequence[Metric]) -> bytes:
    """Return metrics in Prometheus's text format, TensorFlow's as TensorFlow Serving has.

    `tensorflow_metrics` writes the latter.
    """
    ours = _Families([each for each in families if not is_of_tensorflow(each)])
    return generate_latest(ours) + tensorflow_text(filter(is_of_tensorflow, families)).encode()


def histogram_family(
    name: str,
    description: str,
    label_names: Sequence[str],
    distributions: Mapping[tuple[str, ...], Distribution],
) -> HistogramMetricFamily:
    """Return the metric of some distributions, by the values of their labels."""
    family = HistogramMetricFamily(name, description, labels=label_names)
    for labels, distribution in distributions.items():
        family.add_metric(labels, distribution.cumulative(), distribution.sum)
    return family


class _Families(CollectorRegistry):
    """Families that were collected already."""

    def __init__(self, families: list[Metric]) -> None:
        super().__init__()
        self._collected = families

    def collect(self) -> Iterator[Metric]:
        yield from self._collected


class Tallies(dict[tuple[str, str | int], Tally]):
    """Tallies by the values of two labels; one that is missing is made.

    Each value of the first label has one distribution, of durations in seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.distributions: dict[tuple[str, ...], Distribution] = {}

    def __missing__(self, key: tuple[str, str | int]) -> Tally:
        distribution = self.distributions.setdefault(key[:1], Distribution(_BUCKETS))
        tally = self[key] = Tally(distribution)
        return tally


class _TallyCollector(Collector):
    """Collects tallies.

    `counter` is the name, the description and the labels of the counts, and `histogram` the name
    and the description of the distributions.
    """

    def __init__(
        self,
        tallies: Tallies,
        counter: tuple[str, str, tuple[str, str]],
        histogram: tuple[str, str],
    ) -> None:
        self._tallies = tallies
        self._counter = counter
        self._histogram = histogram

    def collect(self) -> Iterator[Metric]:
        """Yield the counts, then the distributions."""
        name, description, labels = self._counter
        counts = CounterMetricFamily(name, description, labels=labels)
        for (first, second), tally in self._tallies.items():
            counts.add_metric([first, str(second)], tally.count)
        yield counts
        yield histogram_family(*self._histogram, labels[:1], self._tallies.distributions)


class _RefusalCollector(Collector):
    def __init__(self, refusals: Mapping[tuple[str, str], int]) -> None:
        self._refusals = refusals

    def collect(self) -> Iterator[Metric]:
        """Yield the number of refused requests."""
        text = "Requests refused because of who makes them"
        family = CounterMetricFamily("runstep_refusals", text, labels=["front", "reason"])
        for labels, count in self._refusals.items():
            family.add_metric(labels, count)
        yield family


class _SessionCollector(Collector):
    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> Iterator[Metric]:
        """Yield the number of open sessions."""
        yield GaugeMetricFamily("runstep_sessions_open", "Open sessions", value=self._count())
