"""Statistics of the benchmarks."""

from __future__ import annotations

import json
import math
import os
import pathlib

import pytest

from bench.measure import (
    latency_figures,
    median_ratio,
    percentile,
    resident_bytes,
    rounded,
    write_json,
)


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1), (25, 26), (50, 51), (99, 100), (100, 100)]
)
def test_percentile_is_one_of_the_values(percent: float, expected: int) -> None:
    assert percentile(list(range(100, 0, -1)), percent) == expected


def test_latency_figures_relate_every_row_to_the_first() -> None:
    idle = [[0.001, 0.002], [0.001, 0.004], [0.001, 0.002]]
    busy = [[0.002, 0.004], [0.002, 0.012], [0.002, 0.004]]
    figures = latency_figures({"idle": idle, "busy": busy})
    assert figures["idle"]["p50_ms"] == pytest.approx(1.5)
    assert figures["idle"]["p99_of_idle"] == figures["idle"]["window_p99_of_idle"] == 1
    assert figures["busy"]["p99_ms"] == pytest.approx(12)
    assert figures["busy"]["p99_of_idle"] == pytest.approx(3)
    assert figures["busy"]["window_p99_ms"] == pytest.approx(4)
    assert figures["busy"]["window_p99_of_idle"] == pytest.approx(2)


def test_figures_are_rounded_to_six_digits_and_json_can_hold_them() -> None:
    figures = {"a": [1.23456789, math.inf], "b": {"c": 7, "d": None, "e": 123456789.0}}
    assert rounded(figures) == {"a": [1.23457, None], "b": {"c": 7, "d": None, "e": 123457000.0}}


def test_written_figures_are_read_back(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "figures.json"
    write_json(file, {"µs": 0.1 + 0.2})
    assert json.loads(file.read_text(encoding="utf-8")) == {"µs": 0.3}


def test_resident_memory_of_this_process_by_its_id() -> None:
    assert resident_bytes(os.getpid()) > 1_000_000


def test_a_ratio_is_that_of_values_of_the_same_turn() -> None:
    # The machine is half as fast in the second turn.
    assert median_ratio([200, 100, 220], [100, 50, 100]) == 2
