"""The figures of a mixed load."""

from __future__ import annotations

import numpy as np
import pytest

from bench.mixed_load.events import LOAD, RELOAD, Event
from bench.mixed_load.run import Outcome
from bench.mixed_load.tables import (
    QUIET,
    figures,
    latency_rows,
    request_table,
    summary,
    windows_by_event,
)
from bench.mixed_load.tally import ELSEWHERE

PER_WINDOW = 10


def times(*of_windows: float) -> np.ndarray:
    """Return requests from second 50 on, whose latencies are the same in each tenth of a second."""
    due = 50.001 + np.arange(len(of_windows) * PER_WINDOW) / PER_WINDOW / 10
    return np.stack([due, np.repeat(of_windows, PER_WINDOW)], axis=1)


EVENTS = [Event(RELOAD, 50.15, 50.16), Event(LOAD, 50.25, 50.45)]
TIMES = times(0.001, 0.005, 0.002, 0.003, 0.004, 0.001)


def outcome(counts: dict[str, dict[str, int]]) -> Outcome:
    return Outcome(counts, TIMES, EVENTS, [2], [], [])


def test_a_tenth_of_a_second_counts_for_the_event_that_touches_it() -> None:
    found = windows_by_event(TIMES, EVENTS)
    assert {kind: [each[0] for each in windows] for kind, windows in found.items()} == {
        QUIET: [0.001, 0.001], RELOAD: [0.005], LOAD: [0.002, 0.003, 0.004],
    }  # fmt: skip
    assert all(len(each) == PER_WINDOW for windows in found.values() for each in windows)


def test_a_tenth_with_few_requests_does_not_count() -> None:
    found = windows_by_event(TIMES[: PER_WINDOW + 2], [])
    assert found == {QUIET: [[0.001] * PER_WINDOW]}


def test_loads_are_compared_with_the_time_without_events() -> None:
    found = figures(outcome({"REST": {"OK": 1234, ELSEWHERE: 1}}))
    assert found["load_of_quiet"] == pytest.approx(3)
    assert found["failed"] == 0
    assert "1,235 requests, 0 failed" in summary(found)
    assert "3.00 (bar 1.5, **missed**)" in summary(found)
    assert summary(found).endswith("passed")
    assert f"| {LOAD} | 1 | 0.20 | 3 | 3.00 | 4.00 | 3.00 | 3.00 |" in latency_rows(found)


def test_failures_show_by_code() -> None:
    found = figures(outcome({"REST": {"OK": 5, "INTERNAL": 2, "UNAVAILABLE": 1}}))
    assert found["failed"] == 3
    assert "| REST | 5 | 0 | 2 INTERNAL, 1 UNAVAILABLE |" in request_table(found["requests"])
    assert summary(found).endswith("FAILED")
