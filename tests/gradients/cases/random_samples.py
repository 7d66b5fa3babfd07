"""Random numbers by the parameters of their distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import GradientCase, case

SEED = np.array([3, 7], np.int64)


def _gamma_v3(alpha: Any) -> Any:
    key, counter = ops.StatelessRandomGetKeyCounter(SEED)
    return ops.StatelessRandomGammaV3(np.array([4, 3], np.int32), key, counter, 1, alpha)


CASES: dict[str, GradientCase] = {
    "RandomGamma": case(
        lambda alpha: ops.RandomGamma(np.array([4], np.int32), alpha, seed=5, seed2=6),
        [[0.5, 1.5], [3.0, 9.0]],
    ),
    "StatelessRandomGammaV2": case(
        lambda alpha: ops.StatelessRandomGammaV2(np.array([4, 3], np.int32), SEED, alpha),
        np.array([0.5, 1.5, 3.0]),
    ),
    "StatelessRandomGammaV3": case(_gamma_v3, np.array([0.5, 1.5, 3.0])),
}  # fmt: skip
