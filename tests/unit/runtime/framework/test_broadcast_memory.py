"""The bound of element-wise kernels."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.framework.broadcast_memory import MOST_BYTES_A_PRODUCT, broadcast_need


@pytest.mark.parametrize(
    ("x", "y", "elements"),
    [
        ((), (), 1),
        ((3,), (3,), 3),
        ((1000, 1), (1, 1000), 10**6),
        ((2, 3), (3,), 6),
        ((3,), (2, 3), 6),
        ((0,), (5, 1), 0),
        ((2,), (3,), 0),  # they don't broadcast: the kernel raises
    ],
)
def test_the_need_is_that_of_the_broadcast_shape(
    x: tuple[int, ...], y: tuple[int, ...], elements: int
) -> None:
    arrays = np.zeros(x, np.float64), np.zeros(y, np.float64)
    need = broadcast_need(*arrays)
    assert need == 2 * 8 * elements
    assert need <= MOST_BYTES_A_PRODUCT * arrays[0].size * arrays[1].size


def test_the_shapes_alone_count() -> None:
    column = np.broadcast_to(np.float32(0), (1 << 20, 1))
    row = np.broadcast_to(np.float32(0), (1, 1 << 20))
    assert broadcast_need(column, row) == 8 << 40
    assert broadcast_need(np.float32(1), np.float32(2)) == 8
