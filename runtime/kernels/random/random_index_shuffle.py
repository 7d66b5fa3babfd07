"""RandomIndexShuffle: an index's position in a random permutation that is never stored.

The permutation of 0 … `max_index` is a block cipher, Simon with few rounds. The size of a block is
the smallest even number of bits that holds `max_index`, at least 16. The cipher is applied
repeatedly until the result is at most `max_index`.

TF: tensorflow/core/kernels/random_index_shuffle{.cc,_ops.cc}; Simon: https://eprint.iacr.org/2013/404
"""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import shape_text

_MIN_BLOCK = 16  # the smallest block of the cipher, in bits
_CONSTANT, _SEQUENCE = 0xFFFFFFFC, 0x7369F885192C0EF5  # constants of Simon's key schedule


def random_index_shuffle(
    context: OpKernelContext,
    index: np.ndarray,
    seed: np.ndarray,
    max_index: np.ndarray,
    *,
    rounds: int,
) -> np.ndarray:
    """RandomIndexShuffle: return the position of `index` in a permutation of 0 … `max_index`.

    `index` and `max_index` are [n] or scalars, `seed` is [n, 3] or [3]. The result is [n], or a
    scalar if no input has a dimension n.
    """
    index, seed, max_index = np.asarray(index), np.asarray(seed), np.asarray(max_index)
    if rounds < 4 or rounds % 2:
        raise InvalidArgumentError(f"rounds must be even and at least 4, got {rounds}")
    check_allocation((rounds,), object)  # the keys of all rounds
    count = max(index.size, max_index.size, seed.size // 3)
    _check_shapes(index, seed, max_index, count)
    indices, limits = np.broadcast_to(index, count), np.broadcast_to(max_index, count)
    _check_range(indices, limits)
    keys = np.broadcast_to(seed, (count, 3)).astype(np.uint32).tolist()
    rows_of: dict[tuple[int, ...], list[int]] = collections.defaultdict(list)
    for row, limit in enumerate(limits.tolist()):
        rows_of[*keys[row], _block_bits(limit)].append(row)
    result = np.empty(count, index.dtype)
    for (*key, bits), rows in rows_of.items():
        context.cancellation.check()
        result[rows] = _Permutation(key, bits, rounds).places(indices[rows], limits[rows])
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


def _check_range(indices: np.ndarray, limits: np.ndarray) -> None:
    bad = (indices < 0) | (limits < 0) | (limits < indices)
    if not bad.any():
        return
    row = bad.argmax()
    index, limit = indices[row], limits[row]
    if index < 0:
        raise InvalidArgumentError(f"index must be >= 0 but was {index}")
    if limit < 0:
        raise InvalidArgumentError(f"max_index must be >= 0 but was {limit}")
    raise InvalidArgumentError(f"max_index must be >= index, but {limit} < {index}")


def _block_bits(limit: int) -> int:
    bits = math.ceil(math.log2(limit)) if limit else 0
    return min(max(bits + bits % 2, _MIN_BLOCK), 64)


class _Permutation:
    """The permutation by the cipher with the key `key` and blocks of `bits` bits."""

    def __init__(self, key: Sequence[int], bits: int, rounds: int) -> None:
        self._word = bits // 2
        self._mask = (1 << self._word) - 1
        self._keys = self._schedule(key, rounds)

    def places(self, indices: np.ndarray, limits: np.ndarray) -> np.ndarray | list[int]:
        """Return the position of `indices[i]` in the permutation of 0 … `limits[i]`, for each i."""
        if 2 * self._word == _MIN_BLOCK:
            table = self._encrypt(np.arange(1 << _MIN_BLOCK, dtype=np.uint64)).tolist()
            pairs = zip(indices.tolist(), limits.tolist(), strict=True)
            return [_first_within(table, index, limit) for index, limit in pairs]
        places, limits = self._encrypt(indices.astype(np.uint64)), limits.astype(np.uint64)
        while (outside := places > limits).any():
            places[outside] = self._encrypt(places[outside])
        return places

    def _schedule(self, key: Sequence[int], rounds: int) -> list[int]:
        keys = [part & self._mask for part in key]
        for number in range(rounds - 3):
            check_task()
            bit = (_SEQUENCE & self._mask) >> number & 1
            last = keys[-1]
            turned = self._rotated_right(last, 3) ^ self._rotated_right(last, 4)
            keys.append((_CONSTANT & self._mask) ^ bit ^ keys[-3] ^ turned)
        return keys

    def _encrypt(self, value: np.ndarray) -> np.ndarray:
        left, right = value >> self._word & self._mask, value & self._mask
        for first, second in zip(self._keys[::2], self._keys[1::2], strict=True):
            check_task()
            left = left ^ self._round_function(right) ^ first
            right = right ^ self._round_function(left) ^ second
        return left << self._word | right

    def _round_function(self, word: np.ndarray) -> np.ndarray:
        rotated = self._rotated_left
        return rotated(word, 1) & rotated(word, 8) ^ rotated(word, 2)

    def _rotated_left(self, word: np.ndarray, count: int) -> np.ndarray:
        return (word << count | word >> (self._word - count)) & self._mask

    def _rotated_right(self, word: int, count: int) -> int:
        return (word >> count | word << (self._word - count)) & self._mask


def _first_within(table: list[int], index: int, limit: int) -> int:
    """Apply the permutation `table` to `index` until the result is at most `limit`; return it."""
    if limit == 0:
        return 0
    index = table[index % len(table)]
    while index > limit:
        index = table[index]
    return index


KERNELS: tuple[KernelDef, ...] = (KernelDef("RandomIndexShuffle", random_index_shuffle),)
