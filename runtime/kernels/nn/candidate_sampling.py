"""Samplers of candidate classes, for losses over many classes such as sampled softmax.

Random numbers are drawn by numpy's generator. Samples have the distributions of TensorFlow's, but
not the same sequence.

TF: tensorflow/core/kernels/candidate_sampler_ops.cc, range_sampler.cc
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import shape_text

# (sampled classes, expected counts of the true classes, expected counts of the sampled classes)
Sampled = tuple[np.ndarray, np.ndarray, np.ndarray]
Draw = Callable[[np.random.Generator, int], np.ndarray]  # draws the given number of classes
Probability = Callable[[np.ndarray], np.ndarray]  # returns the probability of each given class

_MAX_TRIES_FACTOR = 10_000  # number of draws per distinct class after which a sampler raises


class _Generator:
    """The random state of one node, kept between steps."""

    def __init__(self, seed: int, seed2: int) -> None:
        chosen = None if seed == seed2 == 0 else [seed % 2**64, seed2 % 2**64]
        self.generator = np.random.default_rng(chosen)
        # Guards the generator, which is not thread-safe, and the weights.
        self.lock = threading.Lock()
        self.weights: np.ndarray | None = None  # used by the learned unigram sampler only


def _state(context: OpKernelContext) -> _Generator:
    seeds = context.attr("seed"), context.attr("seed2")
    state: _Generator = context.kernel_state(lambda: _Generator(*seeds))
    return state


def _true_classes(given: np.ndarray, num_true: int) -> np.ndarray:
    classes = np.asarray(given)
    if classes.ndim != 2:
        raise InvalidArgumentError("true_classes must be a matrix")
    if classes.shape[1] != num_true:
        raise InvalidArgumentError(
            f"true_classes must have num_true columns, expected: {classes.shape[1]} was: {num_true}"
        )
    return classes


def _check_true(classes: np.ndarray, limit: int) -> None:
    outside = classes[(classes < 0) | (classes >= limit)]
    if outside.size:
        raise InvalidArgumentError(
            f"`true_candidate` out of range [0, {limit}), received {outside[0]}"
        )


def _sample(
    state: _Generator,
    true_classes: np.ndarray,
    num_sampled: int,
    unique: bool,
    range_max: int,
    draw: Draw,
    probability: Probability,
) -> Sampled:
    check_allocation((num_sampled,), np.int64)
    if unique and num_sampled > range_max:
        raise InvalidArgumentError("Sampler's range is too small.")
    _check_true(true_classes, range_max)
    with state.lock:
        if unique:
            sampled, tries = _distinct(state.generator, num_sampled, draw)
        else:
            sampled, tries = draw(state.generator, num_sampled).astype(np.int64), num_sampled

    def expected(classes: np.ndarray) -> np.ndarray:
        inside = (classes >= 0) & (classes < range_max)
        chance = np.where(inside, probability(np.where(inside, classes, 0)), 0.0)
        if not unique or tries == num_sampled:
            return (chance * num_sampled).astype(np.float32)
        return (-np.expm1(tries * np.log1p(-chance))).astype(np.float32)

    return sampled, expected(true_classes), expected(sampled)


def _distinct(generator: np.random.Generator, count: int, draw: Draw) -> tuple[np.ndarray, int]:
    """Draw until there are `count` distinct classes; return them, and the number of draws.

    The classes are in the order in which they were drawn.
    """
    seen: dict[int, None] = {}
    tries = 0
    while len(seen) < count:
        check_task()
        for value in draw(generator, 2 * (count - len(seen))).tolist():
            tries += 1
            seen[value] = None
            if len(seen) == count:
                break
        if tries > _MAX_TRIES_FACTOR * count:
            raise InvalidArgumentError("Sampler could not find enough different classes")
    return np.fromiter(seen, np.int64, count), tries


def uniform_candidate_sampler(
    context: OpKernelContext,
    true_classes: np.ndarray,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
) -> Sampled:
    """UniformCandidateSampler: sample classes uniformly from [0, range_max)."""

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        return generator.integers(0, range_max, count)

    def probability(classes: np.ndarray) -> np.ndarray:
        return np.full(classes.shape, 1.0 / range_max)

    classes = _true_classes(true_classes, num_true)
    return _sample(_state(context), classes, num_sampled, unique, range_max, draw, probability)


def log_uniform_candidate_sampler(
    context: OpKernelContext,
    true_classes: np.ndarray,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
) -> Sampled:
    """LogUniformCandidateSampler: sample classes by Zipf's law.

    The probability of class c is log((c + 2) / (c + 1)) / log(range_max + 1).
    """
    log_range = np.log1p(range_max)

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        drawn = np.exp(generator.random(count) * log_range).astype(np.int64) - 1
        return drawn % range_max  # rounding may give range_max itself

    def probability(classes: np.ndarray) -> np.ndarray:
        chance: np.ndarray = np.log((classes + 2.0) / (classes + 1.0)) / log_range
        return chance

    classes = _true_classes(true_classes, num_true)
    return _sample(_state(context), classes, num_sampled, unique, range_max, draw, probability)


def learned_unigram_candidate_sampler(
    context: OpKernelContext,
    true_classes: np.ndarray,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
) -> Sampled:
    """LearnedUnigramCandidateSampler: sample classes by how often they were true classes.

    The weight of a class is 1 plus its count in the `true_classes` of the node's earlier calls.
    """
    check_allocation((range_max,), np.float64)
    classes = _true_classes(true_classes, num_true)
    state = _state(context)
    with state.lock:
        weights = np.ones(range_max) if state.weights is None else state.weights
        inside = classes[(classes >= 0) & (classes < range_max)]
        state.weights = weights + np.bincount(inside.ravel(), minlength=range_max)
    chances = weights / weights.sum()
    limits = np.cumsum(chances)

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        found = np.searchsorted(limits, generator.random(count), side="right")
        return np.minimum(found, range_max - 1)

    return _sample(
        state, classes, num_sampled, unique, range_max, draw, lambda wanted: chances[wanted]
    )


def fixed_unigram_candidate_sampler(
    context: OpKernelContext,
    true_classes: np.ndarray,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str,
    distortion: float,
    num_reserved_ids: int,
    num_shards: int,
    shard: int,
    unigrams: tuple[float, ...],
) -> Sampled:
    """FixedUnigramCandidateSampler: sample classes by given frequencies.

    The weight of a class is its frequency ** `distortion`; the frequencies are `unigrams` or are
    read from `vocab_file`. Classes below `num_reserved_ids` have weight 0. Only every
    `num_shards`-th class is sampled, from class `shard` on.
    """
    if num_shards < 1 or not 0 <= shard < num_shards:
        raise InvalidArgumentError(f"shard must be in [0, {num_shards}), got {shard}")
    if bool(vocab_file) == bool(unigrams):
        raise InvalidArgumentError("Must provide either vocab_file or unigrams, and not both.")
    counts = list(unigrams) if unigrams else _frequencies(context, vocab_file)
    weights = np.array([0.0] * num_reserved_ids + counts, np.float64) ** distortion
    weights[:num_reserved_ids] = 0
    weights = weights[shard::num_shards]
    if len(weights) != range_max:
        raise InvalidArgumentError(
            f"range is {range_max} must be equal to weights size  {len(weights)}"
        )
    chances = weights / weights.sum()
    limits = np.cumsum(chances)

    def draw(generator: np.random.Generator, count: int) -> np.ndarray:
        found = np.searchsorted(limits, generator.random(count), side="right")
        return np.minimum(found, range_max - 1)

    classes = _true_classes(true_classes, num_true)
    return _sample(
        _state(context), classes, num_sampled, unique, range_max, draw, lambda c: chances[c]
    )


def _frequencies(context: OpKernelContext, vocab_file: str) -> list[float]:
    """Read the frequencies from a vocabulary file: the last field of each line `word,frequency`."""
    context.step.files.check_read(vocab_file)
    with open(vocab_file, encoding="utf-8") as lines:
        fields = [line.rstrip("\n").split(",") for line in lines]
    return [float(each[-1]) for each in fields if each != [""]]


def all_candidate_sampler(
    true_classes: np.ndarray, *, num_true: int, num_sampled: int, unique: bool
) -> Sampled:
    """AllCandidateSampler: return every class of [0, num_sampled), with an expected count of 1."""
    del unique  # the classes are distinct in any case
    check_allocation((num_sampled,), np.int64)
    _check_true(_true_classes(true_classes, num_true), num_sampled)
    sampled = np.arange(num_sampled, dtype=np.int64)
    return sampled, np.ones(np.shape(true_classes), np.float32), np.ones(num_sampled, np.float32)


def compute_accidental_hits(
    true_classes: np.ndarray, sampled_candidates: np.ndarray, *, num_true: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ComputeAccidentalHits: find the samples that are true classes of a row.

    Returns the row of each such sample, its position in `sampled_candidates`, and its weight, which
    is −FLT_MAX.
    """
    classes, sampled = np.asarray(true_classes), np.asarray(sampled_candidates)
    if classes.ndim != 2 or classes.shape[1] != num_true:
        raise InvalidArgumentError(
            "true_candidates must be a batch_size * num_true matrix, "
            f"got shape {shape_text(classes.shape)}"
        )
    if sampled.ndim != 1:
        raise InvalidArgumentError(
            "sampled_candidates must be a vector, which is typically an "
            "output from CandidateSampler"
        )
    if not sampled.size:
        return np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.float32)
    order = np.argsort(sampled, kind="stable")
    place = np.searchsorted(sampled, classes, side="right", sorter=order) - 1  # the last of equals
    positions = order[np.maximum(place, 0)]
    is_hit = sampled[positions] == classes
    weights = np.full(np.count_nonzero(is_hit), -np.finfo(np.float32).max, np.float32)
    return np.nonzero(is_hit)[0].astype(np.int32), positions[is_hit].astype(np.int64), weights


KERNELS = (
    KernelDef("AllCandidateSampler", all_candidate_sampler),
    KernelDef("ComputeAccidentalHits", compute_accidental_hits),
    KernelDef("FixedUnigramCandidateSampler", fixed_unigram_candidate_sampler),
    KernelDef("LearnedUnigramCandidateSampler", learned_unigram_candidate_sampler),
    KernelDef("LogUniformCandidateSampler", log_uniform_candidate_sampler),
    KernelDef("ThreadUnsafeUnigramCandidateSampler", learned_unigram_candidate_sampler),
    KernelDef("UniformCandidateSampler", uniform_candidate_sampler),
)
