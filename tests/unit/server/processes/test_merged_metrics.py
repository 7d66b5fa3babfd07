"""Metrics of several processes are added up."""

from __future__ import annotations

import orjson
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from server.metrics import exposition_of
from server.processes.merged_metrics import families_to_wire, merged_families
from server.processes.merged_pools import merged_pools


def process(requests: dict[str, int], seconds: list[float], ratio: float) -> list[list[object]]:
    registry = CollectorRegistry()
    counter = Counter("runstep_requests", "Requests", ["status"], registry=registry)
    for status, count in requests.items():
        counter.labels(status).inc(count)
    histogram = Histogram("runstep_seconds", "Time", buckets=(1, 2), registry=registry)
    for value in seconds:
        histogram.observe(value)
    Gauge("runstep_run_ratio", "Busy", registry=registry).set(ratio)
    wire: list[list[object]] = orjson.loads(orjson.dumps(families_to_wire(registry.collect())))
    return wire


def test_counts_and_histograms_add_up_and_ratios_are_means() -> None:
    merged = merged_families(
        [process({"200": 3, "404": 1}, [0.5], 0.2), process({"200": 4, "500": 2}, [1.5, 9], 0.6)]
    )
    text = exposition_of(merged).decode()
    for line in (
        "# TYPE runstep_requests_total counter",
        'runstep_requests_total{status="200"} 7.0',
        'runstep_requests_total{status="404"} 1.0',
        'runstep_requests_total{status="500"} 2.0',
        'runstep_seconds_bucket{le="1.0"} 1.0',
        'runstep_seconds_bucket{le="2.0"} 2.0',
        'runstep_seconds_bucket{le="+Inf"} 3.0',
        "runstep_seconds_count 3.0",
        "runstep_seconds_sum 11.0",
        "runstep_run_ratio 0.4",
    ):
        assert line in text.splitlines(), text


def test_pools_of_one_name_are_one_pool() -> None:
    pool = {
        "name": "online", "low_priority": False, "num_threads": 2, "running": 1, "queued": 3,
        "run_ratio": 0.5, "intra_op_threads": 1,
    }  # fmt: skip
    other = pool | {"running": 2, "queued": 0, "run_ratio": 1.0}
    own = pool | {"name": "session Ab12…"}
    assert merged_pools([pool, own, other]) == [
        pool | {"num_threads": 4, "running": 3, "queued": 3, "run_ratio": 0.75},
        own,
    ]


def test_pools_on_several_nodes_stay_apart() -> None:
    pool = {"name": "online", "num_threads": 2}
    there = pool | {"node": "10.0.0.5", "host": "ab"}
    assert merged_pools([pool, there, there | {"host": "cd"}, pool]) == [
        pool | {"num_threads": 4},
        there,
        there | {"host": "cd"},
    ]
