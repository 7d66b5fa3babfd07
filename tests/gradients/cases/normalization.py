"""Batch normalisation twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

IMAGE = np.sin(np.arange(48) ** 2 * 0.13 + 0.4).reshape(2, 3, 4, 2).astype(np.float32)
SOLID = IMAGE.reshape(2, 3, 2, 2, 2)
MEAN, VARIANCE = np.array([0.1, -0.2], np.float32), np.array([0.5, 1.5], np.float32)
SCALE, OFFSET = [1.5, 0.5], [0.25, -1.0]


def _gradient(version: str, is_training: bool, **attrs: Any) -> Body:
    """The op FusedBatchNormGrad; the gradients do not read its statistics if it trains."""

    def gradients(dy: Any, x: Any, scale: Any) -> list[Any]:
        more = [np.zeros(0, np.float32)] if version == "V3" else []
        op = getattr(ops, f"FusedBatchNormGrad{version}")
        given = (dy, x, scale, MEAN, VARIANCE, *more)
        return list(op(*given, is_training=is_training, **attrs)[:3])

    return gradients


def _twice(x: Any, scale: Any, offset: Any) -> Any:
    empty = np.zeros(0, np.float32)
    return ops.Square(ops.FusedBatchNormV3(x, scale, offset, empty, empty, is_training=True)[0])


CASES: dict[str, GradientCase] = {
    **{
        f"FusedBatchNormGrad{version}_{name}": case(
            _gradient(version, training), IMAGE[::-1], IMAGE, SCALE, tolerance=1e-4
        )
        for version in ("", "V2", "V3")
        for name, training in (("batch", True), ("given", False))
    },
    "FusedBatchNormGradV3_volume": case(
        _gradient("V3", False, data_format="NDHWC"), SOLID[::-1], SOLID, SCALE, tolerance=1e-4
    ),
    "FusedBatchNormGradV3_half": case(
        _gradient("V3", False),
        IMAGE[::-1].astype(np.float16), IMAGE.astype(np.float16), SCALE, tolerance=2e-3,
    ),
    "FusedBatchNormV3_twice": case(_twice, IMAGE, SCALE, OFFSET, order=2, tolerance=1e-3),
}  # fmt: skip
