"""Warming up, by a clock of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bench.engines.warm_up import (
    LEAST_RUNS,
    LIMIT_SECONDS,
    WINDOW_SECONDS,
    timed_runs,
    wait_until_idle,
    warm_up,
)


class Clock:
    """Seconds, which pass only while something runs."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def running(self, seconds: Iterator[float]) -> Callable[[], None]:
        """A function whose calls take the seconds, one after the other."""

        def run() -> None:
            self.now += next(seconds)

        return run


def test_it_goes_on_while_runs_get_faster() -> None:
    clock = Clock()
    waits: list[float] = []

    def seconds() -> Iterator[float]:
        while True:
            yield (0.1, 0.05, 0.02)[min(len(waits), 2)]

    run = clock.running(seconds())
    assert warm_up(run, clock, lambda: waits.append(clock.now)) == pytest.approx(0.02)
    assert len(waits) == 3  # the fourth window is as fast as the third


def test_it_gives_up_at_the_limit() -> None:
    clock = Clock()

    def faster_for_ever() -> Iterator[float]:
        each = 1e6
        while True:
            for _ in range(LEAST_RUNS):
                yield each
            each *= 0.5

    assert warm_up(clock.running(faster_for_ever()), clock, lambda: None) == 1e6
    assert clock.now > LIMIT_SECONDS


def test_a_block_has_at_least_so_many_runs() -> None:
    clock = Clock()
    run = clock.running(iter([0.5] * 10))
    assert timed_runs(run, WINDOW_SECONDS, 3, clock) == [0.5, 0.5, 0.5]
    assert timed_runs(run, 2.0, 3, clock) == [0.5] * 4


def test_a_process_is_idle_after_three_quiet_moments() -> None:
    clock = Clock()
    used = 0.0
    work = [0.0, 0.0, 0.05, 0.04, 0.001, 0.0, 0.0]  # processor seconds in each moment

    def sleep(seconds: float) -> None:
        nonlocal used
        clock.now += seconds
        used += work.pop(0)

    wait_until_idle(clock, lambda: used, sleep)
    assert work == []


def test_a_process_that_is_never_idle_is_waited_for_until_the_limit() -> None:
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.now += seconds

    wait_until_idle(clock, clock, sleep)
    assert LIMIT_SECONDS <= clock.now < LIMIT_SECONDS + 1
