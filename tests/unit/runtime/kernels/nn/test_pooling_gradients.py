"""Gradients of pooling: positions that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.kernels.nn.pooling_gradients import max_pool_grad_with_argmax


def test_argmax_outside_of_the_image_is_refused() -> None:
    attrs: dict[str, Any] = {
        "ksize": (1, 1, 2, 1), "strides": (1, 1, 2, 1), "padding": "SAME",
        "include_batch_in_index": False,
    }  # fmt: skip
    gradient = np.ones((1, 1, 2, 1), np.float32)
    argmax = np.array([0, 7]).reshape(1, 1, 2, 1)
    with pytest.raises(InvalidArgumentError, match="argmax holds 7, which is outside"):
        max_pool_grad_with_argmax(np.zeros((1, 1, 4, 1), np.float32), gradient, argmax, **attrs)
