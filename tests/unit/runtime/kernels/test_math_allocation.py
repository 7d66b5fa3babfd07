"""Small inputs that broadcast or multiply to a huge result are refused before numpy allocates."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import ResourceExhaustedError
from runtime.kernels import kernel_defs
from runtime.kernels.linalg.einsum import einsum
from runtime.kernels.linalg.matmul import batch_mat_mul_v2, mat_mul
from runtime.kernels.math.comparison import equal, select_v2

SIZE = 1 << 17  # SIZE² float32 elements are 64 GiB, beyond the default limit
COLUMN, ROW = np.ones((SIZE, 1), np.float32), np.ones((1, SIZE), np.float32)
FLAGS = {"adj_x": False, "adj_y": False}


def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    kernel = next(each for each in kernel_defs() if each.op == "AddV2")
    return kernel.function(x, y)


@pytest.mark.parametrize(
    "compute",
    [
        lambda: add(COLUMN, ROW),
        lambda: equal(COLUMN, ROW, incompatible_shape_error=True),
        lambda: select_v2(COLUMN > 0, ROW, ROW),
        lambda: mat_mul(COLUMN, ROW, transpose_a=False, transpose_b=False),
        lambda: mat_mul(ROW, COLUMN, transpose_a=True, transpose_b=True),
        lambda: batch_mat_mul_v2(COLUMN, ROW, **FLAGS),
        lambda: einsum(COLUMN, ROW, equation="ij,jk->ik"),
        lambda: einsum(ROW[0], equation="i->ii"),
    ],
)
def test_huge_results_are_refused(compute: object) -> None:
    with pytest.raises(ResourceExhaustedError, match=r"OOM when allocating tensor with shape\["):
        compute()  # type: ignore[operator]
