"""What a soak counts as wrong, failed and explained."""

from __future__ import annotations

import pytest

from bench.soak.record import FAULT_SECONDS, Counts, Failed, Record, WrongAnswer

KILL = frozenset({("low: dense", "UNAVAILABLE")})


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def failing(record: Record, kind: str, error: Exception) -> None:
    with record.watched(kind):
        raise error


def test_requests_wrong_answers_and_failures_are_counted_and_taken() -> None:
    record = Record()
    record.count("models: predict", 3)
    failing(record, "models: predict", WrongAnswer("3 instead of 4"))
    failing(record, "models: predict", Failed("INTERNAL", "oh"))
    failing(record, "models: predict", ValueError("no JSON"))
    taken = record.take()
    assert taken == Counts({"models: predict": 3}, 1, {"INTERNAL": 1, "NO_ANSWER": 1})
    assert record.take() == Counts()
    assert record.notes == [
        "wrong, models: predict: 3 instead of 4",
        "failed, models: predict: INTERNAL: oh",
        "failed, models: predict: NO_ANSWER: ValueError: no JSON",
    ]


@pytest.mark.parametrize(
    ("since", "kind", "code", "is_explained"),
    [
        (5.0, "low: dense", "UNAVAILABLE", True),
        (10.0 + FAULT_SECONDS, "low: dense", "UNAVAILABLE", True),
        (10.5, "low: dense", "UNAVAILABLE", False),  # it began after the fault
        (5.0, "low: dense", "INTERNAL", False),
        (5.0, "models: predict", "UNAVAILABLE", False),
    ],
)
def test_a_fault_explains_failures_under_way(
    since: float, kind: str, code: str, is_explained: bool
) -> None:
    clock = Clock()
    record = Record(clock)
    clock.now = 10.0
    record.fault(KILL)
    clock.now = since
    failing(record, kind, Failed(code, ""))
    taken = record.take()
    assert (dict(taken.explained), dict(taken.failed)) == (
        ({code: 1}, {}) if is_explained else ({}, {code: 1})
    )
    assert bool(record.notes) is not is_explained


def test_spans_add_up() -> None:
    counts = Counts({"a": 1}, 1, {"INTERNAL": 1}, {})
    total = Counts()
    total.add(counts)
    total.add(counts)
    assert total == Counts({"a": 2}, 2, {"INTERNAL": 2}, {})
