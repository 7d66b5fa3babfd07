"""Images, a filter and the attributes of a convolution."""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 7, 4)).astype(np.float32)
FILTER = RNG.normal(size=(3, 3, 4, 5)).astype(np.float32)
CONVOLUTION: dict[str, Any] = {
    "strides": (1, 1, 1, 1), "padding": "SAME", "explicit_paddings": (),
    "dilations": (1, 1, 1, 1), "data_format": "NHWC",
}  # fmt: skip


def channels_first(x: np.ndarray) -> np.ndarray:
    """`[batch, height, width, channels]` as `[batch, channels, height, width]`."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))
