"""TimedShortStep: a short step that reports how long each of its runs takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.api import ShortStep


class TimedShortStep(ShortStep):
    """Another short step, with `report`, which is called with the seconds of each completed run."""

    __slots__ = ("_report", "_step")

    def __init__(self, step: ShortStep, report: Callable[[float], object]) -> None:
        self._step = step
        self._report = report

    @property
    def may_run(self) -> bool:
        """As of the other step."""
        return self._step.may_run

    def run(self, values: Sequence[np.ndarray]) -> list[Any] | None:
        """Run the other step."""
        started = time.perf_counter()
        fetched = self._step.run(values)
        if fetched is not None:
            self._report(time.perf_counter() - started)
        return fetched
