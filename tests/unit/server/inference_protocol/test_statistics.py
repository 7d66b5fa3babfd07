"""Counts and times of inference requests."""

from __future__ import annotations

from server.inference_protocol.statistics import InferTimes, Statistics


def test_times_add_up_by_version_and_batch_size() -> None:
    statistics = Statistics()
    statistics.succeeded("m", 1, InferTimes(1, 10, 100, batch_size=4), 200)
    statistics.succeeded("m", 1, InferTimes(2, 20, 200, batch_size=1), 300)
    statistics.failed("m", 1, 50)
    found = statistics.described("m", 1)
    assert (found["inference_count"], found["execution_count"]) == (5, 2)
    assert found["inference_stats"]["success"] == {"count": 2, "ns": 500}
    assert found["inference_stats"]["fail"] == {"count": 1, "ns": 50}
    assert found["inference_stats"]["compute_infer"] == {"count": 2, "ns": 30}
    assert [(each["batch_size"], each["compute_input"]) for each in found["batch_stats"]] == [
        (1, {"count": 1, "ns": 2}),
        (4, {"count": 1, "ns": 1}),
    ]
    other = statistics.described("m", 2)
    assert other["inference_count"] == 0 and other["batch_stats"] == []


def test_clients_cannot_make_up_batch_sizes_without_end() -> None:
    statistics = Statistics()
    for size in range(1000):
        statistics.succeeded("m", 1, InferTimes(batch_size=size), 1)
    found = statistics.described("m", 1)
    assert len(found["batch_stats"]) == 256
    assert found["inference_count"] == sum(range(1000))
