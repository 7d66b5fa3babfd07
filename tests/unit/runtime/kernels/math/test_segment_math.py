"""Rows reduced by segment, together and row by row."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.kernels.math.segment_math import reduce_rows

SEED = 20


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
