"""Metrics of several machines on one page: each sample once, with the labels of its process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from server.processes.labelled_metrics import OF_THE_FRONT, MetricsText, joined_page, labelled_text
from server.tensorflow_metrics import tensorflow_counter

NAME = ":tensorflow:core:graph_runs"


def process(
    labels: dict[str, str], count: int, without: frozenset[str] = frozenset()
) -> MetricsText:
    registry = CollectorRegistry()
    Counter("runstep_requests", "Requests", ["api"], registry=registry).labels('"\n').inc(count)
    Histogram("runstep_seconds", "Time", buckets=(1,), registry=registry).observe(count)
    families = [*registry.collect(), tensorflow_counter(NAME, ("model",), {("m",): count})]
    return labelled_text(families, labels, without)


def test_each_family_is_described_once_and_has_the_samples_of_all() -> None:
    first, second = ({"node": "10.0.0.5", "host": each} for each in ("ab", "cd"))
    page = joined_page([process({}, 1), process(first, 2), process(second, 3)]).decode()
    assert page.splitlines() == [
        "# HELP runstep_requests_total Requests",
        "# TYPE runstep_requests_total counter",
        r'runstep_requests_total{api="\"\n"} 1.0',
        r'runstep_requests_total{api="\"\n",host="ab",node="10.0.0.5"} 2.0',
        r'runstep_requests_total{api="\"\n",host="cd",node="10.0.0.5"} 3.0',
        "# HELP runstep_seconds Time",
        "# TYPE runstep_seconds histogram",
        'runstep_seconds_bucket{le="1.0"} 1.0',
        'runstep_seconds_bucket{le="+Inf"} 1.0',
        "runstep_seconds_count 1.0",
        "runstep_seconds_sum 1.0",
        'runstep_seconds_bucket{host="ab",le="1.0",node="10.0.0.5"} 0.0',
        'runstep_seconds_bucket{host="ab",le="+Inf",node="10.0.0.5"} 1.0',
        'runstep_seconds_count{host="ab",node="10.0.0.5"} 1.0',
        'runstep_seconds_sum{host="ab",node="10.0.0.5"} 2.0',
        'runstep_seconds_bucket{host="cd",le="1.0",node="10.0.0.5"} 0.0',
        'runstep_seconds_bucket{host="cd",le="+Inf",node="10.0.0.5"} 1.0',
        'runstep_seconds_count{host="cd",node="10.0.0.5"} 1.0',
        'runstep_seconds_sum{host="cd",node="10.0.0.5"} 3.0',
        f"# TYPE {NAME} counter",
        f'{NAME}{{model="m"}} 1',
        f'{NAME}{{node="10.0.0.5",host="ab",model="m"}} 2',
        f'{NAME}{{node="10.0.0.5",host="cd",model="m"}} 3',
    ]


def test_what_a_front_has_counted_is_not_counted_again() -> None:
    assert [*process({}, 1, OF_THE_FRONT)] == ["runstep_seconds", NAME]
    assert joined_page([]) == b""
