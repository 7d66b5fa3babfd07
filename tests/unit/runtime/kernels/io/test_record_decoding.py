"""Compressed strings that are longer than what is given to zlib at once."""

from __future__ import annotations

import gzip
import random
import zlib

import numpy as np
import pytest

from runtime.foundation.errors import DataLossError
from runtime.kernels.io.record_decoding import decode_compressed

NOISE = random.Random(1).randbytes(100_000)


def decoded(data: bytes, kind: str) -> bytes:
    found = decode_compressed(np.array([data], object), compression_type=kind)
    text: bytes = found[0]
    return text


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 100_000])
def test_one_member(size: int) -> None:
    assert decoded(zlib.compress(NOISE[:size]), "ZLIB") == NOISE[:size]
    assert decoded(gzip.compress(NOISE[:size]), "GZIP") == NOISE[:size]


@pytest.mark.parametrize("size", [1, 100, 4080, 50_000])
def test_members_are_joined(size: int) -> None:
    members = [gzip.compress(NOISE[first : first + size]) for first in range(0, 100_000, size * 7)]
    whole = b"".join(map(gzip.decompress, members))
    assert decoded(b"".join(members), "GZIP") == whole


def test_what_came_before_the_end_is_given() -> None:
    begun = decoded(zlib.compress(NOISE)[:60_000], "ZLIB")
    assert 50_000 < len(begun) < 60_000
    assert NOISE.startswith(begun)


def test_damage_behind_the_first_part_is_refused() -> None:
    text = NOISE.hex().encode()
    data = bytearray(zlib.compress(text))
    data[60_000] ^= 0xFF
    with pytest.raises(DataLossError, match="inflate"):
        decoded(bytes(data), "ZLIB")
