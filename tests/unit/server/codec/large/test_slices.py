"""Searching in steps finds what searching at once finds."""

import pytest

from server.codec.large import slices


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(slices, "STEP_BYTES", 3)


TEXT = b"a,bb,]],ccc]"


@pytest.mark.parametrize("what", [b",", b"]]", b"ccc", b"x", b"a", b"]"])
@pytest.mark.parametrize("bounds", [(0, len(TEXT)), (1, 7), (4, 4), (5, 8), (2, 6)])
def test_find_rfind_and_count(what, bounds):
    assert slices.find(TEXT, what, *bounds) == TEXT.find(what, *bounds)
    if len(what) == 1:
        assert slices.rfind(TEXT, what, *bounds) == TEXT.rfind(what, *bounds)
        assert slices.count(TEXT, what, *bounds) == TEXT.count(what, *bounds)


def test_steps_cover_the_bounds():
    assert list(slices.steps(1, 8, 3)) == [(1, 4), (4, 7), (7, 8)]
    assert list(slices.steps(2, 2, 3)) == []


def test_other_threads_run_once_a_turn(monkeypatch):
    now, pauses = 100.0, []

    def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr(slices.time, "perf_counter", lambda: now)
    monkeypatch.setattr(slices.time, "sleep", sleep)
    monkeypatch.setattr(slices, "_turn", slices._Turn())
    slices.pause_if_due()
    slices.pause_if_due()
    assert pauses == [slices.PAUSE_SECONDS]
    now += slices.TURN_SECONDS
    list(slices.steps(0, 9, 3))
    assert pauses == [slices.PAUSE_SECONDS] * 2
