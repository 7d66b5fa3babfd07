"""The metrics of the runtime: its thread pools, memory, sessions and clusters.

They are read when the metrics are scraped, so a request spends no time on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from runtime.api import (
    ThreadPool,
    cluster_counts,
    global_thread_pools,
    process_account,
    resident_bytes,
    session_counts,
    unmet_choices,
)

# (metric, description, whether the metric is a counter, field of ThreadPoolStats)
_POOL_FIGURES: tuple[tuple[str, str, bool, str], ...] = (
    ("runstep_thread_pool_tasks", "Tasks that wait or run (TaskNum)", False, "tasks"),
    ("runstep_thread_pool_run_ratio", "Part of the threads that runs", False, "run_ratio"),
    ("runstep_thread_pool_threads", "Threads of the pool", False, "num_threads"),
    ("runstep_thread_pool_queued", "Tasks that wait", False, "queued"),
    ("runstep_thread_pool_running", "Tasks that run", False, "running"),
    ("runstep_thread_pool_stuck", "Threads in kernels of ended steps", False, "stuck"),
    ("runstep_thread_pool_completed", "Tasks that are done", True, "completed"),
    ("runstep_thread_pool_wait_seconds", "Time that tasks waited", True, "wait_seconds_total"),
    ("runstep_thread_pool_run_seconds", "Time that tasks ran", True, "run_seconds_total"),
)

NamedPools = Callable[[], Iterable[tuple[str, ThreadPool]]]


def named_global_pools() -> Iterator[tuple[str, ThreadPool]]:
    """Yield (name, pool) pairs of the process's named pools."""
    for pool in global_thread_pools.all():
        yield pool.name, pool


def exhausted_pools() -> list[str]:
    """Return a text for each named pool whose threads all run kernels of steps that have ended."""
    return [
        f"all threads of pool {name} are stuck in kernels of ended steps"
        for name, pool in named_global_pools()
        if pool.is_exhausted
    ]


class PoolCollector(Collector):
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


# (metric, description, function that returns the bytes, or None if they are not known)
_MEMORY_FIGURES: tuple[tuple[str, str, Callable[[], int | None]], ...] = (
    ("runstep_memory_used_bytes", "Large tensors of steps", lambda: process_account.used),
    (
        "runstep_memory_limit_bytes",
        "Limit of the tensors of steps (memory.max_process_bytes)",
        lambda: process_account.limit,
    ),
    ("runstep_memory_resident_bytes", "Resident memory without mapped files", resident_bytes),
    (
        "runstep_memory_resident_limit_bytes",
        "Resident memory above which new work is refused (memory.refuse_above_bytes)",
        lambda: process_account.resident_limit,
    ),
)


class MemoryCollector(Collector):
    """Collects the figures of memory when the metrics are scraped."""

    def collect(self) -> Iterator[Metric]:
        """Yield one gauge for each figure that is known."""
        for name, text, read in _MEMORY_FIGURES:
            value = read()
            if value is not None:
                yield GaugeMetricFamily(name, text, value=value)


class RuntimeSessionCollector(Collector):
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


class ClusterCollector(Collector):
    """Collects what an engine has compiled and holds."""

    def collect(self) -> Iterator[Metric]:
        """Yield one metric family for each figure, and what each engine has compiled."""
        figures = cluster_counts.figures()
        for metric, text, grows, field in _CLUSTER_FIGURES:
            kind = CounterMetricFamily if grows else GaugeMetricFamily
            yield kind(metric, text, value=getattr(figures, field))
        forms = GaugeMetricFamily(
            "runstep_cluster_engine_forms",
            "Compiled forms in memory, by what has compiled them",
            labels=["engine", "precision"],
        )
        for engine, held in figures.engines.items():
            forms.add_metric(engine, held.forms)
        yield forms
        unmet = GaugeMetricFamily(
            "runstep_cluster_engine_unmet",
            "1 for an engine or precision that was chosen and is not there",
            labels=["engine", "precision", "used", "reason"],
        )
        for choice, use in unmet_choices().items():
            used = f"{use.engine} in {use.precision}" if use.engine else "numpy kernels"
            unmet.add_metric([choice.engine, choice.precision, used, use.reason], 1)
        yield unmet
