"""When a soak has failed."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.soak.judgement import LEAST_MINUTES, WARM_UP_MINUTES, Minute, Usage, faults, growth
from bench.soak.record import Counts

START = Usage(100, threads=20, descriptors=30)


def minute(resident: int, *others: int, counts: Counts | None = None) -> Minute:
    return Minute(counts or Counts(), [Usage(each, 20, 30) for each in (resident, *others)])


def minutes(*resident: int) -> list[Minute]:
    """A warm-up that grows, and minutes with these values."""
    return [minute(value) for value in range(WARM_UP_MINUTES)] + [minute(each) for each in resident]


def test_growth_is_that_of_the_last_third_over_the_first() -> None:
    assert growth(minutes(100, 100, 150, 101, 110, 110)) == pytest.approx(0.1)
    assert growth(minutes(100, 900, 100, 5, 5, 5, 100, 101, 900)) == pytest.approx(0.01)


def test_a_short_soak_says_nothing_about_growth() -> None:
    assert growth(minutes(*range(1, LEAST_MINUTES))) is None
    assert growth([]) is None


def test_a_minute_has_the_median_of_its_samples_and_the_slowest_answer() -> None:
    assert minute(1, 900, 2).resident_bytes == 2
    samples = [Usage(1, 1, 1, latency) for latency in (0.1, 0.3, 0.2)]
    assert Minute(Counts(), samples).latency == 0.3


def test_what_stays_level_passes() -> None:
    assert faults(minutes(100, 101, 100, 101, 100, 102), START, START) == []


def test_every_fault_is_named() -> None:
    wrong = Counts(wrong=2, failed=Counter({"INTERNAL": 1, "ABORTED": 3}))
    seen = [*minutes(100, 100, 100, 110, 110, 110), minute(110, counts=wrong)]
    assert faults(seen, START, Usage(100, 22, 31)) == [
        "2 wrong answers",
        "failed requests that no fault explains: 3 ABORTED, 1 INTERNAL",
        "the resident memory grew by 10.0% after the warm-up",
        "22 threads in the end, 20 at the start",
        "31 descriptors in the end, 30 at the start",
    ]


def test_explained_failures_and_fewer_threads_pass() -> None:
    counts = Counts(explained=Counter({"UNAVAILABLE": 4}))
    assert faults([minute(1, counts=counts)], START, Usage(1, 10, 10)) == []
