"""A short step that reports its runs, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from runtime.api import ShortStep
from runtime.errors import InvalidArgumentError
from server.steps.batching import timed_short_step
from server.steps.batching.timed_short_step import TimedShortStep


class Step(ShortStep):
    """Takes a quarter of a second, unless it does not run or fails."""

    may_run = True

    def __init__(self) -> None:
        self.now = 10.0
        self.answer: list[Any] | None = [1]

    def run(self, values: Sequence[np.ndarray]) -> list[Any] | None:
        self.now += 0.25
        if not values:
            raise InvalidArgumentError("no values")
        return self.answer


def test_only_completed_runs_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    step, seen = Step(), list[float]()
    monkeypatch.setattr(timed_short_step.time, "perf_counter", lambda: step.now)
    timed = TimedShortStep(step, seen.append)
    values = [np.zeros(1)]
    assert timed.may_run
    assert timed.run(values) == [1]
    assert seen == [0.25]
    step.answer, step.may_run = None, False
    assert timed.run(values) is None
    assert not timed.may_run
    with pytest.raises(InvalidArgumentError):
        timed.run([])
    assert seen == [0.25]
