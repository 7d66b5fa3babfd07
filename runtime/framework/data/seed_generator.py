"""Seeds for the passes over a dataset that draws random numbers.

Guarantees: `SeedGenerator` is thread-safe. The seeds that it generates depend only on the two seeds
that it is given; if both are 0, random seeds are used in their place.

TF: tensorflow/core/kernels/data/random_seed_ops.cc (SeedGenerator), tensorflow/core/data/utils
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable

from runtime.framework.philox import Philox, WordSequence
from runtime.framework.resource_manager import Resource


class SeedGenerator(Resource):
    """Generates two seeds for each pass over a dataset.

    Every pass gets new seeds if `reshuffle_each_iteration` is true; otherwise every pass gets
    `seeds`.
    """

    type_name = "N10tensorflow4data20SeedGeneratorManagerE"

    def __init__(self, seed: int, seed2: int, reshuffle_each_iteration: bool) -> None:
        if seed == 0 and seed2 == 0:
            seed, seed2 = secrets.randbits(63), secrets.randbits(63)
        self.seeds = (seed, seed2)
        self.reshuffle_each_iteration = reshuffle_each_iteration
        self._lock = threading.Lock()  # guards _words
        self._words = RandomWords(self.seeds)

    def held(self) -> tuple[int, Iterable[object]]:
        """Return nothing: a generator keeps no values."""
        return 0, ()

    def next_seeds(self) -> tuple[int, int]:
        """Return the two seeds of the next pass."""
        if not self.reshuffle_each_iteration:
            return self.seeds
        with self._lock:
            return self._words.take(), self._words.take()

    @property
    def position(self) -> tuple[int, int, int]:
        """The state from which `go_back` generates the following seeds again."""
        with self._lock:
            return (*self._words.seeds, self._words.taken)

    def go_back(self, position: tuple[int, int, int]) -> None:
        """Continue from `position`, which is a position of this or of another generator."""
        seed, seed2, taken = position
        with self._lock:
            self.seeds = (seed, seed2)
            self._words = RandomWords(self.seeds, taken)


class RandomWords:
    """The 32-bit random words of one pass, beginning after the first `taken` words.

    Not thread-safe.
    """

    def __init__(self, seeds: tuple[int, int], taken: int = 0) -> None:
        self.seeds = seeds
        self.taken = taken  # number of words returned or skipped so far
        start = Philox.from_seeds(*seeds)
        self._words = WordSequence(start.skipped(taken // 4))
        for _ in range(taken % 4):
            self._words.take()

    def take(self) -> int:
        """Return the next 32-bit word."""
        self.taken += 1
        return self._words.take()
