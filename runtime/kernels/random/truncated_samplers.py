"""Samples of a normal distribution between two bounds, by rejection, bit for bit as in TensorFlow.

The candidates come from a normal, a uniform or an exponential distribution, whichever accepts most
of them. They are drawn in groups, each from one or two blocks of the stream; what is left of a
group after the last sample is not used. All arithmetic is in the dtype of the samples.

TensorFlow divides large tensors among its threads, each with a part of the stream. The samples here
are those of one thread (`intra_op_parallelism_threads=1`).

Source: Robert, Simulation of truncated normal variables (1995).
TF: tensorflow/core/kernels/parameterized_truncated_normal_op.cc
"""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.philox import Philox
from runtime.kernels.random.random_distributions import normal_blocks, uniform_blocks

MAX_ITERATIONS = 1000  # candidates that may be rejected one after another
_NORMAL_DEVIATIONS = 1.3  # normal candidates, if one bound is so far away on its side of the mean
_MOST_BLOCKS = 1 << 16  # drawn at a time

_NORMAL, _UNIFORM, _EXPONENTIAL = range(3)  # distributions of candidates
_NAMES = ("randn", "uniform", "exponential distribution")  # in TensorFlow's messages
_BLOCKS = (1, 2, 1)  # of the stream, for a group of candidates
_MOST_REJECTED = (MAX_ITERATIONS + 1, MAX_ITERATIONS, MAX_ITERATIONS)
_LEAST_RUN, _LONGEST_RUN = 16, 1 << 12  # batches of one sample that are drawn together


class BlockReader:
    """The blocks of a stream, one after another; not thread-safe."""

    def __init__(self, stream: Philox) -> None:
        self._stream = stream
        self._position = 0  # of the next block
        self._start, self._held = 0, np.empty((0, 4), np.uint32)

    def peek(self, count: int) -> np.ndarray:
        """Return the next `count` blocks, uint32 `[count, 4]`."""
        end = self._position + count
        if end > self._start + len(self._held):
            self._start = self._position
            ahead = max(count, min(4 * count, _MOST_BLOCKS))
            offsets = np.arange(self._start, self._start + ahead, dtype=np.uint64)
            self._held = self._stream.blocks_at(offsets)
        return self._held[self._position - self._start : end - self._start]

    def skip(self, count: int) -> None:
        """Go on after the next `count` blocks."""
        self._position += count


@dataclasses.dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds in deviations from the mean, and how samples between them are drawn: all `[n]`.

    The bounds are mirrored if otherwise only the upper one were finite; then the deviation is
    negative.
    """

    low: np.ndarray
    high: np.ndarray
    deviation: np.ndarray
    proposal: np.ndarray  # _NORMAL, _UNIFORM or _EXPONENTIAL
    is_valid: np.ndarray


def _bounds(mean: np.ndarray, deviation: np.ndarray, low: np.ndarray, high: np.ndarray) -> _Bounds:
    one = mean.dtype.type
    far = one(_NORMAL_DEVIATIONS)
    is_valid = (deviation > 0) & (low < high) & (np.isfinite(low) | np.isfinite(high))
    mirrored = (np.isinf(low) & (low < 0)) | (high < mean)
    deviation = np.where(mirrored, -deviation, deviation)
    with np.errstate(all="ignore"):
        bottom = (np.where(mirrored, high, low) - mean) / deviation
        top = (np.where(mirrored, low, high) - mean) / deviation
        root = np.sqrt(bottom * bottom + one(4))
        cutoff = one(2) * _exp(one(0.5) + bottom * (bottom - root) / one(4)) / (bottom + root)
        is_normal = ((bottom < -far) & (top >= 0)) | ((top > far) & (bottom <= 0))
        other = np.where(top - bottom < cutoff, _UNIFORM, _EXPONENTIAL)
    return _Bounds(bottom, top, deviation, np.where(is_normal, _NORMAL, other), is_valid)


def truncated_samples(
    reader: BlockReader, count: int, mean: np.ndarray, deviation: np.ndarray, low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Return the next `count` samples of each batch: `[batches, count]`.

    The parameters are `[batches]`, of the samples' dtype.

    Raises InvalidArgumentError unless deviation > 0, low < high and at least one bound is finite.
    Raises InternalError if too many candidates are rejected.
    """
    bounds = _bounds(mean, deviation, low, high)
    drawn = np.empty((len(mean), count), mean.dtype)
    batch, run = 0, _LEAST_RUN
    while batch < len(mean):
        check_task()
        done = _first_groups(reader, bounds, batch, run, drawn) if count == 1 else 0
        run = min(max(2 * done, _LEAST_RUN), _LONGEST_RUN)
        batch += done
        if not done:
            if not bounds.is_valid[batch]:
                raise InvalidArgumentError("Invalid parameters")
            drawn[batch] = _accepted(reader, count, bounds, batch)
            batch += 1
    with np.errstate(all="ignore"):
        return drawn * bounds.deviation[:, np.newaxis] + mean[:, np.newaxis]


