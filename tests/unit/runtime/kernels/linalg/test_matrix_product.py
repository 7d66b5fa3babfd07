"""Matrix products: exact for integers, split between threads where BLAS has one thread."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.intra_op_pool import set_thread_width
from runtime.kernels.linalg import matrix_product as products
from runtime.kernels.linalg.matrix_product import matrix_product, stacked_product

SEED = 20


@pytest.mark.parametrize("largest", [100, 2**31 - 1])
def test_products_of_integers_are_exact(largest: int) -> None:
    rng = np.random.default_rng(SEED)
    left, right = (rng.integers(-largest, largest, (64, 64), np.int32) for _ in range(2))
    want = np.matmul(left.astype(np.int64), right.astype(np.int64)).astype(np.int32)
    assert np.array_equal(matrix_product(left, right), want), f"seed {SEED}"


@pytest.mark.parametrize("is_single", [True, False])
def test_large_products_are_split_while_blas_has_one_thread(
    is_single: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards: list[int] = []
    shard = products.shard

    def counted(total: int, *arguments: object) -> None:
        shards.append(total)
        shard(total, *arguments)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(products, "shard", counted)
    monkeypatch.setattr(products, "is_blas_single", lambda: is_single)
    left, right = (np.ones((2, 256, 256), np.float32) for _ in range(2))
    set_thread_width(2)
    try:
        assert (matrix_product(left[0], right[0]) == 256).all()
        assert (stacked_product(left, right) == 256).all()
    finally:
        set_thread_width(0)
    assert shards == ([256, 2] if is_single else [])
