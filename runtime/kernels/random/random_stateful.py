"""Random ops whose sequence continues from one step to the next.

If seeds are given, the sequence is the same as TensorFlow's. The state of an op belongs to its node
(`kernel_state`). The state of the Stateful… and Rng… ops is a variable of int64: the two halves of
the counter and the key.

TF: tensorflow/core/kernels/random_op.cc, multinomial_op.cc, random_shuffle_op.cc,
stateful_random_ops.cc
"""

from __future__ import annotations

import math
import secrets

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef, OpKernelContext
from runtime.framework.philox import GuardedPhilox, Philox
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox
from runtime.kernels.random import random_distributions as distributions
from runtime.kernels.random import random_rejection as rejection
from runtime.kernels.random.random_distributions import BLOCKS_PER_OUTPUT, Distribution
from runtime.kernels.state.resource_variables import look_up_variable

_MASK = (1 << 64) - 1
_PHILOX, _THREEFRY, _AUTO_SELECT = 1, 2, 3  # TF: rng_alg.h


def output_shape(shape: np.ndarray, dtype: np.dtype) -> tuple[int, ...]:
    """Return the tensor `shape` as a tuple, after `check_allocation` for elements of `dtype`."""
    sizes = requested_shape(shape)
    check_allocation(sizes, dtype)
    return sizes


def requested_shape(shape: np.ndarray) -> tuple[int, ...]:
    """Return the tensor `shape` as a tuple; raise InvalidArgumentError if it is invalid."""
    if np.ndim(shape) != 1:
        raise InvalidArgumentError(
            f"shape must be a vector of {{int32,int64}}, got shape {shape_text(np.shape(shape))}"
        )
    if np.asarray(shape).dtype not in (np.int32, np.int64):
        raise InvalidArgumentError("shape must be a vector of {int32,int64}.")
    sizes = tuple(np.ravel(shape).tolist())
    for size in sizes:
        if size < 0:
            raise InvalidArgumentError(f"Dimension {size} must be >= 0")
    return sizes


def reserve(context: OpKernelContext, blocks: int) -> Philox:
    """Reserve the next `blocks` blocks of the node's stream, and return a stream at the first."""
    source: GuardedPhilox = context.kernel_state(
        lambda: GuardedPhilox(context.attr("seed"), context.attr("seed2"))
    )
    return source.reserve(blocks)


def _seeded(fill: Distribution) -> Kernel:
    def kernel(context: OpKernelContext, shape: np.ndarray, *, dtype: DataType) -> np.ndarray:
        sizes = output_shape(shape, dtype.numpy)
        count = math.prod(sizes)
        stream = reserve(context, count * BLOCKS_PER_OUTPUT)
        return fill(stream, count, dtype.numpy).reshape(sizes)

    return kernel


def check_range(minval: np.ndarray, maxval: np.ndarray) -> None:
    """Raise InvalidArgumentError unless `minval` and `maxval` are scalars and minval < maxval."""
    for name, value in (("minval", minval), ("maxval", maxval)):
        if np.ndim(value):
            raise InvalidArgumentError(
                f"{name} must be 0-D, got shape {shape_text(np.shape(value))}"
            )
    if minval >= maxval:
        raise InvalidArgumentError(f"Need minval < maxval, got {minval} >= {maxval}")


def random_uniform_int(
    context: OpKernelContext, shape: np.ndarray, minval: np.ndarray, maxval: np.ndarray
) -> np.ndarray:
    """RandomUniformInt: return random integers in [minval, maxval)."""
    dtype = np.asarray(minval).dtype
    sizes = output_shape(shape, dtype)
    count = math.prod(sizes)
    if not count:
        return np.empty(sizes, dtype)
    check_range(minval, maxval)
    stream = reserve(context, count * BLOCKS_PER_OUTPUT)
    return distributions.uniform_int(stream, count, dtype, minval, maxval).reshape(sizes)


