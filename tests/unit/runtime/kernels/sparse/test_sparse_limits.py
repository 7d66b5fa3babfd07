"""Sparse and ragged kernels refuse results that are too large before they allocate memory."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.kernels.sparse.ragged import ragged_range
from runtime.kernels.sparse.sparse_to_dense import sparse_to_dense

HUGE = np.array(1 << 40)


def test_a_huge_dense_tensor_is_refused() -> None:
    indices, values = np.zeros((1, 1), np.int64), np.ones(1, np.float32)
    with pytest.raises(ResourceExhaustedError):
        sparse_to_dense(indices, HUGE[None], values, np.float32(1), validate_indices=True)


def test_a_huge_range_is_refused() -> None:
    with pytest.raises(ResourceExhaustedError):
        ragged_range(np.array(0), HUGE, np.array(1), Tsplits=DataType.INT64)
