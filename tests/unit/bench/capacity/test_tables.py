"""The tables of the capacity formula: predictions, their errors and how many are near."""

from __future__ import annotations

from typing import Any

from bench.capacity.formula import BINARY, GRPC, JSON
from bench.capacity.tables import capacity_tables, waiting_table, with_shares

BY_FRONT = {JSON: 3e-5, BINARY: 6e-5, GRPC: 4e-4}


def row(name: str, predicted: float, measured: float, *shares: float) -> dict[str, Any]:
    return {
        "name": name,
        "cores": 2,
        "shares": list(shares) or [1.0],
        "per_second": measured,
        "per_processor_second": measured / 2,
        "seconds": 2 / measured,
        "predicted_seconds": 2 / predicted,
        "predicted_per_second": predicted,
        "error": predicted / measured - 1,
    }


def test_misses_are_in_the_table_too() -> None:
    figures = {
        "constants": {
            "front": BY_FRONT, "application": 1e-4, "kilobyte": BY_FRONT, "pool": BY_FRONT,
            "read": 3e-8, "read_large": 6e-8, "write": 2e-8,
            "company": 1.1, "front_contention": 1.2, "step_contention": 1.4,
        },
        "fitted": [row("tiny", 1000, 1000)],
        "held_out": [row("near", 1190, 1000), row("far", 1500, 1000)],
    }  # fmt: skip
    text = capacity_tables(figures)
    assert "| front, gRPC | 400 µs |" in text
    assert "| a number in a request of 256 KiB and more | 60.0 ns |" in text
    assert "| contention of steps | × 1.40 |" in text
    assert "| far | 2 | 1,333 (2,000) | 500 | 1,500 | 1,000 | +50% |" in text
    assert text.endswith("1 of 2 predictions are within 20%.")


def test_a_mixture_shows_its_shares() -> None:
    assert with_shares(row("a, JSON + b, JSON", 1, 1, 0.75, 0.25)) == "75% a, JSON + 25% b, JSON"
    assert with_shares(row("a, JSON", 1, 1)) == "a, JSON"


def test_waiting() -> None:
    rows = [{"utilisation": 0.5, "p50_ms": 2.0, "p99_ms": 9.0, "predicted_p99_ms": 6.0}]
    figures = {"gru": {"highest": 1400.0, "cost": 7e-4, "alone_p99_ms": 1.5, "rows": rows}}
    assert "| gru | 1,400 | 700 | 1.50 | 50% | 2.00 | 6.00 | 9.00 | × 1.50 |" in waiting_table(
        figures
    )
