"""Inputs that ask for too much end in an error, not in an allocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.kernels.array.gather import one_hot
from runtime.kernels.array.padding import pad, tile
from runtime.kernels.array.scatter import scatter_nd
from runtime.kernels.array.shapes import broadcast_to, empty, reshape
from runtime.kernels.sparse.ragged import ragged_range
from runtime.kernels.sparse.sparse_to_dense import sparse_to_dense

HUGE = 1 << 40
ONE = np.float32(1)
VECTOR = np.ones(3, np.float32)
INDICES = np.zeros((1, 1), np.int64)


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (lambda: tile(VECTOR, np.array([HUGE])), ResourceExhaustedError),
        (lambda: tile(VECTOR[:0, None, None], np.array([1, HUGE, HUGE])), InvalidArgumentError),
        (lambda: pad(VECTOR, np.array([[HUGE, 0]])), ResourceExhaustedError),
        (lambda: broadcast_to(ONE, np.array([HUGE, HUGE])), InvalidArgumentError),
        (lambda: empty(np.array([HUGE]), dtype=DataType.FLOAT), ResourceExhaustedError),
        (lambda: empty(np.array([-1]), dtype=DataType.FLOAT), InvalidArgumentError),
        (
            lambda: one_hot(np.zeros(3, np.int32), np.array(HUGE), ONE, ONE, axis=-1),
            ResourceExhaustedError,
        ),
        (
            lambda: scatter_nd(INDICES, VECTOR[:1], np.array([HUGE]), bad_indices_policy=""),
            ResourceExhaustedError,
        ),
        (
            lambda: sparse_to_dense(
                INDICES, np.array([HUGE]), VECTOR[:1], ONE, validate_indices=True
            ),
            ResourceExhaustedError,
        ),
        (
            lambda: ragged_range(np.array(0), np.array(HUGE), np.array(1), Tsplits=DataType.INT64),
            ResourceExhaustedError,
        ),
        (lambda: reshape(VECTOR[:0], np.array([0, HUGE, HUGE])), InvalidArgumentError),
    ],
)
def test_a_huge_result_is_refused(run: Callable[[], Any], error: type[OpError]) -> None:
    with pytest.raises(error):
        run()
