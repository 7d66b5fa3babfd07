"""The numbers of ParameterizedTruncatedNormal are distributed as they should be."""

from __future__ import annotations

import types

import numpy as np
import pytest

from runtime.framework.philox import GuardedPhilox
from runtime.kernels.random.random_truncated import parameterized_truncated_normal

SAMPLES = 20000
# (lower bound, upper bound, mean, variance) of the standard normal distribution cut off
CASES = (
    (-1.0, 1.0, 0.0, 0.2911251),
    (0.0, 50.0, 0.7978846, 0.3633802),
    (-50.0, 0.0, -0.7978846, 0.3633802),
    (5.0, 50.0, 5.1865036, 0.0326964),
)


def draw(low: float, high: float) -> np.ndarray:
    """Numbers with mean 3 and deviation 2 before they are cut off, brought back to 0 and 1."""
    source = GuardedPhilox(1, 2)
    context = types.SimpleNamespace(kernel_state=lambda make: source)
    parameters = (np.array([each]) for each in (3.0, 2.0, 3 + 2 * low, 3 + 2 * high))
    shape = np.array([1, SAMPLES], np.int32)
    return (parameterized_truncated_normal(context, shape, *parameters)[0] - 3) / 2


@pytest.mark.parametrize(("low", "high", "mean", "variance"), CASES)
def test_moments_are_those_of_the_distribution(
    low: float, high: float, mean: float, variance: float
) -> None:
    numbers = draw(low, high)
    assert numbers.min() >= low
    assert numbers.max() <= high
    # Five standard errors
    assert numbers.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / SAMPLES))
    assert numbers.var() == pytest.approx(variance, rel=0.08)
