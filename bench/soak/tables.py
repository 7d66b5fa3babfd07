"""The figures of a soak as tables and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bench.soak.judgement import Minute, growth, total
from bench.soak.run import Outcome
from bench.tables import table

COLUMNS = (
    "models", "sessions", "gRPC", "TensorFlow", "clusters", "low", "large", "ended", "poisoned",
    "faults",
)  # fmt: skip
HEAD = (
    "minute", *COLUMNS, "wrong", "failed", "explained", "resident MB", "threads", "descriptors",
    "/healthz ms",
)  # fmt: skip


def minute_row(number: int, minute: Minute) -> list[Any]:
    """Return a row of the table over time."""
    counts, last = minute.counts, minute.samples[-1]
    by_column = dict.fromkeys(COLUMNS, 0)
    for kind, count in counts.requests.items():
        by_column[kind.partition(":")[0]] += count
    return [
        number + 1, *by_column.values(), counts.wrong, codes(counts.failed),
        codes(counts.explained), f"{minute.resident_bytes / 1e6:.1f}", last.threads,
        last.descriptors, f"{minute.latency * 1e3:.0f}",
    ]  # fmt: skip


def codes(counts: Mapping[str, int]) -> str:
    """Return counts by code as a cell."""
    return ", ".join(f"{count} {code}" for code, count in sorted(counts.items())) or "0"


def time_table(minutes: Sequence[Minute]) -> str:
    """Return the table over time."""
    return table(list(HEAD), [minute_row(*each) for each in enumerate(minutes)])


def kind_table(minutes: Sequence[Minute]) -> str:
    """Return the requests of each kind."""
    requests = total(minutes).requests
    return table(["work", "requests"], [[kind, requests[kind]] for kind in sorted(requests)])


def summary(outcome: Outcome) -> str:
    """Return the result in a few lines."""
    counts, grown = total(outcome.minutes), growth(outcome.minutes)
    start, end = outcome.start, outcome.end
    lines = [
        f"{sum(counts.requests.values())} requests, {counts.wrong} wrong, failed: "
        f"{codes(counts.failed)}; explained by {outcome.killed} killed processes: "
        f"{codes(counts.explained)}",
        "growth of the resident memory: "
        + ("the run was too short to say" if grown is None else f"{grown:+.2%}"),
        f"idle at the start: {start.threads} threads, {start.descriptors} descriptors, "
        f"{start.resident_bytes / 1e6:.1f} MB; in the end: {end.threads} threads, "
        f"{end.descriptors} descriptors, {end.resident_bytes / 1e6:.1f} MB",
        *outcome.notes,
        *outcome.log_faults[:3],
        f"FAILED: {'; '.join(outcome.faults)}" if outcome.faults else "passed",
    ]
    return "\n".join(lines)


def figures(outcome: Outcome) -> dict[str, Any]:
    """Return all figures, for a JSON file."""
    return {
        "minutes": [
            dict(zip(HEAD, minute_row(*each), strict=True)) for each in enumerate(outcome.minutes)
        ],
        "requests": dict(total(outcome.minutes).requests),
        "wrong": total(outcome.minutes).wrong,
        "failed": dict(total(outcome.minutes).failed),
        "explained": dict(total(outcome.minutes).explained),
        "growth": growth(outcome.minutes),
        "start": dataclasses.asdict(outcome.start),
        "end": dataclasses.asdict(outcome.end),
        "faults": outcome.faults,
        "notes": outcome.notes,
    }
