"""Runs of rows with one number, combined together and row by row."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.kernels.math.row_runs import combine_runs, run_starts, stable_order

SEED = 20


@pytest.mark.parametrize("limit", [7, 1 << 16, 1 << 20, 1 << 40])
@pytest.mark.parametrize("count", [10, 3000])
def test_stable_order(limit: int, count: int) -> None:
    numbers = np.random.default_rng(SEED).integers(0, limit, count) // 5 * 5
    assert np.array_equal(stable_order(numbers, limit), np.argsort(numbers, kind="stable"))


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.fmax])
@pytest.mark.parametrize("lengths", [[1], [1, 1, 1], [40, 1, 2, 3], [2, 50, 60, 1, 7], [100]])
def test_runs_are_combined(lengths: list[int], ufunc: np.ufunc, columns: int) -> None:
    rng = np.random.default_rng(SEED)
    data = rng.integers(1, 9, (sum(lengths), columns))
    rows = rng.permutation(len(data))
    starts = np.cumsum([0, *lengths[:-1]])
    ends = [*starts[1:].tolist(), len(data)]
    for chosen in (None, rows):
        taken = data if chosen is None else data[chosen]
        want = [
            ufunc.reduce(taken[start:end], axis=0) for start, end in zip(starts, ends, strict=True)
        ]
        got = combine_runs(ufunc, data, chosen, starts, np.dtype(np.int64))
        assert np.array_equal(got, want), f"seed {SEED}"


def test_run_starts() -> None:
    assert run_starts(np.array([3, 3, 4, 9, 9, 9])).tolist() == [0, 2, 3]
