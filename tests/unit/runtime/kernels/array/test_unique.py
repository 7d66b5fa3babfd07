"""Unique values, found by a table and by sorting."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.framework.dtypes import DataType
from runtime.kernels.array.unique import unique_with_counts

SEED = 20


@pytest.mark.parametrize("spread", [3, 10**9])
def test_unique_by_table_and_by_sorting(spread: int) -> None:
    values = np.random.default_rng(SEED).integers(-50, 50, 400) * spread
    found, numbers, counts = unique_with_counts(values, out_idx=DataType.INT64)
    assert found.tolist() == list(dict.fromkeys(values.tolist()))
    assert np.array_equal(found[numbers], values), f"seed {SEED}"
    assert counts.tolist() == [values.tolist().count(each) for each in found.tolist()]