def _first_groups(
    reader: BlockReader, bounds: _Bounds, batch: int, run: int, drawn: np.ndarray
) -> int:
    """Draw one sample each for the batches from `batch` on that need one group of candidates.

    Up to `run` batches of the same proposal are tried. Return how many samples were drawn.
    """
    proposals = bounds.proposal[batch : batch + run]
    proposal = int(proposals[0])
    fits = (proposals == proposal) & bounds.is_valid[batch : batch + run]
    count = len(fits) if fits.all() else int(fits.argmin())
    if not count:
        return 0
    rows = slice(batch, batch + count)
    blocks = reader.peek(count * _BLOCKS[proposal])
    low, high = bounds.low[rows, np.newaxis], bounds.high[rows, np.newaxis]
    value, is_accepted = _candidates(proposal, blocks, low, high)
    enough = is_accepted.any(1)
    done = count if enough.all() else int(enough.argmin())
    firsts = is_accepted[:done].argmax(1)
    drawn[batch : batch + done, 0] = value[np.arange(done), firsts]
    reader.skip(done * _BLOCKS[proposal])
    return done


def _exp(value: np.ndarray) -> np.ndarray:
    """Return e**value, as if rounded once; of float16 by way of float32."""
    return _narrowed(np.exp(value.astype(np.float64)), value.dtype)


def _log(value: np.ndarray) -> np.ndarray:
    return _narrowed(np.log(value.astype(np.float64)), value.dtype)


def _narrowed(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype == np.float16:
        value = value.astype(np.float32)
    return np.asarray(value.astype(dtype))


def _candidates(
    proposal: int, blocks: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the candidates of each group, `[groups, size]`, and whether each is accepted.

    The bounds are `[groups, 1]` or `[1, 1]`.
    """
    one, dtype = low.dtype.type, low.dtype
    with np.errstate(all="ignore"):
        if proposal == _NORMAL:
            value = normal_blocks(blocks, dtype).astype(dtype)
            return value, (value >= low) & (value <= high)
        numbers = uniform_blocks(blocks, dtype)
        if proposal == _UNIFORM:
            top = np.where(low < 0, one(0), low * low)
            value = numbers[::2] * (high - low) + low
            return value, numbers[1::2] <= _exp((top - value * value) / one(2))
        alpha = (low + np.sqrt(low * low + one(4))) / one(2)
        value = -_log(numbers[:, ::2]) / alpha + low
        distance = np.where(low < alpha, alpha - value, low - alpha)
        chance = _exp(-distance * distance / one(2))
        return value, (numbers[:, 1::2] <= chance) & (value < high)


def _accepted(reader: BlockReader, count: int, bounds: _Bounds, batch: int) -> np.ndarray:
    """Return the next `count` candidates of a batch that are accepted."""
    proposal = int(bounds.proposal[batch])
    most_rejected, blocks = _MOST_REJECTED[proposal], _BLOCKS[proposal]
    low, high = (each[batch : batch + 1, np.newaxis] for each in (bounds.low, bounds.high))
    result = np.empty(count, low.dtype)
    missing, rejected = count, 0  # rejected: candidates since the last one that was accepted
    while missing:
        check_task()
        groups = min(missing + 2, _MOST_BLOCKS // 2)
        value, is_accepted = _candidates(proposal, reader.peek(groups * blocks), low, high)
        size = value.shape[1]
        places = np.flatnonzero(is_accepted)[:missing]
        gaps = np.diff(places, prepend=-1 - rejected) - 1
        after = value.size - 1 - places[-1] if len(places) else rejected + value.size
        is_last = len(places) == missing
        if gaps.max(initial=0) >= most_rejected or (not is_last and after >= most_rejected):
            # TensorFlow's text has two spaces where a line of its source ends.
            to = "to  accept" if proposal == _UNIFORM else "to accept"
            raise InternalError(
                f"TruncatedNormal {_NAMES[proposal]} rejection sampler failed {to} a sample."
            )
        first = count - missing
        result[first : first + len(places)] = value.ravel()[places]
        missing, rejected = missing - len(places), int(after)
        reader.skip((int(places[-1]) // size + 1 if is_last else groups) * blocks)
    return result
