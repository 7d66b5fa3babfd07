"""Truncated normal distributions, with a mean, standard deviation and bounds for each batch.

Samples are computed with the inverse of the cumulative distribution function. They have the
distribution of TensorFlow's samples, but are different numbers.

TF: tensorflow/core/kernels/parameterized_truncated_normal_op.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.philox import Philox
from runtime.framework.shapes import shape_text
from runtime.kernels.math.error_functions import erfc, ndtri
from runtime.kernels.random.random_distributions import uniform
from runtime.kernels.random.random_stateful import reserve
from runtime.kernels.random.random_stateless import stream_of_seed


def _check_shape(shape: np.ndarray, dtype: np.dtype) -> tuple[int, ...]:
    if np.ndim(shape) != 1:
        raise InvalidArgumentError(
            f"Input shape should be a vector, got shape: {shape_text(np.shape(shape))}"
        )
    if not shape.size:
        raise InvalidArgumentError("Shape tensor must not be empty")
    sizes = tuple(shape.tolist())
    check_allocation(sizes, dtype)
    return sizes


def _parameter(name: str, value: np.ndarray, batch: int) -> np.ndarray:
    """Return a parameter as float64 [batch]; a scalar or a vector of length 1 is repeated."""
    if np.ndim(value) > 1:
        raise InvalidArgumentError(
            f"Input {name} should be a scalar or vector, got shape: {shape_text(np.shape(value))}"
        )
    if np.size(value) not in (1, batch):
        raise InvalidArgumentError(
            f"Input {name} should have length 1 or shape[0], got shape: "
            f"{shape_text(np.shape(value))}"
        )
    return np.broadcast_to(np.ravel(value).astype(np.float64), (batch,))


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    """Return the cumulative distribution function of the standard normal distribution at `x`."""
    return np.asarray(erfc(-x / math.sqrt(2)) / 2)


def parameterized_truncated_normal(
    context: OpKernelContext,
    shape: np.ndarray,
    means: np.ndarray,
    stdevs: np.ndarray,
    minvals: np.ndarray,
    maxvals: np.ndarray,
) -> np.ndarray:
    """ParameterizedTruncatedNormal: return samples of `shape` `[batch, …]`.

    Each parameter has one element for every batch, or one element for all batches.
    """
    sizes = _check_shape(shape, means.dtype)
    mean, deviation, low, high = (
        _parameter(name, value, sizes[0])[:, np.newaxis]
        for name, value in (
            ("means", means), ("stddevs", stdevs), ("minvals", minvals), ("maxvals", maxvals),
        )
    )  # fmt: skip
    stream = reserve(context, -(-math.prod(sizes) // 2))
    flat = (sizes[0], math.prod(sizes[1:]))
    drawn = _sample(stream, flat, mean, deviation, low, high)
    return drawn.astype(means.dtype).reshape(sizes)


def stateless_parameterized_truncated_normal(
    shape: np.ndarray,
    seed: np.ndarray,
    means: np.ndarray,
    stddevs: np.ndarray,
    minvals: np.ndarray,
    maxvals: np.ndarray,
) -> np.ndarray:
    """StatelessParameterizedTruncatedNormal: return samples of `shape`.

    The parameters are broadcast to `shape`.
    """
    sizes = _check_shape(shape, means.dtype)
    parameters = (means, stddevs, minvals, maxvals)
    try:
        wide = [np.broadcast_to(each, sizes).astype(np.float64) for each in parameters]
    except ValueError:
        raise InvalidArgumentError("Parameters must broadcast to the output's shape") from None
    return _sample(stream_of_seed(seed), sizes, *wide).astype(means.dtype)


def _sample(
    stream: Philox,
    sizes: tuple[int, ...],
    mean: np.ndarray,
    deviation: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Return float64 samples of shape `sizes`; the parameters are broadcast to that shape.

    Raises InvalidArgumentError unless deviation > 0, low < high and at least one bound is finite.
    Raises InternalError if a mean is not finite.
    """
    one_sided = np.isfinite(low) | np.isfinite(high)
    if not ((deviation > 0) & (low < high) & one_sided).all():
        raise InvalidArgumentError("Invalid parameters")
    if not np.isfinite(mean).all():
        raise InternalError(
            "TruncatedNormal exponential distribution rejection sampler failed to accept a sample."
        )
    first, last = (low - mean) / deviation, (high - mean) / deviation
    # In the upper tail the distribution function rounds to 1. Bounds there are mirrored into the
    # lower tail, where it is accurate.
    mirrored = first > 0
    lower = np.where(mirrored, -last, first)
    upper = np.where(mirrored, -first, last)
    numbers = uniform(stream, math.prod(sizes), np.dtype(np.float64)).reshape(sizes)
    start = _normal_cdf(lower)
    each = start + numbers * (_normal_cdf(upper) - start)
    drawn = np.clip(ndtri(each), lower, upper)
    result = mean + deviation * np.where(mirrored, -drawn, drawn)
    return np.asarray(np.clip(result, low, high))


KERNELS = (
    KernelDef("ParameterizedTruncatedNormal", parameterized_truncated_normal),
    KernelDef("StatelessParameterizedTruncatedNormal", stateless_parameterized_truncated_normal),
)
