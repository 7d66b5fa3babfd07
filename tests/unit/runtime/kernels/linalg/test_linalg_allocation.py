"""Small inputs whose product is huge are refused before numpy allocates it, wrong shapes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.kernels.linalg import matrix_product
from runtime.kernels.linalg.einsum import einsum
from runtime.kernels.linalg.matmul import batch_mat_mul_v2, mat_mul
from runtime.kernels.linalg.memory_needs import MEMORY_NEEDS

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


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("op", ["MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"])
def test_matrices_that_do_not_fit_need_no_memory_for_a_product(op: str, adjoint: bool) -> None:
    # A bound of 64 GiB would be refused before the kernel reports the wrong shape.
    empty_rows, weights = np.ones((SIZE, 0), np.float32), np.ones((3, SIZE), np.float32)
    if adjoint:
        empty_rows, weights = empty_rows.T, weights.T
    names = ("transpose_a", "transpose_b") if op == "MatMul" else ("adj_x", "adj_y")
    attributes: dict[str, Any] = dict.fromkeys(names, adjoint)
    if op == "BatchMatMulV3":
        attributes["Tout"] = DataType.FLOAT
    assert MEMORY_NEEDS[op](empty_rows, weights, **attributes) <= 2 * weights.nbytes


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("adjoint", [False, True])
def test_a_wrong_shape_is_reported_before_a_huge_product(
    adjoint: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several threads would write into a product that is there.
    monkeypatch.setattr(matrix_product, "_is_split", lambda _: threads > 1)
    rows, weights = np.ones((SIZE, 2), np.float32), np.ones((3, SIZE), np.float32)
    if adjoint:
        rows, weights = rows.T, weights.T
    with pytest.raises(InvalidArgumentError, match="Matrix size-incompatible"):
        batch_mat_mul_v2(rows, weights, adj_x=adjoint, adj_y=adjoint)
    with pytest.raises(InvalidArgumentError, match="Matrix size-incompatible"):
        mat_mul(rows, weights, transpose_a=adjoint, transpose_b=adjoint)
