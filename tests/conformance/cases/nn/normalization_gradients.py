"""Gradients of FusedBatchNorm in its versions and of LRN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(12)
X = RNG.normal(size=(2, 3, 4, 3)).astype(np.float32)
DY = RNG.normal(size=(2, 3, 4, 3)).astype(np.float32)
SCALE = np.array([1.5, 2, -1], np.float32)
MEAN = np.array([0.1, 0.2, -0.3], np.float32)
VARIANCE = np.array([1, 2, 0.5], np.float32)
VERSIONS = ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
VECTORS = (SCALE, MEAN, VARIANCE)


def gradient(op: str, *inputs: np.ndarray, **attrs: Any) -> Case:
    third = (np.zeros((), np.float32),) if op.endswith("V3") else ()
    return case(op, *inputs, *third, message=True, **attrs)


REFUSED = (
    (DY, X[:1], *VECTORS), (DY[0], X[0], *VECTORS), (DY, X, SCALE[:1], MEAN, VARIANCE),
    (DY, X, SCALE, MEAN[:1], VARIANCE), (DY, X, SCALE, MEAN, VARIANCE[:1]),
    (DY, X, SCALE[None], MEAN, VARIANCE), (DY, X, SCALE, MEAN[None], VARIANCE),
    (DY, X, SCALE, MEAN, VARIANCE[None]),
)  # fmt: skip

CASES = (
    *(
        gradient(op, DY, X, *VECTORS, is_training=training, epsilon=0.01)
        for op in VERSIONS
        for training in (True, False)
    ),
    *(gradient(op, DY[:0], X[:0], *VECTORS) for op in VERSIONS),
    *(
        gradient(
            op, np.moveaxis(DY, 3, 1), np.moveaxis(X, 3, 1), *VECTORS, data_format="NCHW"
        )
        for op in VERSIONS
    ),
    *(
        gradient(op, DY.astype(t), X.astype(t), *VECTORS, tolerance=0.03)
        for op in VERSIONS[1:]
        for t in (np.float16, ml_dtypes.bfloat16)
    ),
    gradient(VERSIONS[2], DY[None], X[None], *VECTORS, data_format="NDHWC"),
    *(gradient(op, *inputs) for op in VERSIONS for inputs in REFUSED),
    *(
        case("LRNGrad", DY, X * 2, X, **attrs)
        for attrs in (
            {},
            {"depth_radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75},
            {"depth_radius": 0, "beta": 1.0},
        )
    ),
    case("LRNGrad", DY, X, X, depth_radius=-1, message=True),
    *(case("LRNGrad", *inputs, message=True) for inputs in ((DY, X[:1], X), (DY[0], X[0], X[0]))),
)  # fmt: skip
