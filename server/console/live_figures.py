"""What the console draws of the server as a whole, from figures that are recorded anyway.

`Figures.message` is called once a second while somebody looks. It reads the metrics and subtracts
what they were before: rates are of the last second, percentiles of the last ten. Requests cost
nothing for it.

Guarantees: used from the event loop's thread only, as the metrics.
"""

from __future__ import annotations

import collections
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson
from prometheus_client.metrics_core import Metric

from runtime.api import process_account, resident_bytes
from server.lifecycle import Lifecycle
from server.metrics import Metrics
from server.models.manager import ModelManager
from server.models.version_states import ModelState
from server.runtime_metrics import named_global_pools

WINDOW_SECONDS = 10  # of percentiles
_MICROSECONDS = 1e-6
_OK = {"OK", "200", "201", "204", "304"}
_SERVING = ":tensorflow:serving:"
# The fronts of HTTP calls, by the name of the function that answers; others are not shown.
_FRONTS: Mapping[str, str] = {
    **dict.fromkeys(("predict", "classify", "regress", "status", "metadata", "list"), "REST"),
    **dict.fromkeys(
        (
            "create_session", "extend_session", "close_session", "delete_session", "run_session",
            "keep_session_alive", "cancel_step", "partial_run", "partial_run_setup", "run_callable",
            "make_callable", "release_callable",
        ),
        "REST sessions",
    ),
    "infer": "Open Inference Protocol",
}  # fmt: skip
_GRPC = "gRPC"
_SESSION_FRONT = "REST sessions"


class _Group:
    """One row of a grouping: its counts and its histograms at an instant."""

    def __init__(self) -> None:
        self.total = self.errors = 0.0
        self.buckets: dict[float, float] = {}

    def count(self, value: float, *, is_error: bool) -> None:
        self.total += value
        self.errors += value if is_error else 0.0

    def add_bucket(self, bound: float, value: float) -> None:
        self.buckets[bound] = self.buckets.get(bound, 0.0) + value


Groups = dict[str, dict[str, _Group]]  # "model", "front" or "priority" → name → row


def group_requests(families: Iterable[Metric]) -> Groups:
    """Return what the metrics say of requests: by model, by front and by priority.

    The steps of sessions are the model "". A gRPC call that failed is counted with its front
    and, if it names one, its model.
    """
    groups: Groups = {kind: {} for kind in ("model", "front", "priority")}

    def row(kind: str, name: str) -> _Group:
        return groups[kind].setdefault(name, _Group())

    for family in families:
        for sample in family.samples:
            labels, value = sample.labels, sample.value
            name = sample.name
            if name == f"{_SERVING}request_count":
                is_error = labels["status"] not in _OK
                row("model", labels["model_name"]).count(value, is_error=is_error)
            elif name == f"{_SERVING}request_latency_bucket":
                bound = float(labels["le"]) * _MICROSECONDS
                row("model", labels["model_name"]).add_bucket(bound, value)
                if labels["entrypoint"] == "GRPC" and labels["API"]:
                    row("front", _GRPC).add_bucket(bound, value)
            elif name == f"{_SERVING}request_latency_count":
                if labels["entrypoint"] == "GRPC" and labels["API"]:
                    row("front", _GRPC).count(value, is_error=False)
            elif name == "runstep_rpc_errors_total":
                row("front", _GRPC).count(value, is_error=True)
            elif name == "runstep_requests_total" and labels["api"] in _FRONTS:
                front, is_error = _FRONTS[labels["api"]], labels["status"] not in _OK
                row("front", front).count(value, is_error=is_error)
                if front == _SESSION_FRONT:
                    row("model", "").count(value, is_error=is_error)
            elif name == "runstep_request_seconds_bucket" and labels["api"] in _FRONTS:
                front = _FRONTS[labels["api"]]
                row("front", front).add_bucket(float(labels["le"]), value)
                if front == _SESSION_FRONT:
                    row("model", "").add_bucket(float(labels["le"]), value)
            elif name == "runstep_steps_total":
                is_error = labels["code"] != "OK"
                row("priority", labels["priority"]).count(value, is_error=is_error)
            elif name == "runstep_step_seconds_bucket":
                row("priority", labels["priority"]).add_bucket(float(labels["le"]), value)
    return groups


def percentile(buckets: Mapping[float, float], part: float) -> float | None:
    """Return a percentile of a histogram {upper bound: values up to it}; None if it is empty.

    Within a bucket the values are taken as spread evenly; beyond the last bound it is that bound.
    """
    rows = sorted(buckets.items())
    if not rows or rows[-1][1] <= 0:
        return None
    wanted, below, lower = part * rows[-1][1], 0.0, 0.0
    for bound, count in rows:
        if count >= wanted and count > below:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (wanted - below) / (count - below)
        below, lower = count, bound if bound != float("inf") else lower
    return lower


