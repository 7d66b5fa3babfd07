"""Pooling ops whose gradients need the positions or the bounds of the pooled areas."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

IMAGE = np.sin(np.arange(100) ** 2 * 0.13 + 0.4).reshape(2, 5, 5, 2).astype(np.float32)
SOLID = np.sin(np.arange(128) ** 2 * 0.11 + 0.4).reshape(1, 4, 4, 4, 2).astype(np.float32)
WINDOW = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}
SOLID_WINDOW = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 1, 2, 1], "padding": "SAME"}


def _fractional(op: str, overlapping: bool) -> Body:
    return lambda x: getattr(ops, op)(
        x, [1.0, 1.5, 1.75, 1.0], overlapping=overlapping, deterministic=True, seed=7, seed2=8
    )[0]


def _grad_grad(op: str, pool: str, window: dict[str, Any]) -> Body:
    return lambda x, dy: getattr(ops, op)(x, getattr(ops, pool)(x, **window), dy, **window)


CASES: dict[str, GradientCase] = {
    "MaxPoolWithArgmax": case(lambda x: ops.MaxPoolWithArgmax(x, **WINDOW)[0], IMAGE),
    "MaxPoolWithArgmax_batch": case(
        lambda x: ops.MaxPoolWithArgmax(x, **WINDOW, include_batch_in_index=True)[0], IMAGE
    ),
    **{
        f"{op}_{overlapping}": case(_fractional(op, overlapping), IMAGE)
        for op in ("FractionalMaxPool", "FractionalAvgPool")
        for overlapping in (False, True)
    },
    "MaxPoolGradGrad": case(_grad_grad("MaxPoolGradGrad", "MaxPool", WINDOW), IMAGE, IMAGE * 2),
    "MaxPool3DGradGrad": case(
        _grad_grad("MaxPool3DGradGrad", "MaxPool3D", SOLID_WINDOW), SOLID, SOLID * 2
    ),
}
