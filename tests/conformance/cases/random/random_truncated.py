"""Truncated normal distributions with parameters: candidates of each of the three kinds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tests.conformance.case import Case, case

DEFAULTS = {
    "shape": [2, 3], "means": [0, 1], "stdevs": [1, 2], "minvals": [-1, 0], "maxvals": [1, 3],
}  # fmt: skip
CHANGES: tuple[dict[str, Any], ...] = (
    {}, {"means": 0, "stdevs": [1]}, {"shape": [2]}, {"shape": [2, 3, 4]}, {"shape": [2, 0]},
    {"maxvals": [np.inf, 3]}, {"minvals": [0.5, 2.5]},
)  # fmt: skip
BAD: tuple[dict[str, Any], ...] = (
    {"shape": [3, 3]}, {"shape": 3}, {"means": [0, 1, 2]}, {"means": [[0, 1]]},
    {"stdevs": [1, -1]}, {"minvals": [5, 5]}, {"minvals": [np.nan, 0]}, {"shape": [2, -3]},
)  # fmt: skip


WIDE_APART = (
    {"minvals": [-3, -9], "maxvals": [np.inf, 9]},  # normal candidates
    {"minvals": [-np.inf, -np.inf], "maxvals": [1, -3]},
    {"minvals": [-0.5, 0.5], "maxvals": [0.5, 1.2]},  # uniform candidates
    {"minvals": [2, 5], "maxvals": [2.1, 5.3]},
    {"minvals": [2, 7], "maxvals": [np.inf, 90]},  # exponential candidates
    {"minvals": [-90, -np.inf], "maxvals": [-3, -4]},
)


def truncated(dtype: type, message: bool = False, **changes: Any) -> Case:
    shape, *parameters = {**DEFAULTS, **changes}.values()
    inputs = (np.asarray(each, dtype) for each in parameters)
    made = case(
        "ParameterizedTruncatedNormal", np.asarray(shape, np.int32), *inputs, seed=87, seed2=4,
        message=message,
    )  # fmt: skip
    return dataclasses.replace(made, steps=made.steps * 2)  # the second step goes on in the stream


def stateless(dtype: type = np.float32, message: bool = False, **changes: Any) -> Case:
    shape, *parameters = {**DEFAULTS, **changes}.values()
    inputs = (np.asarray(each, dtype) for each in parameters)
    seed = np.array([1, 2], np.int32)
    op = "StatelessParameterizedTruncatedNormal"
    return case(op, np.asarray(shape, np.int32), seed, *inputs, message=message)


TYPES = (np.float16, np.float32, np.float64)
SCALARS = {"means": 0.5, "stdevs": 2, "minvals": -1, "maxvals": 3}
ROWS = {"means": [[0], [1], [2]], "minvals": [-1, 0], "maxvals": 4}

CASES = (
    *(stateless(shape=shape) for shape in ([2], [3, 2], [4, 3, 2], [0, 2])),
    stateless(stdevs=[1, -1], shape=[2]),
    *(truncated(t, **each) for t in TYPES for each in CHANGES),
    *(truncated(np.float32, message=True, **each) for each in BAD),
    truncated(np.float32, shape=[]),
    *(truncated(t, shape=[2, 30], **each) for t in TYPES for each in WIDE_APART),
    *(truncated(t, shape=shape, **SCALARS) for t in TYPES for shape in ([40, 7], [0, 3], [3])),
    truncated(np.float32, means=[1], stdevs=[2], minvals=0, maxvals=5, shape=[130]),
    *(stateless(t, shape=[30, 2], **each) for t in TYPES for each in WIDE_APART),
    *(stateless(t, shape=[17], **SCALARS) for t in TYPES),
    *(stateless(t, shape=[2, 3, 2], **ROWS) for t in TYPES),
    *(stateless(message=True, **each) for each in (
        {"shape": [3]}, {"shape": []}, {"shape": [[2]]}, {"means": [0, 1, 2]}, {"shape": [3, 3]},
        {"minvals": [1, 0], "maxvals": [0, 1], "shape": [2]}, {"shape": [-1, 2]})),
)  # fmt: skip
