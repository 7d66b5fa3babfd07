"""Ever new shapes: bounded compilations, and forms in use stay."""

from __future__ import annotations

import types
from typing import Any

import pytest

from runtime.clusters.running import request_limits
from runtime.clusters.running.input_shapes import Pattern, Sample, fits
from runtime.clusters.running.request_limits import (
    MAX_COMPILATIONS,
    MAX_PATTERNS,
    RECURRING_RUNS,
    RENEWAL_SECONDS,
    RequestLimits,
    surplus,
)


def form(pattern: Pattern, last_used: float = 0.0) -> Any:
    return types.SimpleNamespace(
        pattern=pattern, last_used=last_used, fits=lambda sample: fits(pattern, sample)
    )


def sample(*shape: int) -> Sample:
    return (shape,)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(request_limits.time, "monotonic", lambda: now[0])
    return now


def test_compilations_are_limited_and_renewed(clock: list[float]) -> None:
    limits = RequestLimits()
    granted = [limits.request(sample(1, size), []) for size in range(MAX_COMPILATIONS + 5)]
    assert sum(each is not None for each in granted) == MAX_COMPILATIONS
    clock[0] += RENEWAL_SECONDS
    assert limits.request(sample(1, 1), []) is not None
    assert limits.request(sample(1, 1), []) is None


def test_the_samples_of_a_request_are_those_of_its_ranks_the_new_one_last() -> None:
    limits = RequestLimits()
    limits.request(sample(1, 2), [])
    limits.request(sample(4), [])
    assert limits.request(sample(1, 3), []) == (sample(1, 2), sample(1, 3))
    assert limits.request(sample(1, 2), []) == (sample(1, 3), sample(1, 2))


def test_ranks_without_a_form_give_way_to_others() -> None:
    limits = RequestLimits()
    for rank in (1, 2, 3):
        assert limits.request(sample(*[2] * rank), [])
    forms = [form(((2,),)), form(((2, 2),))]
    assert limits.request(sample(2, 2, 2, 2), forms)
    forms.append(form(((2, 2, 2, 2),)))
    assert limits.request(sample(2, 2, 2, 2, 2), forms) is None


def test_a_form_of_one_sample_needs_a_sample_that_recurs() -> None:
    limits = RequestLimits()
    assert limits.recurs(sample(1, 2))
    limits.accept(form(((1, 3),)), [sample(1, 2), sample(1, 3)])
    assert [limits.recurs(sample(1, 4)) for _ in range(RECURRING_RUNS)] == [False, False, True]
    assert not any(limits.recurs(sample(1, size)) for size in range(5, 500))


def test_forms_of_the_patterns_longest_unused_go() -> None:
    assert MAX_PATTERNS == 3
    old, used, wide = form(((1,),), 1.0), form(((2,),), 9.0), form(((3,),), 2.0)
    narrow = form(((3,),), 8.0)
    new = form(((4,),), 10.0)
    assert surplus(new, [old, used, wide, narrow]) == [old]
    assert surplus(form(((3,),)), [old, used, wide, narrow]) == []
