"""Ops that select elements by their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

CUBE = np.sin(np.arange(30) ** 2 * 0.37).reshape(2, 5, 3).astype(np.float32)
TIES = np.round(CUBE * 2) / 2


def _approximate(axis: int, is_max: bool) -> Body:
    return lambda x: ops.ApproxTopK(x, k=2, reduction_dimension=axis, is_max_k=is_max)[0]


def _isotonic(x: Any) -> Any:
    return ops.IsotonicRegression(x, output_dtype="float32")[0]


CASES: dict[str, GradientCase] = {
    "TopKV2": case(lambda x: ops.TopKV2(x, 2)[0], CUBE),
    **{f"ApproxTopK_{axis}": case(_approximate(axis, axis != 1), CUBE[..., :2]) for axis in (-1,)},
    "NthElement": case(lambda x: ops.NthElement(x, 1), CUBE),
    "NthElement_ties": case(lambda x: ops.NthElement(x, 1, reverse=True), TIES),
    "IsotonicRegression": case(_isotonic, CUBE.reshape(5, 6)),
}
