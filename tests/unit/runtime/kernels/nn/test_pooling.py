"""Pooling where TensorFlow's CPU kernels give no answer to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.kernels.nn.pooling import avg_pool, max_pool
from tests.unit.runtime.kernels.nn.convolution_inputs import X, channels_first


@pytest.mark.parametrize("pool", [avg_pool, max_pool])
def test_pooling_accepts_channels_first(pool: Any) -> None:
    extra = {"explicit_paddings": ()} if pool is max_pool else {}
    first = pool(
        channels_first(X), ksize=(1, 1, 2, 3), strides=(1, 1, 2, 1), padding="SAME",
        data_format="NCHW", **extra,
    )  # fmt: skip
    last = pool(
        X, ksize=(1, 2, 3, 1), strides=(1, 2, 1, 1), padding="SAME", data_format="NHWC", **extra
    )
    np.testing.assert_array_equal(first, channels_first(last))


def test_a_window_far_larger_than_the_input_costs_no_more_than_the_input() -> None:
    pooled = max_pool(
        X, ksize=(1, 1 << 40, 1 << 40, 1), strides=(1, 1, 1, 1), padding="SAME",
        explicit_paddings=(), data_format="NHWC",
    )  # fmt: skip
    np.testing.assert_array_equal(pooled, np.broadcast_to(X.max((1, 2), keepdims=True), X.shape))
