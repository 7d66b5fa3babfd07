"""Runs on two machines, by the reference product."""

from __future__ import annotations

from typing import Any

from bench.compare import comparison


def run(gflops: float, **median_ms: float) -> dict[str, Any]:
    row = {engine: {"batches": {"1": {"median_ms": ms}}} for engine, ms in median_ms.items()}
    return {"sections": {"steps": {"gemm_gflops": {"median": gflops}, "models": {"mlp": row}}}}


def test_a_machine_of_half_the_speed_takes_twice_the_time() -> None:
    rows = comparison(run(100, runstep=1, openvino=1), run(50, runstep=2, openvino=1))
    assert rows == [
        ["mlp", "Runstep", "1", "1.000", "2.000", "2.00", "1.00"],
        ["mlp", "OpenVINO", "1", "1.000", "1.000", "1.00", "0.50"],
    ]


def test_what_only_one_run_has_is_left_out() -> None:
    assert comparison(run(100), run(50, runstep=2)) == []
