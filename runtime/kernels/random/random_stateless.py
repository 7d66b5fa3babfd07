"""Stateless random ops: the tensor depends only on the inputs, such as a seed or key and counter.

TF: tensorflow/core/kernels/stateless_random_ops.cc, stateless_random_ops_v2.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.philox import Philox, philox_of_counters
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox
from runtime.kernels.random import random_distributions as distributions
from runtime.kernels.random import random_rejection as rejection
from runtime.kernels.random.random_distributions import Distribution
from runtime.kernels.random.random_stateful import (
    binomial_shapes,
    check_ends_with,
    check_logits,
    check_range,
    output_shape,
)

_MASK = (1 << 64) - 1
_SCRAMBLE_KEY = 0x02461E293EC8F720  # TF: stateless_random_ops.cc (GenerateKey)
_PHILOX, _AUTO_SELECT = 1, 3  # TF: rng_alg.h


def stream_of_seed(seed: np.ndarray) -> Philox:
    """Return the stream that begins at `seed` [2].

    The seed is scrambled, so that similar seeds give unrelated streams.
    """
    if np.shape(seed) != (2,):
        raise InvalidArgumentError(f"seed must have shape [2], not {shape_text(np.shape(seed))}")
    low, high = (np.array([int(each) & _MASK], np.uint64) for each in seed)
    words = philox_of_counters(_SCRAMBLE_KEY, low, high)[0].tolist()
    return Philox(words[0] | words[1] << 32, (words[2] | words[3] << 32) << 64)


def _stream_of_key(key: np.ndarray, counter: np.ndarray, alg: np.ndarray) -> Philox:
    """Return the stream with `key` [1], at the position `counter` [2]."""
    if np.ndim(alg):
        raise InvalidArgumentError(
            f"algorithm must be of shape [], not {shape_text(np.shape(alg))}"
        )
    if int(alg) not in (_PHILOX, _AUTO_SELECT):
        raise InvalidArgumentError(f"Unsupported algorithm id: {int(alg)}")
    if np.shape(key) != (1,):
        raise InvalidArgumentError(
            f"key must have shape [1], not {shape_text(np.shape(key))}. "
            "(Note that batched keys are not supported yet.)"
        )
    if np.ndim(counter) != 1 or len(counter) < 2:
        raise InvalidArgumentError(
            "counter must be a vector with length at least 2 for the Philox algorithm, got "
            f"shape {shape_text(np.shape(counter))}"
        )
    low, high = (int(each) for each in counter[:2])
    return Philox(int(key[0]), high << 64 | low)


def _by_seed(fill: Distribution) -> Kernel:
    def kernel(shape: np.ndarray, seed: np.ndarray, *, dtype: DataType) -> np.ndarray:
        sizes = output_shape(shape, dtype.numpy)
        stream = stream_of_seed(seed)
        if 0 not in sizes and seed.dtype.kind == "u":  # the op's signature allows unsigned seeds
            raise InvalidArgumentError(f"Invalid seed type: {seed.dtype.name}")
        return fill(stream, math.prod(sizes), dtype.numpy).reshape(sizes)

    return kernel


def _by_key(fill: Distribution) -> Kernel:
    def kernel(
        shape: np.ndarray, key: np.ndarray, counter: np.ndarray, alg: np.ndarray, *, dtype: DataType
    ) -> np.ndarray:
        sizes = output_shape(shape, dtype.numpy)
        stream = _stream_of_key(key, counter, alg)
        return fill(stream, math.prod(sizes), dtype.numpy).reshape(sizes)

    return kernel


def _integers(
    stream: Philox, shape: np.ndarray, minval: np.ndarray, maxval: np.ndarray
) -> np.ndarray:
    dtype = np.asarray(minval).dtype
    sizes = output_shape(shape, dtype)
    check_range(minval, maxval)
    count = math.prod(sizes)
    return distributions.uniform_int(stream, count, dtype, minval, maxval).reshape(sizes)


def stateless_random_uniform_int(
    shape: np.ndarray, seed: np.ndarray, minval: np.ndarray, maxval: np.ndarray
) -> np.ndarray:
    """StatelessRandomUniformInt: return random integers in [minval, maxval)."""
    return _integers(stream_of_seed(seed), shape, minval, maxval)


def stateless_random_uniform_int_v2(
    shape: np.ndarray,
    key: np.ndarray,
    counter: np.ndarray,
    alg: np.ndarray,
    minval: np.ndarray,
    maxval: np.ndarray,
) -> np.ndarray:
    """StatelessRandomUniformIntV2: return random integers in [minval, maxval)."""
    return _integers(_stream_of_key(key, counter, alg), shape, minval, maxval)


def stateless_multinomial(
    logits: np.ndarray, num_samples: np.ndarray, seed: np.ndarray, *, output_dtype: DataType
) -> np.ndarray:
    """StatelessMultinomial: draw classes [batch, num_samples]; `logits` are log-probabilities."""
    count = check_logits(logits, num_samples)
    drawn = distributions.categorical(stream_of_seed(seed), logits, count)
    return drawn.astype(output_dtype.numpy)


def stateless_shuffle(
    value: TensorValue, key: np.ndarray, counter: np.ndarray, alg: np.ndarray
) -> TensorValue:
    """StatelessShuffle: return the rows of `value` in random order."""
    stream, array = _stream_of_key(key, counter, alg), box(value)
    if array.ndim == 0 or len(array) <= 1:
        return value
    return unbox(array[distributions.shuffled_order(stream, len(array))])


def _check_samples(sizes: tuple[int, ...], last: tuple[int, ...]) -> None:
    """Raise InvalidArgumentError unless `sizes` ends with the dimensions `last`.

    As in TensorFlow, there is no check if there are no samples.
    """
    if 0 not in sizes:
        check_ends_with(sizes, last)


def _gamma(stream: Philox, shape: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    shapes = np.asarray(alpha)
    sizes = output_shape(shape, np.dtype(np.float64))
    _check_samples(sizes, shapes.shape)
    return rejection.gamma(stream, sizes, shapes).astype(shapes.dtype)


def stateless_random_gamma_v2(shape: np.ndarray, seed: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """StatelessRandomGammaV2: return gamma samples of `shape`, which ends with alpha's shape."""
    return _gamma(stream_of_seed(seed), shape, alpha)


