"""The figures of bench.capacity and bench.capacity.waiting as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.tables import significant, table

Figures = Mapping[str, Any]
WITHIN = 0.2  # what a prediction may be off


def micros(seconds: float) -> str:
    """Return microseconds."""
    return significant(seconds * 1e6)


def constants_table(constants: Figures) -> str:
    """Return a row for each constant of the formula."""
    rows = [
        *([f"front, {name}", f"{micros(each)} µs"] for name, each in constants["front"].items()),
        ["application", f"{micros(constants['application'])} µs"],
        *(
            [name, f"{significant(constants[key] * 1e9)} ns"]
            for name, key in (
                ("a number in a request as JSON", "read"),
                ("a number in a request of 256 KiB and more", "read_large"),
                ("a number in an answer as JSON", "write"),
            )
        ),
        *(
            [f"a kilobyte, {name}", f"{micros(each)} µs"]
            for name, each in constants["kilobyte"].items()
        ),
        *([f"pool, {name}", f"{micros(each)} µs"] for name, each in constants["pool"].items()),
        ["company", f"× {constants['company']:.2f}"],
        ["contention of fronts", f"× {constants['front_contention']:.2f}"],
        ["contention of steps", f"× {constants['step_contention']:.2f}"],
    ]
    return table(["constant", "value"], rows)


def predictions_table(rows: Sequence[Figures]) -> str:
    """Return a row for each configuration: predicted, measured, error."""
    shown = [
        [
            with_shares(row),
            row["cores"],
            f"{micros(row['predicted_seconds'])} ({micros(row['seconds'])})",
            significant(row["per_processor_second"]),
            significant(row["predicted_per_second"]),
            significant(row["per_second"]),
            f"{row['error']:+.0%}",
        ]
        for row in rows
    ]
    head = ["requests", "processes, cores", "µs each: predicted (measured)"]
    head += ["per processor second", "requests/s: predicted", "measured", "error"]
    return table(head, shown)


def with_shares(row: Figures) -> str:
    """Return the name of a configuration, with the shares of a mixture."""
    if len(row["shares"]) == 1:
        return str(row["name"])
    names = row["name"].split(" + ")
    return " + ".join(
        f"{share:.0%} {name}" for share, name in zip(row["shares"], names, strict=True)
    )


def capacity_tables(figures: Figures) -> str:
    """Return the constants, the fitted rows, the held-out rows and how many are within a fifth."""
    held_out = figures["held_out"]
    within = sum(abs(row["error"]) <= WITHIN for row in held_out)
    return "\n\n".join(
        [
            constants_table(figures["constants"]),
            "Fitted:",
            predictions_table(figures["fitted"]),
            "Held out:",
            predictions_table(held_out),
            f"{within} of {len(held_out)} predictions are within {WITHIN:.0%}.",
        ]
    )


def waiting_table(figures: Figures) -> str:
    """Return a row for each model and utilisation of bench.capacity.waiting."""
    rows = [
        [
            model,
            significant(of_model["highest"]),
            f"{micros(of_model['cost'])}",
            significant(of_model["alone_p99_ms"]),
            f"{row['utilisation']:.0%}",
            significant(row["p50_ms"]),
            significant(row["predicted_p99_ms"]),
            significant(row["p99_ms"]),
            f"× {row['p99_ms'] / row['predicted_p99_ms']:.2f}",
        ]
        for model, of_model in figures.items()
        for row in of_model["rows"]
    ]
    head = ["model", "highest rate", "µs each", "p99 ms alone", "part of the highest rate"]
    head += ["p50 ms", "p99 ms: formula", "measured", "measured ÷ formula"]
    return table(head, rows)
