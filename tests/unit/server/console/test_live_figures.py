"""Live figures: rates and percentiles from differences of the metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from server.console.live_figures import Figures, group_requests, percentile
from server.lifecycle import Lifecycle
from server.metrics import Metrics
from server.models.manager import ModelManager

INF = float("inf")


@pytest.mark.parametrize(
    ("buckets", "part", "expected"),
    [
        ({}, 0.5, None),
        ({1.0: 0.0, INF: 0.0}, 0.5, None),
        ({1.0: 10.0, INF: 10.0}, 0.5, 0.5),
        ({1.0: 5.0, 2.0: 10.0, INF: 10.0}, 0.5, 1.0),
        ({1.0: 5.0, 2.0: 10.0, INF: 10.0}, 0.9, 1.8),
        ({1.0: 0.0, 2.0: 4.0, INF: 4.0}, 0.5, 1.5),
        ({1.0: 1.0, 2.0: 1.0, INF: 100.0}, 0.99, 2.0),  # beyond the last bound
    ],
)
def test_percentiles(buckets: dict[float, float], part: float, expected: float | None) -> None:
    assert percentile(buckets, part) == (None if expected is None else pytest.approx(expected))


class Requests(Collector):
    """What a server counts: requests of predict, of which some failed, and steps."""

    good = bad = 0

    def collect(self) -> Iterator[Metric]:
        counts = CounterMetricFamily("runstep_requests", "", labels=("api", "status"))
        counts.add_metric(["predict", "200"], self.good)
        counts.add_metric(["predict", "400"], self.bad)
        counts.add_metric(["healthz", "200"], 1000)
        yield counts
        times = HistogramMetricFamily("runstep_request_seconds", "", labels=("api",))
        total = self.good + self.bad
        times.add_metric(["predict"], [("0.001", total), ("+Inf", total)], 0)
        yield times
        steps = CounterMetricFamily("runstep_steps", "", labels=("priority", "code"))
        steps.add_metric(["low", "OK"], self.good)
        steps.add_metric(["low", "CANCELLED"], self.bad)
        yield steps


class NoPool:
    def schedule(self, work: object) -> None:
        raise AssertionError("nothing is loaded")


def test_rates_are_of_the_last_message_and_percentiles_of_ten() -> None:
    now = [100.0]
    metrics, requests = Metrics(), Requests()
    metrics.registry.register(requests)
    models = ModelManager([], lambda *_: None, NoPool())  # type: ignore[arg-type] # neither is used
    figures = Figures(metrics, models, Lifecycle(), lambda: 3, str, lambda: now[0])

    def message() -> Any:
        return json.loads(figures.message())

    first = message()
    assert first["requests"]["front"][0]["per_second"] == 0
    assert first["process"]["sessions_open"] == 3
    now[0], requests.good, requests.bad = 101.0, 90, 10
    second = message()
    (row,) = second["requests"]["front"]
    assert (row["name"], row["per_second"], row["errors_per_second"]) == ("REST", 100, 10)
    assert (row["total"], row["errors_total"]) == (100, 10)
    assert row["p50_seconds"] == pytest.approx(0.0005)
    (low,) = second["requests"]["priority"]
    assert (low["name"], low["per_second"], low["errors_per_second"]) == ("low", 100, 10)
    now[0] = 102.0
    third = message()["requests"]["front"][0]
    assert (third["per_second"], third["total"]) == (0, 100)
    assert third["p99_seconds"] == pytest.approx(0.00099)
    for _ in range(10):
        now[0] += 1
        last = message()
    assert last["requests"]["front"][0]["p99_seconds"] is None
    assert last["uptime_seconds"] == pytest.approx(12)
    assert last["phase"] == "starting"


def test_models_and_sessions_are_separate_rows() -> None:
    served = CounterMetricFamily(
        ":tensorflow:serving:request_count", "", labels=("model_name", "status")
    )
    served.add_metric(["m", "OK"], 5)
    served.add_metric(["m", "NOT_FOUND"], 2)
    for sample in list(served.samples):
        served.samples.append(sample._replace(name=":tensorflow:serving:request_count"))
    requests = CounterMetricFamily("runstep_requests", "", labels=("api", "status"))
    requests.add_metric(["run_session", "504"], 3)
    groups = group_requests([served, requests])
    assert (groups["model"]["m"].total, groups["model"]["m"].errors) == (7, 2)
    assert (groups["model"][""].total, groups["model"][""].errors) == (3, 3)
    assert groups["front"]["REST sessions"].total == 3
