"""Small inputs whose product is huge are refused before numpy allocates it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from runtime.foundation.errors import ResourceExhaustedError
from runtime.kernels.linalg.einsum import einsum
from runtime.kernels.linalg.matmul import batch_mat_mul_v2, mat_mul

SIZE = 1 << 17  # SIZE² float32 elements are 64 GiB, beyond the default limit
COLUMN, ROW = np.ones((SIZE, 1), np.float32), np.ones((1, SIZE), np.float32)


@pytest.mark.parametrize(
    "compute",
    [
        lambda: mat_mul(COLUMN, ROW, transpose_a=False, transpose_b=False),
        lambda: mat_mul(ROW, COLUMN, transpose_a=True, transpose_b=True),
        lambda: batch_mat_mul_v2(COLUMN, ROW, adj_x=False, adj_y=False),
        lambda: einsum(COLUMN, ROW, equation="ij,jk->ik"),
        lambda: einsum(ROW[0], equation="i->ii"),
    ],
)
def test_huge_products_are_refused(compute: Callable[[], np.ndarray]) -> None:
    with pytest.raises(ResourceExhaustedError, match=r"OOM when allocating tensor with shape\["):
        compute()
