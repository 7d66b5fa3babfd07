"""Rows combined by their numbers, against one row at a time."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.framework.dtypes import DataType
from runtime.kernels.array.unique import unique_with_counts
from runtime.kernels.linalg.matrix_product import matrix_product
from runtime.kernels.math.row_runs import combine_runs, run_starts, stable_order
from runtime.kernels.math.segment_math import reduce_rows
from runtime.kernels.sparse.edit_distance import edit_distance

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


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(500,), (500, 4)])
def test_rows_are_reduced_by_id(shape: tuple[int, ...], dtype: type) -> None:
    rng = np.random.default_rng(SEED)
    data, ids = rng.integers(-9, 9, shape).astype(dtype), rng.integers(-2, 40, 500)
    want = np.zeros((30, *shape[1:]), dtype)
    inside = (ids >= 0) & (ids < 30)
    np.add.at(want, ids[inside], data[inside])
    got = reduce_rows(np.add, data, ids, 30, 0)
    assert got.dtype == dtype
    assert np.array_equal(got, want), f"seed {SEED}"


@pytest.mark.parametrize("spread", [3, 10**9])
def test_unique_by_table_and_by_sorting(spread: int) -> None:
    values = np.random.default_rng(SEED).integers(-50, 50, 400) * spread
    found, numbers, counts = unique_with_counts(values, out_idx=DataType.INT64)
    assert found.tolist() == list(dict.fromkeys(values.tolist()))
    assert np.array_equal(found[numbers], values), f"seed {SEED}"
    assert counts.tolist() == [values.tolist().count(each) for each in found.tolist()]


@pytest.mark.parametrize("largest", [100, 2**31 - 1])
def test_products_of_integers_are_exact(largest: int) -> None:
    rng = np.random.default_rng(SEED)
    left, right = (rng.integers(-largest, largest, (64, 64), np.int32) for _ in range(2))
    want = np.matmul(left.astype(np.int64), right.astype(np.int64)).astype(np.int32)
    assert np.array_equal(matrix_product(left, right), want), f"seed {SEED}"


def distance(one: list[int], other: list[int]) -> int:
    table = {(-1, -1): 0}
    for i in range(-1, len(one)):
        for j in range(-1, len(other)):
            if (i, j) != (-1, -1):
                inf = 10**9
                table[i, j] = min(
                    table.get((i - 1, j), inf) + 1,
                    table.get((i, j - 1), inf) + 1,
                    table.get((i - 1, j - 1), inf) + (i < 0 or j < 0 or one[i] != other[j]),
                )
    return table[len(one) - 1, len(other) - 1]


def test_edit_distances_of_many_groups() -> None:
    rng = np.random.default_rng(SEED)
    pairs = [[rng.integers(0, 4, rng.integers(0, 9)).tolist() for _ in range(2)] for _ in range(50)]
    sparse = []
    for side in range(2):
        entries = [
            (row, column, value)
            for row, pair in enumerate(pairs)
            for column, value in enumerate(pair[side])
        ]
        indices = np.array([entry[:2] for entry in entries], np.int64)
        values = np.array([entry[2] for entry in entries], np.int32)
        sparse += [indices, values, np.array([50, 9], np.int64)]
    got = edit_distance(*sparse, normalize=False)
    assert got.tolist() == [distance(*pair) for pair in pairs], f"seed {SEED}"