class _Moment(NamedTuple):
    at: float
    groups: Groups
    pools: Mapping[str, Any]
    cpu: float


class Figures:
    """The figures of one server; `redact` removes from texts what not every reader may see."""

    def __init__(
        self,
        metrics: Metrics,
        models: ModelManager,
        lifecycle: Lifecycle,
        open_sessions: Callable[[], int],
        redact: Callable[[str], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._redact = redact
        self._metrics, self._models, self._lifecycle = metrics, models, lifecycle
        self._open_sessions, self._clock = open_sessions, clock
        self._began = clock()
        self._moments: collections.deque[_Moment] = collections.deque(maxlen=WINDOW_SECONDS + 1)

    def forget(self) -> None:
        """Begin anew: nobody has looked for a while."""
        self._moments.clear()

    def message(self) -> bytes:
        """Return the figures now, as JSON."""
        now = self._take()
        before, oldest = self._moments[-2 if len(self._moments) > 1 else -1], self._moments[0]
        return orjson.dumps(
            {
                "at": time.time(),
                "uptime_seconds": now.at - self._began,
                "phase": self._lifecycle.phase.value,
                "process": self._process(now, before),
                "models": self._served(),
                "requests": {
                    kind: _rates(rows, before, oldest, kind, now.at - before.at)
                    for kind, rows in now.groups.items()
                },
                "pools": _pools(now, before),
            }
        )

    def _take(self) -> _Moment:
        times = os.times()
        moment = _Moment(
            self._clock(),
            group_requests(self._metrics.registry.collect()),
            {name: pool.stats() for name, pool in named_global_pools()},
            times.user + times.system,
        )
        self._moments.append(moment)
        return moment

    def _process(self, now: _Moment, before: _Moment) -> dict[str, Any]:
        seconds = now.at - before.at
        return {
            "resident_bytes": resident_bytes(),
            "resident_limit_bytes": process_account.resident_limit,
            "tensor_bytes": process_account.used,
            "tensor_limit_bytes": process_account.limit,
            "cpu_share": (now.cpu - before.cpu) / seconds if seconds > 0 else 0.0,
            "threads": threading.active_count(),
            "sessions_open": self._open_sessions(),
            "steps_running": sum(stats.running for stats in now.pools.values()),
        }

    def _served(self) -> list[dict[str, Any]]:
        manager = self._models
        in_use = {(v.name, v.version): v.in_flight for v in manager.available_versions()}
        served = []
        for name in manager.model_names():
            versions = [
                {
                    "version": status.version,
                    "state": status.state.value,
                    "error": self._redact("" if status.error is None else status.error.message),
                    "in_flight": in_use.get((name, status.version), 0),
                    "progress": manager.load_progress(name, status.version),
                }
                for status in manager.known_statuses(name)
                if status.state is not ModelState.END or status.error is not None
            ]
            served.append(
                {
                    "name": name,
                    "ready": any(each["state"] == ModelState.AVAILABLE.value for each in versions),
                    "labels": dict(manager.labels(name)),
                    "versions": versions,
                }
            )
        return served


def _rates(
    rows: Mapping[str, _Group], before: _Moment, oldest: _Moment, kind: str, seconds: float
) -> list[dict[str, Any]]:
    found = []
    none = _Group()
    for name, row in sorted(rows.items()):
        last, first = before.groups[kind].get(name, none), oldest.groups[kind].get(name, none)
        lately = {bound: n - first.buckets.get(bound, 0.0) for bound, n in row.buckets.items()}
        found.append(
            {
                "name": name,
                "per_second": (row.total - last.total) / seconds if seconds > 0 else 0.0,
                "p50_seconds": percentile(lately, 0.5),
                "p99_seconds": percentile(lately, 0.99),
                "errors_per_second": (row.errors - last.errors) / seconds if seconds > 0 else 0.0,
                "total": int(row.total),
                "errors_total": int(row.errors),
            }
        )
    return found


def _pools(now: _Moment, before: _Moment) -> list[dict[str, Any]]:
    found, seconds = [], now.at - before.at
    for name, stats in now.pools.items():
        old = before.pools.get(name, stats)
        done = stats.completed - old.completed
        waited = stats.wait_seconds_total - old.wait_seconds_total
        ran = stats.run_seconds_total - old.run_seconds_total
        found.append(
            {
                "name": name,
                "num_threads": stats.num_threads,
                "low_priority": stats.low_priority,
                "running": stats.running,
                "queued": stats.queued,
                "stuck": stats.stuck,
                "completed_per_second": done / seconds if seconds > 0 else 0.0,
                "wait_seconds": waited / done if done else None,
                "run_seconds": ran / done if done else None,
                "busy_share": min(1.0, ran / (seconds * stats.num_threads)) if seconds > 0 else 0.0,
            }
        )
    return found
