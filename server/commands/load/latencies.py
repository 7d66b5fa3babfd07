"""A histogram of latencies in bounded memory, and its percentiles.

Each bucket ends 1 % above the one before, so that a percentile is right to 1 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

_FIRST_SECONDS = 1e-6  # all that is shorter is in the first bucket
_LAST_SECONDS = 1e4  # all that is longer is in the last bucket
_GROWTH = math.log(1.01)
_BUCKETS = math.ceil(math.log(_LAST_SECONDS / _FIRST_SECONDS) / _GROWTH) + 1


class Latencies:
    """Counts of latencies in seconds. Not thread-safe: each caller has its own, and they add up."""

    def __init__(self) -> None:
        self._counts = [0] * _BUCKETS
        self.count = 0
        self.longest = 0.0
        self.shortest = math.inf

    def add(self, seconds: float) -> None:
        """Count one latency."""
        self._counts[_bucket(seconds)] += 1
        self.count += 1
        self.longest = max(self.longest, seconds)
        self.shortest = min(self.shortest, seconds)

    def merge(self, other: Latencies) -> None:
        """Count all that `other` has counted."""
        self._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]
        self.count += other.count
        self.longest = max(self.longest, other.longest)
        self.shortest = min(self.shortest, other.shortest)

    def percentile(self, percent: float) -> float:
        """Return the seconds within which `percent` of the latencies are; 0 if there is none."""
        if not self.count:
            return 0.0
        wanted = max(1, math.ceil(self.count * percent / 100))
        if wanted == self.count:
            return self.longest
        index = int(np.searchsorted(np.cumsum(self._counts), wanted))
        middle = _end(index) / math.exp(_GROWTH / 2)
        return min(max(middle, self.shortest), self.longest)

    def ranges(self, rows: int) -> Iterator[tuple[float, float, int]]:
        """Yield (from, to, count) for at most `rows` ranges of seconds that hold all latencies.

        Each is longer than the one before by the same factor.
        """
        if not self.count:
            return
        first, last = _bucket(self.shortest), _bucket(self.longest)
        width = math.ceil((last - first + 1) / rows)
        for start in range(first, last + 1, width):
            yield _end(start - 1), _end(start + width - 1), sum(self._counts[start : start + width])


def _bucket(seconds: float) -> int:
    if seconds <= _FIRST_SECONDS:
        return 0
    return min(_BUCKETS - 1, math.ceil(math.log(seconds / _FIRST_SECONDS) / _GROWTH))


def _end(index: int) -> float:
    """Return the seconds at which a bucket ends."""
    return 0.0 if index < 0 else _FIRST_SECONDS * math.exp(index * _GROWTH)
