"""Gamma, Poisson and binomial samples by rejection, bit for bit as in TensorFlow.

Each output has a separate part of the stream, usually of BLOCKS_PER_OUTPUT blocks. Candidates for
the output are drawn from that part until one is accepted. The parts are independent, so that one
round draws a candidate for every output that has none accepted yet.
Parameters have any shape; the samples of one parameter use adjacent parts of the stream.

Sources: Marsaglia and Tsang, A simple method for generating gamma variables (2000); Hörmann, The
transformed rejection method for generating Poisson random variables (1993), The generation of
binomial random variates (1993).
TF: tensorflow/core/kernels/random_op.cc (RandomGammaOp), random_poisson_op.cc,
random_binomial_op.cc, stateless_random_gamma_op.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from runtime.foundation.running_task import check_task
from runtime.framework.philox import Philox
from runtime.kernels.math.gamma_functions import log_gamma
from runtime.kernels.random.random_distributions import (
    BLOCKS_PER_OUTPUT,
    double_pairs,
    normal_blocks,
)

# Poisson and binomial samples are found by counting events if the mean is less than this.
_SMALL_RATE = 10
_BLOCKS_PER_COUNTED_OUTPUT = 42  # blocks reserved for a binomial sample found by counting


class _OutputStreams:
    """The parts of a stream that belong to the outputs; each block gives two doubles.

    `outputs` are the outputs' numbers. The part of output i begins at block `i · blocks`.
    """

    def __init__(
        self, stream: Philox, outputs: np.ndarray, blocks: np.ndarray | int = BLOCKS_PER_OUTPUT
    ) -> None:
        self._stream = stream
        self._next = (outputs * blocks).astype(np.uint64)
        self._held = np.empty((2, len(outputs), 2))  # uniform and normal samples not yet used
        self._left = np.zeros((2, len(outputs)), np.int8)

    def uniform(self, which: np.ndarray) -> np.ndarray:
        """Return the next uniform sample in [0, 1) of each output whose number is in `which`."""
        return self._take(0, which, double_pairs)

    def normal(self, which: np.ndarray) -> np.ndarray:
        """Return the next normal sample of each output whose number is in `which`."""
        return self._take(1, which, lambda blocks: normal_blocks(blocks, np.dtype(np.float64)))

    def _take(
        self, kind: int, which: np.ndarray, numbers: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        held, left = self._held[kind], self._left[kind]
        empty = which[left[which] == 0]
        if len(empty):
            held[empty] = numbers(self._stream.blocks_at(self._next[empty]))
            self._next[empty] += np.uint64(1)
            left[empty] = 2
        left[which] -= 1
        return held[which, left[which]]


def _by_parameter(count: int, parameters: int) -> np.ndarray:
    """Return the index of the parameter of each output.

    The `count` outputs are divided evenly among the `parameters` parameters, in order.
    """
    return np.repeat(np.arange(parameters), count // max(parameters, 1))


def _arranged(drawn: np.ndarray, sizes: tuple[int, ...], parameters: int) -> np.ndarray:
    """Reshape samples to `sizes`, which is `[samples…, parameters…]`.

    In `drawn`, the samples of one parameter are adjacent.
    """
    return drawn.reshape(parameters, -1).T.reshape(sizes) if drawn.size else drawn.reshape(sizes)


def gamma(stream: Philox, sizes: tuple[int, ...], alpha: np.ndarray) -> np.ndarray:
    """Return float64 samples of gamma distributions with shape parameter `alpha` and scale 1.

    The result has the shape `sizes`, whose last dimensions must be the shape of the array `alpha`.
    A sample is NaN if its element of `alpha` is below −2/3; from there to 0, where there is no such
    distribution, it is what TensorFlow's algorithm gives, and 0 for 0.
    """
    count = math.prod(sizes)
    shapes = alpha.astype(np.float64).ravel()[_by_parameter(count, alpha.size)]
    result = np.empty(count)
    streams = _OutputStreams(stream, np.arange(count))
    exponential = np.flatnonzero(shapes == 1)
    result[exponential] = -np.log1p(-streams.uniform(exponential))
    below_one = shapes < 1
    d = shapes + np.where(below_one, 2 / 3, -1 / 3)
    with np.errstate(all="ignore"):
        c = 1 / 3 / np.sqrt(d)
    waiting = np.flatnonzero((shapes != 1) & (d > 0))
    result[~(d > 0)] = np.nan
    while len(waiting):
        check_task()
        x = streams.normal(waiting)
        v = 1 + c[waiting] * x
        possible = v > 0
        again, tried, x, v = waiting[~possible], waiting[possible], x[possible], v[possible] ** 3
        u = streams.uniform(tried)
        with np.errstate(divide="ignore"):
            accepted = (u < 1 - 0.0331 * (x * x) * (x * x)) | (
                np.log(u) < 0.5 * x * x + d[tried] * (1 - v + np.log(v))
            )
        taken = tried[accepted]
        result[taken] = d[taken] * v[accepted]
        waiting = np.concatenate([again, tried[~accepted]])
    small = np.flatnonzero(below_one & (d > 0))
    with np.errstate(all="ignore"):  # of 0 the result is 0
        result[small] *= streams.uniform(small) ** (1 / shapes[small])
    return _arranged(result, sizes, alpha.size)


def poisson(stream: Philox, sizes: tuple[int, ...], rate: np.ndarray) -> np.ndarray:
    """Return samples of Poisson distributions with the rates `rate`, float64 of shape `sizes`.

    The last dimensions of `sizes` must be the shape of `rate`. A sample is 0 if its rate is
    negative or NaN, and infinite if its rate is infinite.
    """
    count = math.prod(sizes)
    rates = rate.astype(np.float64).ravel()[_by_parameter(count, rate.size)]
    result = np.where(rates == np.inf, np.inf, 0.0)
    streams = _OutputStreams(stream, np.arange(count))
    proper = np.isfinite(rates) & (rates >= 0)
    _count_events(streams, rates, np.flatnonzero(proper & (rates < _SMALL_RATE)), result)
    _transformed_poisson(streams, rates, np.flatnonzero(proper & (rates >= _SMALL_RATE)), result)
    return _arranged(result, sizes, rate.size)


def _count_events(
    streams: _OutputStreams, rates: np.ndarray, waiting: np.ndarray, result: np.ndarray
) -> None:
    """Write Poisson samples of small rates into `result[waiting]`, by Knuth's method.

    The sample is the number of uniform samples whose product remains greater than e^−rate.
    """
    product = np.ones(len(rates))
    result[waiting] = -1
    while len(waiting):
        check_task()
        result[waiting] += 1
        product[waiting] *= streams.uniform(waiting)
        waiting = waiting[product[waiting] > np.exp(-rates[waiting])]


def _transformed_poisson(
    streams: _OutputStreams, rates: np.ndarray, waiting: np.ndarray, result: np.ndarray
) -> None:
    """Write Poisson samples of large rates into `result[waiting]`, by Hörmann's algorithm PTRS."""
    while len(waiting):
        check_task()
        rate = rates[waiting]
        b = 0.931 + 2.53 * np.sqrt(rate)
        a = -0.059 + 0.02483 * b
        inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
        u = streams.uniform(waiting) - 0.5
        v = streams.uniform(waiting)
        shifted = 0.5 - np.abs(u)
        with np.errstate(all="ignore"):
            k = np.floor((2 * a / shifted + b) * u + rate + 0.43)
            boxed = (shifted >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
            left = np.log(v * inverse_alpha / (a / (shifted * shifted) + b))
            right = -rate + k * np.log(rate) - log_gamma(k + 1)
        refused = (k < 0) | ((shifted < 0.013) & (v > shifted))
        accepted = np.isfinite(k) & (boxed | (~refused & (left <= right)))
        result[waiting[accepted]] = k[accepted]
        waiting = waiting[~accepted]


def binomial(
    stream: Philox, sizes: tuple[int, ...], counts: np.ndarray, probs: np.ndarray
) -> np.ndarray:
    """Return the number of successes in `counts` trials of probability `probs`, as float64.

    The result has the shape `sizes`, whose last dimensions must be the shape of both `counts` and
    `probs`.
    """
    outputs = math.prod(sizes)
    each = _by_parameter(outputs, counts.size)
    trials = counts.astype(np.float64).ravel()[each]
    chance = probs.astype(np.float64).ravel()[each]
    result = np.zeros(outputs)
    proper = np.isfinite(trials) & np.isfinite(chance) & (trials > 0)
    turned = chance > 0.5
    rarer = np.where(turned, 1 - chance, chance)
    open_ = proper & (rarer > 0)
    few = trials * rarer < _SMALL_RATE
    blocks = np.where(few, _BLOCKS_PER_COUNTED_OUTPUT, BLOCKS_PER_OUTPUT)
    streams = _OutputStreams(stream, np.arange(outputs), blocks)
    _count_successes(streams, trials, rarer, np.flatnonzero(open_ & few), result)
    _transformed_binomial(streams, trials, rarer, np.flatnonzero(open_ & ~few), result)
    result = np.where(turned & proper, trials - result, result)
    return _arranged(result, sizes, counts.size)


def _count_successes(
    streams: _OutputStreams,
    trials: np.ndarray,
    chance: np.ndarray,
    waiting: np.ndarray,
    result: np.ndarray,
) -> None:
    """Write binomial samples of small means into `result[waiting]`.

    The numbers of trials from one success to the next are geometric samples. The result is how
    many of them add up to at most `trials`.
    """
    used = np.zeros(len(trials))
    result[waiting] = -1
    while len(waiting):
        check_task()
        result[waiting] += 1
        with np.errstate(divide="ignore"):
            times = np.log(streams.uniform(waiting)) / np.log1p(-chance[waiting])
        used[waiting] += np.ceil(times)
        waiting = waiting[used[waiting] <= trials[waiting]]


def _stirling_rest(k: np.ndarray) -> np.ndarray:
    """Return the difference of log k! and Stirling's approximation of log k!."""
    table = np.array(
        [0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
         0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
         0.00925546218271273, 0.00833056343336287]
    )  # fmt: skip
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return np.where(k <= 9, table[np.clip(k, 0, 9).astype(np.intp)], series)


def _transformed_binomial(
    streams: _OutputStreams,
    trials: np.ndarray,
    chance: np.ndarray,
    waiting: np.ndarray,
    result: np.ndarray,
) -> None:
    """Write binomial samples of large means into `result[waiting]`, by Hörmann's BTRS."""
    while len(waiting):
        check_task()
        n, p = trials[waiting], chance[waiting]
        deviation = np.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        alpha = (2.83 + 5.1 / b) * deviation
        odds, mode = p / (1 - p), np.floor((n + 1) * p)
        u = streams.uniform(waiting) - 0.5
        v = streams.uniform(waiting)
        shifted = 0.5 - np.abs(u)
        with np.errstate(all="ignore"):
            k = np.floor((2 * a / shifted + b) * u + (n * p + 0.5))
            boxed = (shifted >= 0.07) & (v <= 0.92 - 4.2 / b)
            left = np.log(v * alpha / (a / (shifted * shifted) + b))
            right = (
                (mode + 0.5) * np.log((mode + 1) / (odds * (n - mode + 1)))
                + (n + 1) * np.log((n - mode + 1) / (n - k + 1))
                + (k + 0.5) * np.log(odds * (n - k + 1) / (k + 1))
                + _stirling_rest(mode)
                + _stirling_rest(n - mode)
                - _stirling_rest(k)
                - _stirling_rest(n - k)
            )
        accepted = boxed | ((k >= 0) & (k <= n) & (left <= right))
        result[waiting[accepted]] = k[accepted]
        waiting = waiting[~accepted]