def random_shuffle(context: OpKernelContext, value: TensorValue) -> TensorValue:
    """RandomShuffle: return the rows of `value` in random order."""
    array = box(value)
    if array.ndim == 0 or len(array) <= 1:
        return value
    stream = reserve(context, (len(array) - 1 + 3) // 4)
    return unbox(array[distributions.shuffled_order(stream, len(array))])


def check_logits(logits: np.ndarray, num_samples: np.ndarray) -> int:
    """Return `num_samples` as an int; raise InvalidArgumentError if an input is invalid."""
    if np.ndim(logits) != 2:
        raise InvalidArgumentError(
            f"logits should be a matrix, got shape {shape_text(np.shape(logits))}"
        )
    if np.ndim(num_samples):
        raise InvalidArgumentError(
            f"num_samples should be a scalar, got shape {shape_text(np.shape(num_samples))}"
        )
    count = int(num_samples)
    if count < 0:
        raise InvalidArgumentError(f"num_samples should be non-negative, got {count}")
    if not logits.shape[1]:
        raise InvalidArgumentError(f"num_classes should be positive, got {logits.shape[1]}")
    check_allocation((logits.shape[0], count), np.int64)
    return count


def multinomial(
    context: OpKernelContext, logits: np.ndarray, num_samples: np.ndarray, *, output_dtype: DataType
) -> np.ndarray:
    """Multinomial: draw classes [batch, num_samples]; `logits` are their log-probabilities."""
    count = check_logits(logits, num_samples)
    padded = (count + 3) // 4 * 4 * 2
    stream = reserve(context, len(logits) * padded * BLOCKS_PER_OUTPUT)
    return distributions.categorical(stream, logits, count).astype(output_dtype.numpy)


def random_gamma(context: OpKernelContext, shape: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """RandomGamma: return gamma samples of shape [*shape, *alpha.shape]."""
    rates = np.asarray(alpha)
    sizes = requested_shape(shape) + rates.shape
    check_allocation(sizes, np.float64)
    stream = reserve(context, math.prod(sizes) * BLOCKS_PER_OUTPUT)
    return rejection.gamma(stream, sizes, rates).astype(rates.dtype)


def random_poisson(
    context: OpKernelContext, shape: np.ndarray, rate: np.ndarray, *, dtype: DataType
) -> np.ndarray:
    """RandomPoissonV2: return Poisson samples of shape [*shape, *rate.shape]."""
    rates = np.asarray(rate)
    sizes = requested_shape(shape) + rates.shape
    check_allocation(sizes, np.float64)
    stream = reserve(context, math.prod(sizes) * BLOCKS_PER_OUTPUT)
    return rejection.poisson(stream, sizes, rates).astype(dtype.numpy)


def _check_algorithm(algorithm: np.ndarray | int) -> None:
    """Raise UnimplementedError if `algorithm` is ThreeFry.

    Raises InvalidArgumentError if it is neither ThreeFry nor Philox nor automatic selection.
    """
    if np.ndim(algorithm):
        raise InvalidArgumentError(
            f"input 1 (0-based) must have shape [], not {shape_text(np.shape(algorithm))}"
        )
    if int(algorithm) == _THREEFRY:
        raise UnimplementedError("Non-XLA devices don't support the ThreeFry algorithm.")
    if int(algorithm) not in (_PHILOX, _AUTO_SELECT):
        raise InvalidArgumentError(f"Unsupported algorithm id: {int(algorithm)}")


def _take_state(
    context: OpKernelContext,
    handle: ResourceHandle,
    blocks: int,
    algorithm: np.ndarray | int = _PHILOX,
) -> Philox:
    """Return a stream at the state in the variable `handle`, and advance the state by `blocks`."""
    taken: list[Philox] = []

    def change(array: np.ndarray) -> None:
        if array.dtype != np.int64:
            raise InvalidArgumentError("dtype of RNG state variable must be int64")
        if array.ndim != 1:
            raise InvalidArgumentError(
                f"RNG state must have one and only one dimension, not {array.ndim}"
            )
        _check_algorithm(algorithm)
        if len(array) < 3:
            raise InvalidArgumentError(
                f"For the Philox algorithm, the size of state must be at least 3; got {array.size}"
            )
        low, high, key = (int(each) & _MASK for each in array[:3])
        start = Philox(key, high << 64 | low)
        after = start.skipped(blocks).counter
        array[:2] = np.array([after & _MASK, after >> 64], np.uint64).view(np.int64)
        taken.append(start)

    look_up_variable(context, handle).update(change)
    return taken[0]


def _stateful(fill: Distribution) -> Kernel:
    def kernel(
        context: OpKernelContext,
        handle: ResourceHandle,
        algorithm: np.ndarray,
        shape: np.ndarray,
        *,
        dtype: DataType,
    ) -> np.ndarray:
        sizes = output_shape(shape, dtype.numpy)
        count = math.prod(sizes)
        stream = _take_state(context, handle, count * BLOCKS_PER_OUTPUT, algorithm)
        return fill(stream, count, dtype.numpy).reshape(sizes)

    return kernel


def stateful_uniform_int(
    context: OpKernelContext,
    handle: ResourceHandle,
    algorithm: np.ndarray,
    shape: np.ndarray,
    minval: np.ndarray,
    maxval: np.ndarray,
) -> np.ndarray:
    """StatefulUniformInt: return random integers in [minval, maxval)."""
    dtype = np.asarray(minval).dtype
    sizes = output_shape(shape, dtype)
    count = math.prod(sizes)
    check_range(minval, maxval)
    stream = _take_state(context, handle, count * BLOCKS_PER_OUTPUT, algorithm)
    return distributions.uniform_int(stream, count, dtype, minval, maxval).reshape(sizes)


def stateful_random_binomial(
    context: OpKernelContext,
    handle: ResourceHandle,
    algorithm: np.ndarray,
    shape: np.ndarray,
    counts: np.ndarray,
    probs: np.ndarray,
    *,
    dtype: DataType,
) -> np.ndarray:
    """StatefulRandomBinomial: return binomial samples of `shape`.

    The last dimensions of `shape` must be the shape to which `counts` and `probs` are broadcast.
    """
    sizes, trials, chances = binomial_shapes(shape, counts, probs, dtype.numpy)
    if np.ndim(algorithm):
        raise InvalidArgumentError(
            f"algorithm must be of shape [], not {shape_text(np.shape(algorithm))}"
        )
    if int(algorithm) != _PHILOX:
        raise InvalidArgumentError(f"Unsupported algorithm id: {int(algorithm)}")
    # TensorFlow reserves 100 tries of two numbers for each sample, for a multiple of four samples.
    tries = trials.size * 200 * (math.prod(sizes) // max(trials.size, 1) + 3) // 4
    stream = _take_state(context, handle, tries * BLOCKS_PER_OUTPUT)
    return rejection.binomial(stream, sizes, trials, chances).astype(dtype.numpy)


def binomial_shapes(
    shape: np.ndarray, counts: np.ndarray, probs: np.ndarray, dtype: np.dtype
) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """Return `shape` as a tuple, and `counts` and `probs` broadcast to the same shape.

    Raises InvalidArgumentError unless that shape is the last dimensions of `shape`.
    """
    sizes = output_shape(shape, dtype)
    check_allocation(sizes, np.float64)
    try:
        trials, chances = np.broadcast_arrays(np.asarray(counts), np.asarray(probs))
    except ValueError:
        raise InvalidArgumentError(
            "counts and probs must have compatible batch dimensions: "
            f"{shape_text(np.shape(counts))} vs. {shape_text(np.shape(probs))}"
        ) from None
    check_ends_with(sizes, trials.shape)
    return sizes, trials, chances


def check_ends_with(sizes: tuple[int, ...], last: tuple[int, ...]) -> None:
    """Raise InvalidArgumentError unless the shape `sizes` ends with the dimensions `last`."""
    if len(sizes) < len(last) or sizes[len(sizes) - len(last) :] != last:
        raise InvalidArgumentError("Shape passed in must end with broadcasted shape.")


def rng_read_and_skip(
    context: OpKernelContext, handle: ResourceHandle, alg: np.ndarray, delta: np.ndarray
) -> np.ndarray:
    """RngReadAndSkip: return the state [3], and advance it as if `delta` outputs had been drawn."""
    start = _take_state(context, handle, (int(delta) * BLOCKS_PER_OUTPUT) & _MASK, alg)
    words = [start.counter & _MASK, start.counter >> 64, start.key]
    return np.array(words, np.uint64).view(np.int64)


def rng_skip(
    context: OpKernelContext, handle: ResourceHandle, algorithm: np.ndarray, delta: np.ndarray
) -> None:
    """RngSkip: advance the state as if `delta` outputs had been drawn."""
    _take_state(context, handle, (int(delta) * BLOCKS_PER_OUTPUT) & _MASK, algorithm)


def non_deterministic_ints(shape: np.ndarray, *, dtype: DataType) -> np.ndarray:
    """NonDeterministicInts: return integers from the system's random source.

    Every value of `dtype` is equally probable.
    """
    sizes = output_shape(shape, dtype.numpy)
    drawn = secrets.token_bytes(math.prod(sizes) * dtype.numpy.itemsize)
    return np.frombuffer(drawn, dtype.numpy).reshape(sizes)


KERNELS = (
    KernelDef("Multinomial", multinomial),
    KernelDef("NonDeterministicInts", non_deterministic_ints),
    KernelDef("RandomGamma", random_gamma),
    KernelDef("RandomPoisson", random_poisson),
    KernelDef("RandomPoissonV2", random_poisson),
    KernelDef("RandomShuffle", random_shuffle),
    KernelDef("RandomStandardNormal", _seeded(distributions.normal)),
    KernelDef("RandomUniform", _seeded(distributions.uniform)),
    KernelDef("RandomUniformInt", random_uniform_int),
    KernelDef("RngReadAndSkip", rng_read_and_skip),
    KernelDef("RngSkip", rng_skip),
    KernelDef("StatefulRandomBinomial", stateful_random_binomial),
    KernelDef("StatefulStandardNormalV2", _stateful(distributions.normal)),
    KernelDef("StatefulTruncatedNormal", _stateful(distributions.truncated_normal)),
    KernelDef("StatefulUniform", _stateful(distributions.uniform)),
    KernelDef("StatefulUniformFullInt", _stateful(distributions.full_int)),
    KernelDef("StatefulUniformInt", stateful_uniform_int),
    KernelDef("TruncatedNormal", _seeded(distributions.truncated_normal)),
)
