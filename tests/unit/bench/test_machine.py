"""Whether a run counts, and on what it was measured."""

from __future__ import annotations

from typing import Any

import pytest

from bench.machine import describe, disturbance, in_words

MACHINE: dict[str, Any] = {
    "processor": "EPYC", "features": ["avx2", "avx512f"], "cores": 2, "load_before": 0.1,
    "python": "3.11.7", "day": "2026-11-22",
}  # fmt: skip


@pytest.mark.parametrize(
    ("load", "p90", "why"),
    [
        (0.1, 110, None),
        (4.2, 110, "the load before the run was 4.2"),
        (0.1, 140, "the speed of a matrix product varied from 100 to 140"),
    ],
)
def test_a_busy_machine_is_noticed(load: float, p90: float, why: str | None) -> None:
    steps = {"gemm_gflops": {"p10": 100, "p90": p90}}
    assert disturbance(MACHINE | {"load_before": load}, steps) == why


@pytest.mark.parametrize(
    ("share", "why"),
    [(0.001, None), (0.0131, "its cores stood still for 1.3% of the time before the run")],
)
def test_stalls_are_noticed(share: float, why: str | None) -> None:
    assert disturbance(MACHINE | {"stalled_share": share}, {}) == why


def test_without_step_times_only_the_load_counts() -> None:
    assert disturbance(MACHINE, {}) is None


def test_the_machine_in_words() -> None:
    assert in_words(MACHINE) == (
        "2 cores of EPYC (avx2, avx512f), load 0.1 before the run, Python 3.11.7, 2026-11-22"
    )
    assert in_words(describe()).startswith(f"{describe()['cores']} cores of ")
