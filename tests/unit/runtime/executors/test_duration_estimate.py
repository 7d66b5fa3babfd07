"""One slow run counts more than many quick ones; slow first runs are forgotten."""

from __future__ import annotations

import concurrent.futures
import math

import numpy as np
import pytest

from runtime.executors.duration_estimate import (
    MOST_GROWTH,
    MOST_WAITING_SECONDS,
    SHORT_SECONDS,
    SMALL_SIZE,
    STAYS_SHORT_SECONDS,
    WARM_UP,
    DurationEstimate,
    size_of,
)

QUICK, LIMIT = 1e-4, 2e-4


def warm(seconds: float = QUICK) -> DurationEstimate:
    estimate = DurationEstimate()
    for _ in range(WARM_UP + 1):
        estimate.note(seconds)
    return estimate


def quick_runs_until_short(estimate: DurationEstimate) -> int:
    for count in range(10_000):
        if estimate.seconds < LIMIT:
            return count
        estimate.note(QUICK)
    raise AssertionError("it never comes under the limit")


def test_nothing_is_short_before_it_has_run() -> None:
    assert DurationEstimate().seconds == math.inf


def test_first_runs_that_fill_caches_are_forgotten() -> None:
    estimate = DurationEstimate()
    for _ in range(WARM_UP):
        estimate.note(5.0)
        assert estimate.seconds == 5.0
    estimate.note(QUICK)
    assert estimate.seconds == QUICK


@pytest.mark.parametrize(("slow", "runs"), [(3e-4, 6), (4e-3, 28), (1.0, 69)])
def test_a_slow_run_counts_for_many_quick_ones(slow: float, runs: int) -> None:
    estimate = warm()
    estimate.note(slow)
    assert estimate.seconds == slow
    assert quick_runs_until_short(estimate) == runs


def test_the_slowest_of_several_counts() -> None:
    estimate = warm()
    for seconds in (1e-3, 4e-3, 2e-3):
        estimate.note(seconds)
    assert 3e-3 < estimate.seconds < 4e-3


def test_a_failed_run_moves_the_estimate_up_only() -> None:
    estimate = warm(1e-3)
    estimate.note(1e-6, is_completed=False)
    assert estimate.seconds == 1e-3
    estimate.note(2e-3, is_completed=False)
    assert estimate.seconds == 2e-3


def test_failed_runs_are_no_first_runs() -> None:
    estimate = DurationEstimate()
    for _ in range(10):
        estimate.note(QUICK, is_completed=False)
    assert estimate.seconds == math.inf


def test_a_slow_run_is_not_lost_among_threads() -> None:
    estimate = warm()
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        quick = [
            threads.submit(lambda: [estimate.note(QUICK) for _ in range(50)]) for _ in range(3)
        ]
        threads.submit(estimate.note, 1e30).result(60)
        for each in quick:
            each.result(60)
    # At most 150 quick runs are noted after the slow one.
    assert estimate.seconds > 1e30 * (7 / 8) ** 151


def test_the_estimate_holds_for_feeds_up_to_twice_those_of_a_short_run():
    estimate = DurationEstimate()
    assert estimate.size_limit == MOST_GROWTH * SMALL_SIZE
    estimate.note(0.1, size=1000)
    estimate.note(0.0, size=1000, is_completed=False)
    assert estimate.size_limit == MOST_GROWTH * SMALL_SIZE
    estimate.note(0.0001, size=1000)
    estimate.note(0.0001, size=10)
    assert estimate.size_limit == MOST_GROWTH * 1000


def test_the_size_of_feeds_counts_elements_and_bytes_of_strings():
    strings = np.array([[b"abc", b""]], object)
    assert size_of([np.zeros((2, 3)), np.float32(1), strings]) == 6 + 1 + 3


def test_strings_of_more_dimensions_than_flat_iterators_have():
    assert size_of([np.full((1,) * 45, b"abc", object)]) == 3


def test_a_run_of_larger_feeds_does_not_make_smaller_ones_long() -> None:
    estimate = DurationEstimate()
    for _ in range(WARM_UP + 1):
        estimate.note(QUICK, size=1000)
    for size in (MOST_GROWTH * 1000 + 1, MOST_GROWTH * 1000):
        estimate.note(0.5, size=size)
        assert estimate.seconds == pytest.approx(QUICK)
    assert estimate.size_limit == MOST_GROWTH * 1000 - 1  # those of that size are not short
    estimate.note(QUICK, size=1500)
    assert estimate.size_limit == MOST_GROWTH * 1500
    estimate.note(0.5, size=1000)
    assert estimate.seconds == 0.5


def test_runs_of_a_short_step_that_others_slowed_down_do_not_count() -> None:
    estimate = DurationEstimate()
    for _ in range(5):
        estimate.note_here(0.00001, 0.00001, is_completed=True, size=1)
    for _ in range(3):
        estimate.note_here(0.004, 0.9 * STAYS_SHORT_SECONDS, is_completed=True, size=1)
    assert estimate.seconds == pytest.approx(0.00001)


def test_runs_of_a_step_that_is_not_short_count() -> None:
    estimate = DurationEstimate()
    for _ in range(5):
        estimate.note_here(0.9 * STAYS_SHORT_SECONDS, 1.0, is_completed=True, size=1)
    assert estimate.seconds == pytest.approx(0.9 * STAYS_SHORT_SECONDS)


@pytest.mark.parametrize(
    ("waited", "worked"), [(2 * MOST_WAITING_SECONDS, 0.00001), (0.004, STAYS_SHORT_SECONDS)]
)
def test_long_waits_and_much_work_count_at_once(waited: float, worked: float) -> None:
    estimate = DurationEstimate()
    for _ in range(5):
        estimate.note_here(0.00001, 0.00001, is_completed=True, size=1)
    estimate.note_here(waited, worked, is_completed=True, size=1)
    assert estimate.seconds > SHORT_SECONDS
