"""The string hashes that TensorFlow uses besides FarmHash: keyed SipHash-2-4 and MurmurHash64A.

Strings with the same number of 8-byte words are hashed together, with uint64 arithmetic, which
wraps around as the algorithms require.

Source: Aumasson and Bernstein, SipHash (2012); Austin Appleby, MurmurHash2 (64-bit A).
TF: tensorflow/core/platform/strong_hash.h, hash.cc (Hash64)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.packed_bytes import PackedBytes

_U = np.uint64
_MURMUR_MULTIPLIER = _U(0xC6A4A7935BD1E995)
_MURMUR_SEED = _U(0xDECAFCAFFE)  # the seed that TensorFlow uses
_SIP_CONSTANTS = tuple(
    int.from_bytes(b"somepseudorandomlygeneratedbytes"[i : i + 8], "big") for i in (0, 8, 16, 24)
)

Words = np.ndarray  # uint64 [n]; one word for each string


def _tail(packed: PackedBytes, offsets: np.ndarray, lengths: np.ndarray) -> Words:
    """Return the last `lengths % 8` bytes of each string, which begin at `offsets`, as one word."""
    bits = ((lengths % 8) * 8).astype(np.uint64)
    kept: Words = packed.word64(offsets) & ((_U(1) << bits) - _U(1))
    return kept


def _rotate_left(word: Words, shift: int) -> Words:
    return (word << _U(shift)) | (word >> _U(64 - shift))


def _sip_round(v: list[Words], count: int) -> None:
    for _ in range(count):
        v[0] = v[0] + v[1]
        v[2] = v[2] + v[3]
        v[1] = _rotate_left(v[1], 13) ^ v[0]
        v[3] = _rotate_left(v[3], 16) ^ v[2]
        v[0] = _rotate_left(v[0], 32)
        v[2] = v[2] + v[1]
        v[0] = v[0] + v[3]
        v[1] = _rotate_left(v[1], 17) ^ v[2]
        v[3] = _rotate_left(v[3], 21) ^ v[0]
        v[2] = _rotate_left(v[2], 32)


def siphash64(strings: Sequence[bytes], key: tuple[int, int]) -> np.ndarray:
    """Return the SipHash-2-4 hashes of n byte strings: uint64 `[n]`.

    `key` is the 128-bit key as two 64-bit words.
    """
    packed = PackedBytes(strings)
    result = np.empty(len(strings), np.uint64)
    for words, members in packed.groups(packed.lengths // 8):
        starts, lengths = packed.starts[members], packed.lengths[members]
        state = [
            np.full(len(members), constant ^ key[i % 2] % 2**64, np.uint64)
            for i, constant in enumerate(_SIP_CONSTANTS)
        ]
        for word in range(words):
            _sip_absorb(state, packed.word64(starts + 8 * word))
        length_byte = lengths.astype(np.uint64) << _U(56)
        _sip_absorb(state, _tail(packed, starts + 8 * words, lengths) | length_byte)
        state[2] = state[2] ^ _U(0xFF)
        _sip_round(state, 4)
        result[members] = state[0] ^ state[1] ^ state[2] ^ state[3]
    return result


def _sip_absorb(state: list[Words], word: Words) -> None:
    state[3] = state[3] ^ word
    _sip_round(state, 2)
    state[0] = state[0] ^ word


def murmurhash64(strings: Sequence[bytes]) -> np.ndarray:
    """Return the MurmurHash64A hashes, with TensorFlow's seed, of n byte strings: uint64 `[n]`."""
    packed = PackedBytes(strings)
    result = np.empty(len(strings), np.uint64)
    multiplier = _MURMUR_MULTIPLIER
    for words, members in packed.groups(packed.lengths // 8):
        starts, lengths = packed.starts[members], packed.lengths[members]
        value = _MURMUR_SEED ^ (lengths.astype(np.uint64) * multiplier)
        for word in range(words):
            part = packed.word64(starts + 8 * word) * multiplier
            part = (part ^ (part >> _U(47))) * multiplier
            value = (value ^ part) * multiplier
        with_tail = (value ^ _tail(packed, starts + 8 * words, lengths)) * multiplier
        value = np.where(lengths % 8 != 0, with_tail, value)
        value = (value ^ (value >> _U(47))) * multiplier
        result[members] = value ^ (value >> _U(47))
    return result
