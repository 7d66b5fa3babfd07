"""Edit distances of many groups, against the textbook's table."""

from __future__ import annotations

import numpy as np

from runtime.kernels.sparse.edit_distance import edit_distance

SEED = 20


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
