"""The Prometheus metrics `runstep_…`: requests, steps by priority, thread pools and sessions.

They are in a separate registry. The figures of pools and sessions are read when the metrics are
scraped, so a request spends no time on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from runtime.api import ThreadPool, cluster_counts, global_thread_pools, session_counts

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Upper bounds in seconds: 0.1 ms to 30 s, about 3 in each decade.
_BUCKETS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
    10, 30,
)  # fmt: skip

# (metric, description, whether the metric is a counter, field of ThreadPoolStats)
_POOL_FIGURES: tuple[tuple[str, str, bool, str], ...] = (
    ("runstep_thread_pool_tasks", "Tasks that wait or run (TaskNum)", False, "tasks"),
    ("runstep_thread_pool_run_ratio", "Part of the threads that runs", False, "run_ratio"),
    ("runstep_thread_pool_threads", "Threads of the pool", False, "num_threads"),
    ("runstep_thread_pool_queued", "Tasks that wait", False, "queued"),
    ("runstep_thread_pool_running", "Tasks that run", False, "running"),
    ("runstep_thread_pool_completed", "Tasks that are done", True, "completed"),
    ("runstep_thread_pool_wait_seconds", "Time that tasks waited", True, "wait_seconds_total"),
    ("runstep_thread_pool_run_seconds", "Time that tasks ran", True, "run_seconds_total"),
)

# If this were enabled, every series would have a second one with the time of its creation.
disable_created_metrics()  # type: ignore[no-untyped-call]

NamedPools = Callable[[], Iterable[tuple[str, ThreadPool]]]


def named_global_pools() -> Iterator[tuple[str, ThreadPool]]:
    """Yield (name, pool) pairs of the process's named pools."""
    for pool in global_thread_pools.all():
        yield pool.name, pool


class Metrics:
    """The metrics of one server; all methods may be called from any thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "runstep_requests", "Requests answered", ["api", "status"], registry=self.registry
        )
        self._request_seconds = Histogram(
            "runstep_request_seconds",
            "Time from receipt to the last byte of the answer",
            ["api"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._steps = Counter(
            "runstep_steps", "Session steps by outcome", ["priority", "code"],
            registry=self.registry,
        )  # fmt: skip
        self._step_seconds = Histogram(
            "runstep_step_seconds",
            "Time of session steps, queueing included",
            ["priority"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._sessions_opened = Counter(
            "runstep_sessions_opened", "Sessions opened", registry=self.registry
        )
        self._sessions_closed = Counter(
            "runstep_sessions_closed", "Sessions ended", ["reason"], registry=self.registry
        )
        self.registry.register(_PoolCollector(named_global_pools))
        self.registry.register(_RuntimeSessionCollector())
        self.registry.register(_ClusterCollector())
        # The metrics of each combination of label values, kept because `labels()` takes 7 µs. If
        # threads race, they get the same objects.
        self._of_request: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._of_step: dict[tuple[str, str], tuple[Counter, Histogram]] = {}

    def request_answered(self, api: str, status: int, seconds: float) -> None:
        """Count a request and record its time.

        `api` is the name of the function that handled the request.
        """
        found = self._of_request.get((api, status))
        if found is None:
            found = (self._requests.labels(api, status), self._request_seconds.labels(api))
            self._of_request[api, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def step_finished(self, priority: str, code: str, seconds: float) -> None:
        """Count a step and record its time.

        `priority` is "pool" if the client chose a pool by index.
        """
        found = self._of_step.get((priority, code))
        if found is None:
            found = (self._steps.labels(priority, code), self._step_seconds.labels(priority))
            self._of_step[priority, code] = found
        found[0].inc()
        found[1].observe(seconds)

    def session_opened(self) -> None:
        """Count a session that was opened."""
        self._sessions_opened.inc()

    def session_closed(self, reason: str) -> None:
        """Count a session that ended; `reason` is "closed", "expired" or "server stopped"."""
        self._sessions_closed.labels(reason).inc()

    def watch_sessions(self, count: Callable[[], int]) -> None:
        """Report `count()` as the number of open sessions."""
        self.registry.register(_SessionCollector(count))

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)


class _PoolCollector(Collector):
    """Collects the figures of thread pools when the metrics are scraped."""

    def __init__(self, pools: NamedPools) -> None:
        self._pools = pools

    def collect(self) -> Iterator[Metric]:
        """Yield one metric family for each figure, with one sample for each pool."""
        figures = [(name, pool.stats()) for name, pool in self._pools()]
        for metric, text, grows, field in _POOL_FIGURES:
            kind = CounterMetricFamily if grows else GaugeMetricFamily
            family = kind(metric, text, labels=["pool", "low_priority"])
            for name, stats in figures:
                low = "true" if stats.low_priority else "false"
                family.add_metric([name, low], getattr(stats, field))
            yield family


class _RuntimeSessionCollector(Collector):
    """Collects the numbers of the runtime's sessions, of clients and of served models."""

    def collect(self) -> Iterator[Metric]:
        """Yield the sessions made and the sessions open, with one sample for each runtime type."""
        created = CounterMetricFamily(
            "runstep_runtime_sessions_created", "Sessions made", labels=["runtime_type"]
        )
        living = GaugeMetricFamily(
            "runstep_runtime_sessions_open", "Sessions not closed yet", labels=["runtime_type"]
        )
        for family, figures in (
            (created, session_counts.created()),
            (living, session_counts.open()),
        ):
            for runtime_type, count in figures.items():
                family.add_metric([runtime_type], count)
            yield family


# (metric, description, whether it only grows, field of ClusterFigures)
_CLUSTER_FIGURES = (
    ("runstep_cluster_compilations", "Compilations of clusters", True, "compilations"),
    ("runstep_cluster_compile_seconds", "Time of compilations", True, "compile_seconds"),
    ("runstep_cluster_compile_failures", "Compilations that failed", True, "compile_failures"),
    ("runstep_cluster_refused_nodes", "Nodes left out of their clusters", True, "refused_nodes"),
    (
        "runstep_cluster_run_failures",
        "Runs of clusters that numpy kernels repeated",
        True,
        "run_failures",
    ),
    ("runstep_cluster_forms", "Compiled forms in memory", False, "forms"),
    ("runstep_cluster_bytes", "Bytes of the weights in compiled forms", False, "bytes_held"),
)


class _ClusterCollector(Collector):
    """Collects what an engine has compiled and holds."""

    def collect(self) -> Iterator[Metric]:
        """Yield one metric family for each figure."""
        figures = cluster_counts.figures()
        for metric, text, grows, field in _CLUSTER_FIGURES:
            kind = CounterMetricFamily if grows else GaugeMetricFamily
            yield kind(metric, text, value=getattr(figures, field))


class _SessionCollector(Collector):
    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    def collect(self) -> Iterator[Metric]:
        """Yield the number of open sessions."""
        yield GaugeMetricFamily("runstep_sessions_open", "Open sessions", value=self._count())
