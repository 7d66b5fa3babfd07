"""Matrix products of integers."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.kernels.linalg.matrix_product import matrix_product

SEED = 20


@pytest.mark.parametrize("largest", [100, 2**31 - 1])
def test_products_of_integers_are_exact(largest: int) -> None:
    rng = np.random.default_rng(SEED)
    left, right = (rng.integers(-largest, largest, (64, 64), np.int32) for _ in range(2))
    want = np.matmul(left.astype(np.int64), right.astype(np.int64)).astype(np.int32)
    assert np.array_equal(matrix_product(left, right), want), f"seed {SEED}"
