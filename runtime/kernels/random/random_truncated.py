"""Truncated normal distributions, with a mean, standard deviation and bounds for each batch.

TF: tensorflow/core/kernels/parameterized_truncated_normal_op.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import shape_text
from runtime.kernels.random.random_stateful import reserve
from runtime.kernels.random.random_stateless import stream_of_seed
from runtime.kernels.random.truncated_samplers import (
    MAX_ITERATIONS,
    BlockReader,
    truncated_samples,
)

_BATCH = 100  # samples of a batch if all parameters are the same (TF: kDesiredBatchSize)


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


def _check_parameters(parameters: dict[str, np.ndarray], batches: int | None) -> None:
    """Raise InvalidArgumentError unless each has one element, or one for each of `batches`.

    `batches` is None if the number of elements need not be checked.
    """
    for name, value in parameters.items():
        if np.ndim(value) > 1:
            raise InvalidArgumentError(
                f"Input {name} should be a scalar or vector, got shape: "
                f"{shape_text(np.shape(value))}"
            )
    for name, value in parameters.items():
        if batches is not None and np.size(value) not in (1, batches):
            raise InvalidArgumentError(
                f"Input {name} should have length 1 or shape[0], got shape: "
                f"{shape_text(np.shape(value))}"
            )


def _reserved_blocks(batches: int, samples: int) -> int:
    """Return how many blocks a step takes: an int32 in TensorFlow, which may wrap around."""
    product = batches * 2 * MAX_ITERATIONS * (samples + 3)
    wrapped = (product + (1 << 31)) % (1 << 32) - (1 << 31)
    return int(wrapped / 4) % (1 << 64)


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
    named = {"means": means, "stddevs": stdevs, "minvals": minvals, "maxvals": maxvals}
    batches, samples = sizes[0], math.prod(sizes[1:])
    is_same = means.size == stdevs.size == 1 and not (minvals.ndim or maxvals.ndim)
    _check_parameters(named, None if is_same else batches)
    count = batches * samples
    if is_same:
        batches, samples = -(-count // _BATCH), _BATCH
    reader = BlockReader(reserve(context, _reserved_blocks(batches, samples)))
    parameters = [np.broadcast_to(np.ravel(each), (batches,)) for each in named.values()]
    whole = count // samples if samples else batches  # the last batch may be shorter
    drawn = truncated_samples(reader, samples, *(each[:whole] for each in parameters))
    rest = truncated_samples(reader, count - drawn.size, *(each[whole:] for each in parameters))
    return np.concatenate([drawn.ravel(), rest.ravel()]).reshape(sizes)


def _shared_shape(*parameters: np.ndarray) -> tuple[int, ...]:
    shapes = [np.shape(each) for each in parameters]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise InvalidArgumentError(
            "means, stddevs, minvals, maxvals must have compatible batch dimensions: "
            f"{' vs. '.join(map(shape_text, shapes))}"
        ) from None


def stateless_parameterized_truncated_normal(
    shape: np.ndarray,
    seed: np.ndarray,
    means: np.ndarray,
    stddevs: np.ndarray,
    minvals: np.ndarray,
    maxvals: np.ndarray,
) -> np.ndarray:
    """StatelessParameterizedTruncatedNormal: return samples of `shape`.

    The last dimensions of `shape` are those to which the parameters broadcast.
    """
    stream = stream_of_seed(seed)
    shared = _shared_shape(means, stddevs, minvals, maxvals)
    if np.ndim(shape) != 1:
        raise InvalidArgumentError(
            f"Input shape should be a vector, got shape: {shape_text(np.shape(shape))}"
        )
    sizes = tuple(shape.tolist())
    check_allocation(sizes, means.dtype)
    outer = len(sizes) - len(shared)
    if outer < 0 or sizes[outer:] != shared:
        raise InvalidArgumentError("Shape passed in must end with broadcasted shape.")
    samples, batches = math.prod(sizes[:outer]), math.prod(shared)
    if not samples * batches:
        return np.empty(sizes, means.dtype)
    parameters = (
        np.broadcast_to(each, shared).ravel() for each in (means, stddevs, minvals, maxvals)
    )
    drawn = truncated_samples(BlockReader(stream), samples, *parameters)
    return drawn.T.reshape(sizes)


KERNELS = (
    KernelDef("ParameterizedTruncatedNormal", parameterized_truncated_normal),
    KernelDef("StatelessParameterizedTruncatedNormal", stateless_parameterized_truncated_normal),
)
