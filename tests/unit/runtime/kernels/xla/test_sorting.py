"""Sorting of what has no order, and of rows whose length is no power of two."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.api import UnimplementedError
from runtime.client import ops
from runtime.framework.dtypes import DataType
from tests.unit.runtime.kernels.xla.xla_steps import run


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(UnimplementedError, match="have no order"):
        run("XlaSort", np.ones(3, np.complex64))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000])
def test_a_comparator_sorts_rows_of_any_length_stably(count: int) -> None:
    keys = np.random.default_rng(count).integers(0, 9, (2, count)).astype(np.int32)
    numbers = np.tile(np.arange(count, dtype=np.int32), (2, 1))
    before = ([DataType.INT32] * 4, lambda a, b, c, d: ops.Less(a, b))
    got = run(
        "XlaVariadicSort", [keys, numbers], np.int32(1), is_stable=True,
        functions={"comparator": before},
    )  # fmt: skip
    order = np.argsort(keys, 1, kind="stable")
    np.testing.assert_array_equal(got[0], np.take_along_axis(keys, order, 1))
    np.testing.assert_array_equal(got[1], order)
