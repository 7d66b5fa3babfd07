"""The gradient of a truncated normal sample is its slope at a fixed cumulative probability.

As in TensorFlow, the bounds move with the mean and the deviation.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import runtime.client as tf
from runtime.client import ops
from runtime.kernels.math.error_functions import erfc, ndtri

STEP = 1e-5
PARAMETERS = {"mean": 0.25, "deviation": 1.5, "low": -1.5, "high": 2.0}


def cdf(x: np.ndarray) -> np.ndarray:
    return np.asarray(erfc(-x / math.sqrt(2)) / 2)


def limits(of: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """The cumulative probabilities of the bounds, in the distribution without bounds."""
    low, high = ((np.array(of[name]) - of["mean"]) / of["deviation"] for name in ("low", "high"))
    return cdf(low), cdf(high)


def sample_at(share: np.ndarray, of: dict[str, float]) -> np.ndarray:
    low, high = limits(of)
    return np.asarray(of["mean"] + of["deviation"] * ndtri(low + share * (high - low)))


def share_of(sample: np.ndarray, of: dict[str, float]) -> np.ndarray:
    low, high = limits(of)
    return (cdf((sample - of["mean"]) / of["deviation"]) - low) / (high - low)


def moved(name: str, step: float) -> dict[str, float]:
    of = {**PARAMETERS, name: PARAMETERS[name] + step}
    if name in ("mean", "deviation"):
        for bound in ("low", "high"):
            standard = (PARAMETERS[bound] - PARAMETERS["mean"]) / PARAMETERS["deviation"]
            of[bound] = of["mean"] + standard * of["deviation"]
    return of


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_truncated_normal_moves_with_its_parameters(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        given = {each: tf.constant(value, tf.float64) for each, value in PARAMETERS.items()}
        shape, seed = np.array([6], np.int32), np.array([3, 7], np.int64)
        sample = ops.StatelessParameterizedTruncatedNormal(shape, seed, *given.values())
        weights = np.arange(1.0, 7.0)
        slope = tf.gradients(sample, given[name], weights)[0]
        found, at = session.run([slope, sample])
    share = share_of(at, PARAMETERS)
    more, less = (sample_at(share, moved(name, step)) for step in (STEP, -STEP))
    assert found == pytest.approx((weights * (more - less) / (2 * STEP)).sum(), rel=1e-5)
