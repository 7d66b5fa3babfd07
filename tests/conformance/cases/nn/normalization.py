"""Normalization: FusedBatchNorm in its three versions, LRN."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, case

RNG = np.random.default_rng(3)
X = RNG.normal(size=(2, 3, 4, 3)).astype(np.float32)
SCALE = np.array([1.5, 2, -1], np.float32)
OFFSET = np.array([0.5, -1, 0], np.float32)
MEAN = np.array([0.1, 0.2, -0.3], np.float32)
VARIANCE = np.array([1, 2, 0.5], np.float32)
NONE = np.zeros(0, np.float32)
GIVEN = (SCALE, OFFSET, MEAN, VARIANCE)
FRESH = (SCALE, OFFSET, NONE, NONE)
VERSIONS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


def batch_norm(op: str, x: np.ndarray, vectors: tuple[np.ndarray, ...], **attrs: Any) -> Case:
    whole = case(op, x, *vectors, message=True, **attrs)
    if attrs.get("is_training", True):
        return whole
    # In inference TensorFlow does not initialize the reserve spaces.
    steps = tuple(dataclasses.replace(s, fetches=s.fetches[:3]) for s in whole.steps)
    return dataclasses.replace(whole, steps=steps)


NORMS = (
    (X, GIVEN, {"is_training": False}),
    (X, GIVEN, {"is_training": False, "epsilon": 0.1}),
    (X, (SCALE, OFFSET, MEAN, -VARIANCE), {"is_training": False}),
    (X, FRESH, {}),
    (X, GIVEN, {}),
    (X, GIVEN, {"exponential_avg_factor": 0.25}),
    (X, GIVEN, {"exponential_avg_factor": 0.0}),
    (X[:1, :1, :1], FRESH, {}),
    (X[:, :, :, None], GIVEN, {"is_training": False, "epsilon": 0.01}),
    (X[:0], GIVEN, {"is_training": False, "shape_only": True}),
    (X[:0], FRESH, {"shape_only": True}),
    # errors
    (X, FRESH, {"exponential_avg_factor": 0.5}),
    (X, FRESH, {"is_training": False}),
    (X[0], GIVEN, {}),
    (X, (SCALE[:1], OFFSET, MEAN, VARIANCE), {}),
    (X, (SCALE, OFFSET[:1], MEAN, VARIANCE), {}),
    (X, (SCALE, OFFSET, MEAN[:1], VARIANCE), {"is_training": False}),
    (X, (SCALE, OFFSET, MEAN, VARIANCE[:1]), {"is_training": False}),
    (X, (SCALE[None], OFFSET, MEAN, VARIANCE), {}),
    (X, (SCALE, OFFSET[None], MEAN, VARIANCE), {}),
    (X, (SCALE, OFFSET, MEAN[None], VARIANCE), {}),
    (X, (SCALE, OFFSET, MEAN, VARIANCE[None]), {}),
)

CASES = (
    *(batch_norm(op, x, vectors, **attrs) for op in VERSIONS for x, vectors, attrs in NORMS),
    *(
        batch_norm(op, np.moveaxis(X, 3, 1), GIVEN, data_format="NCHW", is_training=training)
        for op in VERSIONS
        for training in (False, True)
    ),
    *(
        batch_norm(op, X.astype(dtype), GIVEN, is_training=training)
        for op in VERSIONS[1:]
        for dtype in (np.float16, ml_dtypes.bfloat16)
        for training in (False, True)
    ),
    *(
        batch_norm("FusedBatchNormV3", X[None], GIVEN, data_format="NDHWC", is_training=training)
        for training in (False, True)
    ),
    *(
        case("LRN", (X * 3).astype(dtype), **attrs)
        for dtype, attrs in (
            (np.float32, {}),
            (np.float32, {"depth_radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75}),
            (np.float32, {"depth_radius": 0, "beta": 1.0}),
            (np.float16, {"depth_radius": 2}),
        )
    ),
    case("LRN", X[0], message=True),
)
