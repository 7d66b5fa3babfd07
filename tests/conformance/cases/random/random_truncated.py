"""ParameterizedTruncatedNormal: shapes and errors only, because the random sequences differ."""

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


def truncated(dtype: type, message: bool = False, **changes: Any) -> Case:
    shape, *parameters = {**DEFAULTS, **changes}.values()
    inputs = (np.asarray(each, dtype) for each in parameters)
    made = case(
        "ParameterizedTruncatedNormal", np.asarray(shape, np.int32), *inputs, message=message
    )
    return dataclasses.replace(made, shape_only=True)


def stateless(**changes: Any) -> Case:
    shape, *parameters = {**DEFAULTS, **changes}.values()
    inputs = (np.asarray(each, np.float32) for each in parameters)
    seed = np.array([1, 2], np.int32)
    op = "StatelessParameterizedTruncatedNormal"
    return dataclasses.replace(
        case(op, np.asarray(shape, np.int32), seed, *inputs), shape_only=True
    )


CASES = (
    *(stateless(shape=shape) for shape in ([2], [3, 2], [4, 3, 2], [0, 2])),
    stateless(stdevs=[1, -1], shape=[2]),
    *(truncated(t, **each) for t in (np.float16, np.float32, np.float64) for each in CHANGES),
    *(truncated(np.float32, message=True, **each) for each in BAD),
    truncated(np.float32, shape=[]),
)  # fmt: skip
