"""Figures as Markdown."""

from __future__ import annotations

from typing import Any

import pytest

from bench.tables import batching_table, front_table, load_table, significant, step_table, table

FIGURES: dict[str, Any] = {
    "models": {
        "mlp": {
            "runstep": {
                "load_s": 0.11, "first_s": 0.004,
                "batches": {
                    "1": {"median_ms": 0.149, "resident_mb": 57.4}, "8": {"median_ms": 12.34},
                },
            },
            "openvino": {"unavailable": "no rule for DecodeJpeg"},
        },
        "lstm": {
            "runstep": {"load_s": 1.0, "first_s": 0.1, "batches": {"1": {"median_ms": 3.55}}},
            "openvino": {"load_s": 0.3, "first_s": 0.2, "batches": {"1": {"median_ms": 1234.5}}},
        },
    }
}  # fmt: skip


def test_a_table_has_a_head_and_a_line_for_each_row() -> None:
    assert table(["a", "b"], [[1, "x"]]) == "| a | b |\n| --- | --- |\n| 1 | x |"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0.0291, "0.029"), (3.804, "3.80"), (36.71, "36.7"), (1234.5, "1,234")],
)
def test_figures_have_three_digits(value: float | None, shown: str) -> None:
    assert significant(value) == shown


def test_step_times_of_batches_share_a_cell_and_gaps_are_dashes() -> None:
    assert step_table(FIGURES, (1, 8)).splitlines() == [
        "| ms at batch 1 / 8 | Runstep | OpenVINO |",
        "| --- | --- | --- |",
        "| mlp | 0.149 / 12.3 | not available |",
        "| lstm | 3.55 / – | 1,234 / – |",
    ]


def test_wrong_answers_show() -> None:
    row = {
        "batches": {"1": {"median_ms": 3.5, "error": 0.04}, "8": {"median_ms": 4.0, "error": None}}
    }
    text = step_table({"models": {"lstm": {"runstep": row}}}, (1, 8))
    assert text.splitlines()[2] == "| lstm | 3.50 / 4.00 **wrong** |"


def test_bfloat16_may_differ_by_more_than_float32() -> None:
    row = {"batches": {"1": {"median_ms": 3.5, "error": 0.04}}}
    engines = {"runstep_openvino": row, "runstep_openvino_bf16": row}
    text = step_table({"models": {"lstm": engines}}, (1,))
    assert text.splitlines()[2] == "| lstm | 3.50 **wrong** | 3.50 |"


def test_load_times_and_memory() -> None:
    assert load_table(FIGURES).splitlines()[2:] == [
        "| mlp | 0.110 / 0.004 / 57 | – |",
        "| lstm | 1.00 / 0.100 / – | 0.300 / 0.200 / – |",
    ]


def test_forms_of_batching_are_compared_with_none() -> None:
    row = {"per_second": 1000.0, "p50_ms": 1.0, "p99_ms": 12.34}
    figures = {
        "mlp": {
            "8": {
                "none": row, "adaptive": {**row, "of_none": 0.98},
                "parameters": {**row, "per_second": 1500.0, "of_none": 1.52},
            },
        }
    }  # fmt: skip
    assert batching_table(figures).splitlines()[2] == (
        "| mlp | 8 | 1,000 (12.3) | 1,000, × 0.98 (12.3) | 1,500, × 1.52 (12.3) |"
    )


def test_fronts_are_compared_with_their_echoes() -> None:
    row = {"per_second": 5120.0, "of_echo": 0.5, "p50_ms": 1.5, "p99_ms": 12.3, "client": 0.2}
    figures = {"models": {"mlp": {"gRPC Predict": row}}}
    assert front_table(figures).splitlines()[2] == (
        "| mlp | gRPC Predict | 5,120 | 0.50 | 1.50 | 12.3 | 0.20 |"
    )
