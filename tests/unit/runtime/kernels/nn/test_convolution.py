"""Convolution where TensorFlow's CPU kernels give no answer to compare with."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import ResourceExhaustedError
from runtime.kernels.nn.convolution import conv2d, depthwise_conv2d_native
from tests.unit.runtime.kernels.nn.convolution_inputs import (
    CONVOLUTION,
    FILTER,
    RNG,
    X,
    channels_first,
)


def test_convolution_accepts_channels_first() -> None:
    first = {**CONVOLUTION, "strides": (1, 1, 2, 3), "data_format": "NCHW"}
    last = {**CONVOLUTION, "strides": (1, 2, 3, 1)}
    got = conv2d(channels_first(X), FILTER, **first)
    np.testing.assert_array_equal(got, channels_first(conv2d(X, FILTER, **last)))


@pytest.mark.parametrize("height", [6, 30])  # few rows and many take different paths
def test_depthwise_convolution_accepts_channels_first(height: int) -> None:
    x = RNG.normal(size=(2, height, 7, 4)).astype(np.float32)
    filter = RNG.normal(size=(3, 3, 4, 1)).astype(np.float32)
    valid = {**CONVOLUTION, "padding": "VALID"}
    got = depthwise_conv2d_native(channels_first(x), filter, **{**valid, "data_format": "NCHW"})
    np.testing.assert_array_equal(got, channels_first(depthwise_conv2d_native(x, filter, **valid)))


def test_depthwise_convolution_dilates_as_a_sparse_filter_would() -> None:
    filter = RNG.normal(size=(3, 3, 4, 2)).astype(np.float32)
    spread = np.zeros((5, 5, 4, 2), np.float32)
    spread[::2, ::2] = filter
    dilated = depthwise_conv2d_native(X, filter, **{**CONVOLUTION, "dilations": (1, 2, 2, 1)})
    plain = depthwise_conv2d_native(X, spread, **CONVOLUTION)
    np.testing.assert_allclose(dilated, plain, rtol=1e-5, atol=1e-5)


def test_convolution_refuses_a_padding_that_takes_too_much_memory() -> None:
    huge = {**CONVOLUTION, "padding": "EXPLICIT"}
    huge["explicit_paddings"] = (0, 0, 1 << 40, 0, 0, 0, 0, 0)
    with pytest.raises(ResourceExhaustedError, match="OOM when allocating"):
        conv2d(X, FILTER, **huge)
