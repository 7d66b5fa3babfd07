"""Rules for documented differences of single numbers: NaN probabilities or rows, denormals."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Answer, Case
from tools.oracle_comparison.rules_of_difference import Answers, same_shapes


def chances_that_are_nan(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The outputs agree except where the probability (fourth input) is NaN."""
    chances = list(case.steps[0].feeds.values())[3]
    if not same_shapes(case, ours, theirs) or not np.isnan(chances.astype(np.float64)).any():
        return False
    got, want = (each[0].values[0] for each in (ours, theirs))  # type: ignore[union-attr]
    known = np.broadcast_to(~np.isnan(chances.astype(np.float64)), want.shape)
    return np.array_equal(got[known], want[known])


def rows_with_nan(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The outputs agree except for rows (last dimension of the first input) that contain NaN."""
    first = next(iter(case.steps[0].feeds.values()))
    if not same_shapes(case, ours, theirs) or "f" not in first.dtype.name:
        return False
    known = ~np.isnan(first.astype(np.float64)).any(-1)
    got, want = (each[0].values[0].astype(np.float64) for each in (ours, theirs))  # type: ignore[union-attr]
    return not known.all() and np.array_equal(got[known], want[known])


def denormal(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The outputs agree except where both are 0 or denormal."""
    kinds = {value.dtype.kind for answer in theirs for value in answer.values}
    if not same_shapes(case, ours, theirs) or kinds - set("biuf"):
        return False
    return all(
        np.allclose(got[~_tiny(got, want)], want[~_tiny(got, want)], 1e-5, 0, True)
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def _tiny(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    if want.dtype.kind != "f":
        return np.zeros(want.shape, bool)
    least = np.finfo(want.dtype).smallest_normal
    return (np.abs(got) <= least) & (np.abs(want) <= least)
