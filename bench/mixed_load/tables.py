"""The figures of a mixed load, as tables and as JSON: pure functions of its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.measure import WINDOW_SECONDS, latency_figures
from bench.mixed_load.events import LOAD, Event
from bench.mixed_load.run import Outcome
from bench.mixed_load.tally import ELSEWHERE, OK, failed
from bench.tables import table

QUIET = "no event"
LOAD_OF_QUIET = 1.5  # the bar: p99 of tenths of a second, median, during loads by that without
LEAST_REQUESTS = 5  # of a tenth of a second that counts


def windows_by_event(times: np.ndarray, events: Sequence[Event]) -> dict[str, list[list[float]]]:
    """Return the tenths of a second without an event, and those that each kind of event touches.

    Args:
        times: [n, 2]: when each request was due, and its latency; in seconds.
        events: They don't overlap.

    Returns:
        kind → windows, each the latencies of its requests; QUIET comes first.
    """
    found: dict[str, list[list[float]]] = {QUIET: []}
    for kind in dict.fromkeys(event.kind for event in events):
        found[kind] = []
    if not len(times):
        return found
    numbers = np.floor(times[:, 0] / WINDOW_SECONDS).astype(int)
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    for number, rows in zip(numbers[starts], np.split(times[:, 1], starts[1:]), strict=True):
        begin = number * WINDOW_SECONDS
        touching = (e.kind for e in events if e.start < begin + WINDOW_SECONDS and e.end > begin)
        if len(rows) >= LEAST_REQUESTS:
            found[next(touching, QUIET)].append(rows.tolist())
    return found


def figures(outcome: Outcome) -> dict[str, Any]:
    """Return all figures, for a JSON file."""
    windows = windows_by_event(outcome.times, outcome.events)
    latencies = latency_figures({kind: each for kind, each in windows.items() if each})
    seconds: dict[str, list[float]] = {}
    for event in outcome.events:
        seconds.setdefault(event.kind, []).append(event.end - event.start)
    counts = outcome.counts
    return {
        "requests": counts,
        "failed": sum(map(failed, counts.values())),
        "latencies": {
            kind: {**row, "windows": len(windows[kind]), "events": len(seconds.get(kind, ()))}
            for kind, row in latencies.items()
        },
        "event_seconds": {kind: sum(each) / len(each) for kind, each in seconds.items()},
        "load_of_quiet": latencies.get(LOAD, {}).get("window_p99_of_idle"),
        "running_at_drains": outcome.running,
        "faults": outcome.faults,
        "notes": outcome.notes,
    }


def request_table(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return the requests by front: right answers, those sent elsewhere, failures by code."""
    rows = [
        [
            front, f"{codes.get(OK, 0):,}", codes.get(ELSEWHERE, 0),
            ", ".join(f"{n} {code}" for code, n in codes.items() if code not in (OK, ELSEWHERE))
            or "0",
        ]
        for front, codes in counts.items()
    ]  # fmt: skip
    return table(["front", "right", ELSEWHERE, "failed"], rows)


def latency_rows(found: Mapping[str, Any]) -> str:
    """Return the latencies of tiny predictions beside each kind of event."""
    rows = [
        [
            kind, row["events"] or "", f"{found['event_seconds'].get(kind, 0):.2f}", row["windows"],
            f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}", f"{row['window_p99_ms']:.2f}",
            f"{row['window_p99_of_idle']:.2f}",
        ]
        for kind, row in found["latencies"].items()
    ]  # fmt: skip
    head = ["tiny predictions beside", "times", "seconds each", "tenths of a second", "p50 ms"]
    return table([*head, "p99 ms", "p99 of 0.1 s, median", f"÷ {QUIET}"], rows)


def summary(found: Mapping[str, Any]) -> str:
    """Return the result in a few lines."""
    ratio = found["load_of_quiet"]
    is_met = ratio is not None and ratio <= LOAD_OF_QUIET
    requests = sum(sum(codes.values()) for codes in found["requests"].values())
    lines = [
        f"{requests:,} requests, {found['failed']} failed; requests that ran at the drains: "
        f"{', '.join(map(str, found['running_at_drains']))}",
        f"p99 of tiny predictions during loads by that without: "
        f"{'not measured' if ratio is None else f'{ratio:.2f}'} (bar {LOAD_OF_QUIET}, "
        f"{'met' if is_met else '**missed**'})",
        *found["notes"],
        *(fault[:2000] for fault in found["faults"][:3]),
        "FAILED" if found["failed"] or found["faults"] else "passed",
    ]
    return "\n".join(lines)
