"""Gradients of convolution: attributes that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.kernels.nn.convolution_gradients import conv2d_backprop_input
from tests.unit.runtime.kernels.nn.convolution_inputs import CONVOLUTION, FILTER, X


def test_transposed_convolution_refuses_a_zero_stride() -> None:
    zero = {**CONVOLUTION, "strides": (1, 0, 1, 1)}
    with pytest.raises(InvalidArgumentError, match="stride must be >= 1, but got 0"):
        conv2d_backprop_input(np.array([2, 6, 7, 4]), FILTER, X, **zero)
