"""Distributions computed from a Philox stream, bit for bit as in TensorFlow's CPU kernels.

A block is four uint32 words of the stream. Elements are drawn in groups, and group i is computed
from block i. The truncated normal distribution rejects samples, so that each of its groups has a
range of blocks.

TF: tensorflow/core/lib/random/random_distributions.h, random_op_cpu.h (FillPhiloxRandom)
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from runtime.foundation.running_task import check_task
from runtime.framework.philox import Philox

BLOCKS_PER_OUTPUT = 256  # blocks reserved for one output (TF: kReservedSamplesPerOutput)
_EPSILON = 1e-7  # lower limit of a uniform sample before its logarithm is taken
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# For each float dtype: the unsigned type of its size, the mask of its fraction, the bits of 1.0.
_FRACTIONS: dict[np.dtype, tuple[type, int, int]] = {
    np.dtype(np.float16): (np.uint16, 0x3FF, 0x3C00),
    _BFLOAT16: (np.uint16, 0x7F, 0x3F80),
    np.dtype(np.float32): (np.uint32, 0x7FFFFF, 0x3F800000),
}


def _to_floats(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a float of `dtype` in [0, 1) for each uint32 word."""
    bits, fraction, one = _FRACTIONS[dtype]
    raw = (words & np.uint32(fraction)).astype(bits) | bits(one)
    return raw.view(dtype) - dtype.type(1)


def _to_doubles(words: np.ndarray) -> np.ndarray:
    """Return a double in [0, 1) for each pair of uint32 words; `words` is `[…, 2]`."""
    high = (words[..., 0] & np.uint32(0xFFFFF)).astype(np.uint64) << np.uint64(32)
    raw = high | words[..., 1].astype(np.uint64) | np.uint64(1023 << 52)
    return raw.view(np.float64) - 1.0


def uniform(stream: Philox, count: int, dtype: np.dtype) -> np.ndarray:
    """Return `count` uniform samples of `dtype` in [0, 1)."""
    if dtype == np.float64:
        return _to_doubles(stream.words(2 * count).reshape(count, 2))
    return _to_floats(stream.words(count), dtype)


def _box_muller(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return pairs of normal samples `[…, 2]`, computed from pairs of uniform samples.

    `first` and `second` `[…]` are the two uniform samples of each pair. The dtype is kept.
    """
    dtype = first.dtype
    radius = np.sqrt(dtype.type(-2) * np.log(np.maximum(first, dtype.type(_EPSILON))))
    angle = (2 * np.pi * second.astype(np.float64)).astype(dtype)
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=-1)


def normal_blocks(blocks: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the normal samples computed from `blocks` `[n, 4]`.

    They are float64 `[n, 2]` if `dtype` is float64, else float32 `[n, 4]`.
    """
    if dtype == np.float64:
        halves = double_pairs(blocks)
        return _box_muller(halves[:, 0], halves[:, 1])
    floats = _to_floats(blocks, np.dtype(np.float32)).reshape(-1, 2, 2)
    return _box_muller(floats[..., 0], floats[..., 1]).reshape(-1, 4)


def uniform_blocks(blocks: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the uniform samples in [0, 1) computed from `blocks` `[n, 4]`.

    They are `[n, 2]` if `dtype` is float64, else `[n, 4]`.
    """
    return double_pairs(blocks) if dtype == np.float64 else _to_floats(blocks, dtype)


def double_pairs(blocks: np.ndarray) -> np.ndarray:
    """Return two doubles in [0, 1) for each block, `[n, 2]`; `blocks` is `[n, 4]`."""
    return _to_doubles(blocks.reshape(-1, 2, 2))


def normal(stream: Philox, count: int, dtype: np.dtype) -> np.ndarray:
    """Return `count` samples of the standard normal distribution."""
    size = 2 if dtype == np.float64 else 4
    blocks = stream.blocks(-(-count // size))
    return normal_blocks(blocks, dtype).ravel()[:count].astype(dtype)


def truncated_normal(stream: Philox, count: int, dtype: np.dtype) -> np.ndarray:
    """Return `count` samples of the standard normal distribution truncated to (−2, 2)."""
    size = 2 if dtype == np.float64 else 4
    groups = -(-count // size)
    result = np.empty((groups, size), np.float64 if size == 2 else np.float32)
    starts = np.arange(groups, dtype=np.uint64) * np.uint64(size * BLOCKS_PER_OUTPUT // 4)
    missing, blocks_each = np.arange(groups), 2
    while len(missing):
        check_task()
        offsets = starts[missing, None] + np.arange(blocks_each, dtype=np.uint64)
        samples = normal_blocks(stream.blocks_at(offsets.ravel()), dtype)
        samples = samples.reshape(len(missing), -1)
        accepted = np.abs(samples) < 2
        enough = accepted.sum(1) >= size
        chosen = samples[enough]
        order = np.argsort(~accepted[enough], axis=1, kind="stable")[:, :size]
        result[missing[enough]] = np.take_along_axis(chosen, order, 1)
        missing, blocks_each = missing[~enough], blocks_each * 2
    return result.ravel()[:count].astype(dtype)


def full_int(stream: Philox, count: int, dtype: np.dtype) -> np.ndarray:
    """Return `count` integers of `dtype`; every value of `dtype` is equally probable."""
    if dtype.itemsize == 4:
        return stream.words(count).view(dtype)
    pairs = stream.words(2 * count).reshape(count, 2).astype(np.uint64)
    return (pairs[:, 0] | pairs[:, 1] << np.uint64(32)).view(dtype)


def uniform_int(
    stream: Philox, count: int, dtype: np.dtype, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return `count` integers of `dtype` in [low, high). `low` must be less than `high`."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    words = full_int(stream, count, unsigned)
    span = unsigned.type((int(high) - int(low)) % (1 << 8 * dtype.itemsize))
    start = unsigned.type(int(low) % (1 << 8 * dtype.itemsize))
    return (words % span + start).view(dtype)


def shuffled_order(stream: Philox, size: int) -> np.ndarray:
    """Return a random permutation of range(size).

    Each element in turn is swapped with a random one that is not before it.
    """
    order = list(range(size))
    words = stream.words(max(size - 1, 0)).tolist()
    for place, word in enumerate(words):
        other = place + word % (size - place)
        order[place], order[other] = order[other], order[place]
    return np.array(order, np.intp)


def categorical(stream: Philox, logits: np.ndarray, samples: int) -> np.ndarray:
    """Draw classes, int64 `[batch, samples]`; `logits` is `[batch, classes]`.

    `logits` are log-probabilities, not normalised. If a row has no finite one, its samples are the
    number of classes, as in TensorFlow.
    """
    batch = len(logits)
    wide = logits.astype(np.float64)
    finite = np.isfinite(wide)
    largest = np.max(wide, axis=1, where=finite, initial=-np.inf, keepdims=True)
    weights = np.where(finite, np.exp(wide - largest), 0.0)
    cumulative = np.cumsum(weights, axis=1)
    uniforms = uniform(stream, batch * samples, np.dtype(np.float64)).reshape(batch, samples)
    targets = uniforms * cumulative[:, -1:]
    result = np.empty((batch, samples), np.int64)
    for row in range(batch):
        check_task()
        result[row] = np.searchsorted(cumulative[row], targets[row], side="right")
    return result


Distribution = Callable[[Philox, int, np.dtype], np.ndarray]
