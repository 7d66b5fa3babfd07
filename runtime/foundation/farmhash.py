"""FarmHash's Fingerprint64, vectorised over strings.

The results are equal to the results of `farmhash::Fingerprint64`, with which TensorFlow hashes
strings. Every function works on uint64 arrays with one element for each string; the arithmetic
wraps around, as the algorithm requires.

Source: the FarmHash reference (farmhashna), Geoff Pike, 2014.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.packed_bytes import PackedBytes

_U = np.uint64
_K0 = _U(0xC3A5C85C97CB3127)
_K1 = _U(0xB492B66FBE98F273)
_K2 = _U(0x9AE16A3B2F90404F)
_SEED = 81  # the seed of the state for strings longer than 64 bytes

Words = np.ndarray  # uint64 [n]; one word for each string


def fingerprint64(strings: Sequence[bytes]) -> np.ndarray:
    """Return the fingerprints of n byte strings: uint64 `[n]`."""
    packed = PackedBytes(strings)
    result = np.empty(len(strings), np.uint64)
    blocks = np.maximum(packed.lengths - 1, 0) // 64
    # Strings of one class are hashed together. Classes 0 to 5 have the lengths for which
    # `_BY_LENGTH` has a function; the strings of each further class have the same number of
    # 64-byte blocks.
    classes = np.searchsorted([1, 4, 8, 17, 33], packed.lengths, side="right") + blocks
    for which, members in packed.groups(classes):
        starts, lengths = packed.starts[members], packed.lengths[members]
        if which < len(_BY_LENGTH):
            result[members] = _BY_LENGTH[which](packed, starts, lengths)
        else:
            result[members] = _over_64(packed, starts, lengths, which - len(_BY_LENGTH) + 1)
    return result


def _rotate(word: Words, shift: int) -> Words:
    rotated: Words = (word >> _U(shift)) | (word << _U(64 - shift))
    return rotated


def _shift_mix(word: Words) -> Words:
    mixed: Words = word ^ (word >> _U(47))
    return mixed


def _hash_pair(u: Words, v: Words, multiplier: Words) -> Words:
    a = _shift_mix((u ^ v) * multiplier)
    mixed: Words = _shift_mix((v ^ a) * multiplier) * multiplier
    return mixed


def _multiplier(lengths: np.ndarray) -> Words:
    multiplier: Words = _K2 + lengths.astype(np.uint64) * _U(2)
    return multiplier


def _empty(packed: PackedBytes, starts: np.ndarray, lengths: np.ndarray) -> Words:
    return np.full(len(starts), _K2)


def _up_to_3(packed: PackedBytes, starts: np.ndarray, lengths: np.ndarray) -> Words:
    first = packed.byte(starts)
    middle = packed.byte(starts + lengths // 2)
    last = packed.byte(starts + lengths - 1)
    y = first + (middle << _U(8))
    z = lengths.astype(np.uint64) + (last << _U(2))
    mixed: Words = _shift_mix(y * _K2 ^ z * _K0) * _K2
    return mixed


def _up_to_7(packed: PackedBytes, starts: np.ndarray, lengths: np.ndarray) -> Words:
    head = lengths.astype(np.uint64) + (packed.word32(starts) << _U(3))
    return _hash_pair(head, packed.word32(starts + lengths - 4), _multiplier(lengths))


def _up_to_16(packed: PackedBytes, starts: np.ndarray, lengths: np.ndarray) -> Words:
    multiplier = _multiplier(lengths)
    a = packed.word64(starts) + _K2
    b = packed.word64(starts + lengths - 8)
    return _hash_pair(
        _rotate(b, 37) * multiplier + a, (_rotate(a, 25) + b) * multiplier, multiplier
    )


def _up_to_32(packed: PackedBytes, starts: np.ndarray, lengths: np.ndarray) -> Words:
    multiplier = _multiplier(lengths)
    ends = starts + lengths
    a = packed.word64(starts) * _K1
    b = packed.word64(starts + 8)
    c = packed.word64(ends - 8) * multiplier
    d = packed.word64(ends - 16) * _K2
    return _hash_pair(
        _rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, multiplier
    )


def _up_to_64(packed: PackedBytes, starts: np.ndarray, lengths: np.ndarray) -> Words:
    multiplier = _multiplier(lengths)
    ends = starts + lengths
    a = packed.word64(starts) * _K2
    b = packed.word64(starts + 8)
    c = packed.word64(ends - 8) * multiplier
    d = packed.word64(ends - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _hash_pair(y, a + _rotate(b + _K2, 18) + c, multiplier)
    e = packed.word64(starts + 16) * multiplier
    f = packed.word64(starts + 24)
    g = (y + packed.word64(ends - 32)) * multiplier
    h = (z + packed.word64(ends - 24)) * multiplier
    return _hash_pair(
        _rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, multiplier
    )


_BY_LENGTH = (_empty, _up_to_3, _up_to_7, _up_to_16, _up_to_32, _up_to_64)


def _weak_hash_32(
    packed: PackedBytes, offsets: np.ndarray, a: Words, b: Words
) -> tuple[Words, Words]:
    """Hash the 32 bytes at each offset to two words; `a` and `b` are seeds."""
    w, x, y, z = (packed.word64(offsets + 8 * i) for i in range(4))
    a = a + w
    b = _rotate(b + a + z, 21)
    c = a
    a = a + x + y
    return a + z, b + _rotate(a, 44) + c


class _State:
    """The 56 bytes of hash state of each string over 64 bytes, updated block by block."""

    def __init__(self, packed: PackedBytes, starts: np.ndarray) -> None:
        self.packed = packed
        zero = np.zeros(len(starts), np.uint64)
        self.y = zero + _U((_SEED * int(_K1) + 113) % 2**64)
        self.z = _shift_mix(self.y * _K2 + _U(113)) * _K2
        self.v = (zero, zero)
        self.w = (zero, zero)
        self.x = _U(_SEED * int(_K2) % 2**64) + packed.word64(starts)

    def fold(self, at: np.ndarray, multiplier: Words | np.uint64, weight: int = 1) -> None:
        """Mix the 64 bytes at each offset into the state; `weight` must be 9 for the last block."""
        word = self.packed.word64
        v, w = self.v, self.w
        x = _rotate(self.x + self.y + v[0] + word(at + 8), 37) * multiplier
        y = _rotate(self.y + v[1] + word(at + 48), 42) * multiplier
        x = x ^ (w[1] * _U(weight))
        y = y + v[0] * _U(weight) + word(at + 40)
        z = _rotate(self.z + w[0], 33) * multiplier
        self.v = _weak_hash_32(self.packed, at, v[1] * multiplier, x + w[0])
        self.w = _weak_hash_32(self.packed, at + 32, z + w[1], y + word(at + 16))
        self.x, self.y, self.z = z, y, x


def _over_64(packed: PackedBytes, starts: np.ndarray, lengths: np.ndarray, blocks: int) -> Words:
    state = _State(packed, starts)
    for block in range(blocks):
        state.fold(starts + 64 * block, _K1)
    multiplier = _K1 + ((state.z & _U(0xFF)) << _U(1))
    (v0, v1), (w0, w1) = state.v, state.w
    w0 = w0 + ((lengths - 1) & 63).astype(np.uint64)
    v0 = v0 + w0
    state.v, state.w = (v0, v1), (w0 + v0, w1)
    state.fold(starts + lengths - 64, multiplier, weight=9)
    return _hash_pair(
        _hash_pair(state.v[0], state.w[0], multiplier) + _shift_mix(state.y) * _K0 + state.z,
        _hash_pair(state.v[1], state.w[1], multiplier) + state.x,
        multiplier,
    )
