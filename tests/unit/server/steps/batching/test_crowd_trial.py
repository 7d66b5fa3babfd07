"""A trial decides whether the short steps of a crowd are batched, by how long phases take."""

from __future__ import annotations

import pytest

from server.steps.batching.crowd_trial import (
    FIRST_PAUSE,
    GAP_SECONDS,
    LONGEST_PAUSE,
    PHASE,
    SETTLING,
    CrowdTrial,
)

TWO_PHASES = 2 * (PHASE + 1)  # those before and after a pause may be of the same kind


class Callers:
    """Come one after the other; each takes a ms at once and `batched` ms in a batch."""

    def __init__(self, batched: float) -> None:
        self.trial = CrowdTrial()
        self.batched = batched
        self.now = 100.0

    def come(self, count: int, *, is_crowded: bool = True) -> list[bool]:
        """Let so many arrive; return which of them wait for a batch."""
        waits = []
        for _ in range(count):
            waits.append(self.trial.batches)
            self.trial.add(self.now, is_crowded=is_crowded)
            self.now += (self.batched if waits[-1] else 1.0) / 1e3
        return waits


def pauses(waits: list[bool], usual: bool) -> list[int]:
    """The numbers of arrivals in a row that were treated as `usual`, of more than a phase."""
    found, count = list[int](), 0
    for each in waits:
        count = count + 1 if each is usual else 0
        if count == PHASE + 2:
            found.append(0)
        if count >= PHASE + 2:
            found[-1] = count
    return found


@pytest.mark.parametrize(
    ("batched", "batches"), [(0.5, True), (0.99, True), (1.01, True), (1.05, False), (2.0, False)]
)
def test_steps_are_batched_unless_they_are_through_more_quickly_at_once(
    batched: float, batches: bool
) -> None:
    callers = Callers(batched)
    assert all(callers.come(PHASE))
    callers.come(4 * PHASE)
    assert set(callers.come(FIRST_PAUSE // 2)) == {batches}


def test_the_quickest_phase_of_a_kind_counts() -> None:
    callers = Callers(5.0)  # a model is being compiled
    callers.come(2 * PHASE + 1)
    callers.batched = 0.5
    callers.come(3 * PHASE)
    assert all(callers.come(FIRST_PAUSE // 2))


@pytest.mark.parametrize("batched", [0.5, 2.0])
def test_a_trial_is_repeated_ever_more_rarely_while_it_decides_the_same(batched: float) -> None:
    waits = Callers(batched).come(6 * LONGEST_PAUSE)
    first, *others = pauses(waits, batched < 1)
    lengths = [FIRST_PAUSE << 2 * number for number in range(3)]
    assert FIRST_PAUSE <= first <= FIRST_PAUSE + TWO_PHASES
    for length, seen in zip([*lengths[1:], LONGEST_PAUSE], others, strict=False):
        assert length <= seen <= length + TWO_PHASES
    assert waits.count(batched < 1) > 0.99 * len(waits)


@pytest.mark.parametrize("batched", [0.2, 5.0])
def test_a_trial_that_is_repeated_ends_as_soon_as_the_other_way_is_not_better(
    batched: float,
) -> None:
    callers = Callers(batched)
    waits = callers.come(6 * PHASE + FIRST_PAUSE)
    usual = batched < 1
    begin = len(waits) - waits[::-1].index(not usual) - 1  # the last that was treated otherwise
    tried = waits[begin - PHASE : begin + 1].count(not usual)
    assert SETTLING < tried < SETTLING + (PHASE - SETTLING) // 4
    assert callers.trial.batches is usual


@pytest.mark.parametrize("batched", [0.5, 2.0])
@pytest.mark.parametrize("together", [300, 1000, 1700])
def test_a_phase_during_which_nobody_came_for_a_while_begins_anew(
    batched: float, together: int
) -> None:
    callers = Callers(batched)
    waits = []
    for _ in range(4):
        waits += callers.come(together)
        callers.now += 10 * GAP_SECONDS
    waits += callers.come(5 * PHASE)
    assert not all(waits)  # a trial was held
    assert not callers.trial.is_under_way
    assert callers.trial.batches is (batched < 1)


def test_an_arrival_that_passes_counts_as_one_that_is_added() -> None:
    callers = Callers(2.0)
    assert not callers.trial.passes()
    callers.come(5 * PHASE)
    assert callers.trial.passes()
    passed = 1
    while callers.trial.passes():
        passed += 1
    assert FIRST_PAUSE - 2 * PHASE < passed < FIRST_PAUSE
    assert not callers.trial.is_under_way
    callers.come(1)
    assert callers.trial.is_under_way


def test_another_result_makes_the_next_trial_come_early() -> None:
    callers = Callers(2.0)
    callers.come(4 * FIRST_PAUSE)
    callers.batched = 0.5
    waits = callers.come(6 * FIRST_PAUSE)
    assert pauses(waits, usual=True)[0] <= FIRST_PAUSE + TWO_PHASES


def test_arrivals_without_a_crowd_decide_nothing() -> None:
    callers = Callers(2.0)
    assert all(callers.come(10 * PHASE, is_crowded=False))
    callers.come(PHASE + 1)  # a phase with batches
    assert not any(callers.come(PHASE // 2))
    callers.now += 1e6
    assert not any(callers.come(PHASE // 2 + 1, is_crowded=False))  # so this one does not count
    assert not any(callers.come(PHASE))
    callers.come(2 * PHASE + 2)
    assert not any(callers.come(FIRST_PAUSE // 2))