def stateless_random_gamma_v3(
    shape: np.ndarray, key: np.ndarray, counter: np.ndarray, alg: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """StatelessRandomGammaV3: return gamma samples of `shape`, which ends with alpha's shape."""
    return _gamma(_stream_of_key(key, counter, alg), shape, alpha)


def stateless_random_poisson(
    shape: np.ndarray, seed: np.ndarray, lam: np.ndarray, *, dtype: DataType
) -> np.ndarray:
    """StatelessRandomPoisson: return Poisson samples of `shape`, which ends with lam's shape.

    `lam` are the rates.
    """
    rates = np.asarray(lam)
    sizes = output_shape(shape, np.dtype(np.float64))
    _check_samples(sizes, rates.shape)
    return rejection.poisson(stream_of_seed(seed), sizes, rates).astype(dtype.numpy)


def stateless_random_binomial(
    shape: np.ndarray, seed: np.ndarray, counts: np.ndarray, probs: np.ndarray, *, dtype: DataType
) -> np.ndarray:
    """StatelessRandomBinomial: return binomial samples of `shape`.

    The last dimensions of `shape` must be the shape to which `counts` and `probs` are broadcast.
    """
    sizes, trials, chances = binomial_shapes(shape, counts, probs, dtype.numpy)
    drawn = rejection.binomial(stream_of_seed(seed), sizes, trials, chances)
    return drawn.astype(dtype.numpy)


def get_key_counter(seed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """StatelessRandomGetKeyCounter: return the key [1] and the counter [2] for `seed`."""
    stream = stream_of_seed(seed)
    counter = np.array([stream.counter & _MASK, stream.counter >> 64], np.uint64)
    return np.array([stream.key], np.uint64), counter


def get_alg() -> np.int32:
    """StatelessRandomGetAlg: return the id of the Philox algorithm."""
    return np.int32(_PHILOX)


def get_key_counter_alg(seed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.int32]:
    """StatelessRandomGetKeyCounterAlg: return key [1], counter [2] and algorithm id for `seed`."""
    return (*get_key_counter(seed), get_alg())


_DISTRIBUTIONS: dict[str, Distribution] = {
    "StatelessRandomNormal": distributions.normal,
    "StatelessRandomUniform": distributions.uniform,
    "StatelessRandomUniformFullInt": distributions.full_int,
    "StatelessTruncatedNormal": distributions.truncated_normal,
}
KERNELS = (
    *(KernelDef(op, _by_seed(fill)) for op, fill in _DISTRIBUTIONS.items()),
    *(KernelDef(f"{op}V2", _by_key(fill)) for op, fill in _DISTRIBUTIONS.items()),
    KernelDef("StatelessMultinomial", stateless_multinomial),
    KernelDef("StatelessRandomBinomial", stateless_random_binomial),
    KernelDef("StatelessRandomGammaV2", stateless_random_gamma_v2),
    KernelDef("StatelessRandomGammaV3", stateless_random_gamma_v3),
    KernelDef("StatelessRandomGetAlg", get_alg),
    KernelDef("StatelessRandomGetKeyCounter", get_key_counter),
    KernelDef("StatelessRandomGetKeyCounterAlg", get_key_counter_alg),
    KernelDef("StatelessRandomPoisson", stateless_random_poisson),
    KernelDef("StatelessRandomUniformInt", stateless_random_uniform_int),
    KernelDef("StatelessRandomUniformIntV2", stateless_random_uniform_int_v2),
    KernelDef("StatelessShuffle", stateless_shuffle),
)
