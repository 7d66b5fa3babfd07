"""Philox 4x32-10: random bits from a key and a counter, vectorised over blocks.

A block is four 32-bit words, which depend only on the 64-bit key and the 128-bit counter. A stream
consists of a key and a first counter; block i of the stream has the counter `first + i`.

Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
TF: tensorflow/core/lib/random/philox_random.h (PhiloxRandom), guarded_philox_random.h
"""

from __future__ import annotations

import dataclasses
import secrets
import threading

import numpy as np

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_WORD = 0xFFFFFFFF
_LOW = np.uint64(_WORD)
_HALF = np.uint64(32)  # bits
_MASK_128 = (1 << 128) - 1


def philox_blocks(key: int, counter: int, offsets: np.ndarray) -> np.ndarray:
    """Return the blocks of the counters `counter + offsets`: uint32 `[n, 4]`.

    `offsets` is uint64 `[n]`.
    """
    low, high = counter & ((1 << 64) - 1), counter >> 64
    lows = offsets + np.uint64(low)
    highs = np.full(len(offsets), high, np.uint64)
    highs += lows < np.uint64(low)  # add the carry if the low half wrapped around
    return philox_of_counters(key, lows, highs)


def philox_of_counters(key: int, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Return the blocks of the 128-bit counters `highs * 2**64 + lows`: uint32 `[count, 4]`.

    `lows` and `highs` are uint64 `[count]`.
    """
    words = [lows & _LOW, lows >> _HALF, highs & _LOW, highs >> _HALF]
    keys = [key & _WORD, key >> 32]
    for _ in range(_ROUNDS):
        first = words[0] * _MULTIPLIERS[0]
        second = words[2] * _MULTIPLIERS[1]
        words = [
            (second >> _HALF) ^ words[1] ^ np.uint64(keys[0]),
            second & _LOW,
            (first >> _HALF) ^ words[3] ^ np.uint64(keys[1]),
            first & _LOW,
        ]
        keys = [(each + step) & _WORD for each, step in zip(keys, _KEY_STEPS, strict=True)]
    return np.stack(words, axis=1).astype(np.uint32)


@dataclasses.dataclass(frozen=True, slots=True)
class Philox:
    """A position in a stream of blocks: the counter of the next block."""

    key: int
    counter: int = 0

    @classmethod
    def from_seeds(cls, seed: int, seed2: int) -> Philox:
        """Return the stream of two 64-bit seeds; if both are 0, an unpredictable stream."""
        if seed == 0 and seed2 == 0:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        return cls(seed & ((1 << 64) - 1), (seed2 & ((1 << 64) - 1)) << 64)

    def skipped(self, blocks: int) -> Philox:
        """Return the position that is `blocks` blocks further on.

        As in TensorFlow (random/philox_random.h, Skip), the carry out of the low 32 bits of the
        counter is lost if bits 32 to 63 of `blocks` are all ones and the higher bits are zero.
        """
        low = (1 << 32) - 1
        if blocks >> 32 == low and (self.counter & low) + (blocks & low) > low:
            blocks -= 1 << 64
        return Philox(self.key, (self.counter + blocks) & _MASK_128)

    def blocks(self, count: int) -> np.ndarray:
        """Return the next `count` blocks: uint32 `[count, 4]`."""
        return self.blocks_at(np.arange(count, dtype=np.uint64))

    def blocks_at(self, offsets: np.ndarray) -> np.ndarray:
        """Return the blocks at `offsets`, uint64 `[n]`, from this position: uint32 `[n, 4]`."""
        return philox_blocks(self.key, self.counter, offsets)

    def words(self, count: int) -> np.ndarray:
        """Return the next `count` 32-bit words: uint32 `[count]`."""
        return self.blocks(-(-count // 4)).ravel()[:count]


class GuardedPhilox:
    """A stream of which each call of `reserve` reserves a part.

    Guarantees: thread-safe; the parts of different calls do not overlap.
    """

    def __init__(self, seed: int, seed2: int) -> None:
        self._lock = threading.Lock()  # guards `_next`
        self._next = Philox.from_seeds(seed, seed2)

    def reserve(self, blocks: int) -> Philox:
        """Reserve the next `blocks` blocks; return the position of the first."""
        with self._lock:
            taken = self._next
            self._next = taken.skipped(blocks)
        return taken


class WordSequence:
    """A stream that is read one word at a time; not thread-safe (TF: SingleSampleAdapter)."""

    def __init__(self, start: Philox) -> None:
        self._next = start
        self._words: list[int] = []

    def take(self) -> int:
        """Return the next 32-bit word."""
        if not self._words:
            self._words = self._next.blocks(16).ravel()[::-1].tolist()
            self._next = self._next.skipped(16)
        return self._words.pop()
