"""RandomIndexShuffle: where an index goes in a random permutation that nobody writes down.

The permutation of 0 … max_index is a block cipher (Simon with few rounds) over the next even number
of bits, at least 16, applied again until the number is at most max_index.

TF: tensorflow/core/kernels/random_index_shuffle{.cc,_ops.cc}; Simon: https://eprint.iacr.org/2013/404
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import shape_text

_MIN_BLOCK = 16  # bits
_CONSTANT, _SEQUENCE = 0xFFFFFFFC, 0x7369F885192C0EF5  # of the key schedule
_TABLE_BELOW = 1 << 12  # numbers; the walk through the smallest block is long for fewer


def random_index_shuffle(
    context: OpKernelContext, index: Any, seed: Any, max_index: Any, *, rounds: int
) -> np.ndarray:
    """New places [n] of `index` [n] or scalar; seed [3] or [n, 3], max_index [n] or scalar."""
    index, seed, max_index = np.asarray(index), np.asarray(seed), np.asarray(max_index)
    if rounds < 4 or rounds % 2:
        raise InvalidArgumentError(f"rounds must be even and at least 4, got {rounds}")
    count = max(index.size, max_index.size, seed.size // 3)
    _check_shapes(index, seed, max_index, count)
    indices, limits = np.broadcast_to(index, count), np.broadcast_to(max_index, count)
    keys = np.broadcast_to(seed, (count, 3)).astype(np.uint32).tolist()
    permutations: dict[tuple[int, ...], _Permutation] = {}
    result = np.empty(count, index.dtype)
    for row, (each, limit) in enumerate(zip(indices.tolist(), limits.tolist(), strict=True)):
        _check_range(each, limit)
        context.cancellation.check()
        key = (*keys[row], _block_bits(limit))
        if key not in permutations:
            permutations[key] = _Permutation(key[:3], key[3], rounds)
        result[row] = permutations[key].place(each, limit)
    is_scalar = index.ndim == 0 and seed.ndim == 1 and max_index.ndim == 0
    return result.reshape(()) if is_scalar else result


def _check_shapes(index: np.ndarray, seed: np.ndarray, max_index: np.ndarray, count: int) -> None:
    if index.shape not in ((), (count,)):
        raise InvalidArgumentError("Index bust be a scalar or vector.")
    if seed.shape not in ((3,), (count, 3)):
        raise InvalidArgumentError(
            f"Seed must be a vector of size [3] or a matrix of size [{count}, 3] "
            f"but got {shape_text(seed.shape)}."
        )
    if max_index.shape not in ((), (count,)):
        raise InvalidArgumentError(
            "Maxval must be a scalar or a vector of the same size as index "
            f"but got {shape_text(max_index.shape)}"
        )


def _check_range(index: int, limit: int) -> None:
    if index < 0:
        raise InvalidArgumentError(f"index must be >= 0 but was {index}")
    if limit < 0:
        raise InvalidArgumentError(f"max_index must be >= 0 but was {limit}")
    if limit < index:
        raise InvalidArgumentError(f"max_index must be >= index, but {limit} < {index}")


def _block_bits(limit: int) -> int:
    bits = math.ceil(math.log2(limit)) if limit else 0
    return min(max(bits + bits % 2, _MIN_BLOCK), 64)


class _Permutation:
    """The cipher of one key over blocks of `bits`."""

    def __init__(self, key: Sequence[int], bits: int, rounds: int) -> None:
        self._word = bits // 2
        self._mask = (1 << self._word) - 1
        self._keys = self._schedule(key, rounds)
        self._table: list[int] | None = None

    def place(self, index: int, limit: int) -> int:
        """Where `index` goes among 0 … limit."""
        if limit == 0:
            return 0
        if limit < _TABLE_BELOW:  # the block is the smallest
            if self._table is None:
                self._table = self._encrypt(np.arange(1 << _MIN_BLOCK, dtype=np.int64)).tolist()
            index = self._table[index]
            while index > limit:
                index = self._table[index]
            return index
        index = self._encrypt(index)
        while index > limit:
            index = self._encrypt(index)
        return index

    def _schedule(self, key: Sequence[int], rounds: int) -> list[int]:
        keys = [part & self._mask for part in key]
        for number in range(rounds - 3):
            bit = (_SEQUENCE & self._mask) >> number & 1
            last = keys[-1]
            turned = self._right(last, 3) ^ self._right(last, 4)
            keys.append((_CONSTANT & self._mask) ^ bit ^ keys[-3] ^ turned)
        return keys

    def _encrypt(self, value: Any) -> Any:
        """One number, or an array of them."""
        left, right = value >> self._word & self._mask, value & self._mask
        for first, second in zip(self._keys[::2], self._keys[1::2], strict=True):
            left = left ^ self._mixed(right) ^ first
            right = right ^ self._mixed(left) ^ second
        return left << self._word | right

    def _mixed(self, word: Any) -> Any:
        return self._left(word, 1) & self._left(word, 8) ^ self._left(word, 2)

    def _left(self, word: Any, count: int) -> Any:
        return (word << count | word >> (self._word - count)) & self._mask

    def _right(self, word: int, count: int) -> int:
        return (word >> count | word << (self._word - count)) & self._mask


KERNELS: tuple[KernelDef, ...] = (KernelDef("RandomIndexShuffle", random_index_shuffle),)
