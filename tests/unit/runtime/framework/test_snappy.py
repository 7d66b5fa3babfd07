"""Snappy blocks: what is written is read, what others write is read, damage is told."""

from __future__ import annotations

import pytest

from runtime.foundation.errors import DataLossError, ResourceExhaustedError
from runtime.framework.io.snappy import compress, compress_framed, decompress, decompress_framed


@pytest.mark.parametrize("size", [0, 1, 60, 61, 256, 257, 70_000])
def test_round_trip(size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    assert decompress(compress(data), size) == data


def test_copies_may_run_into_what_they_write() -> None:
    # 10 bytes: the literal "ab", then 8 bytes from 2 back by a copy with a one-byte offset.
    block = bytes([10, 1 << 2]) + b"ab" + bytes([(8 - 4) << 2 | 1, 2])
    assert decompress(block, 10) == b"ab" * 5


def test_a_copy_with_a_long_offset() -> None:
    block = bytes([5, 2 << 2]) + b"abc" + bytes([(2 - 1) << 2 | 2, 3, 0])
    assert decompress(block, 5) == b"abcab"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (bytes([3, 2 << 2]) + b"ab", "A snappy block is cut off"),
        (bytes([4, 1 << 2]) + b"ab", "A snappy block of 2 bytes should have 4"),
        (bytes([4, 0, 97, 1, 9]), "copies from 9 bytes back of 1"),
    ],
)
def test_damage(block: bytes, message: str) -> None:
    with pytest.raises(DataLossError, match=message):
        decompress(block, 100)


def test_a_limit() -> None:
    with pytest.raises(ResourceExhaustedError, match="A block of 9 bytes, at most 8 are allowed"):
        decompress(compress(b"123456789"), 8)


def test_frames() -> None:
    data = compress_framed(b"one") + compress_framed(b"two")
    assert decompress_framed(data, 100) == b"onetwo"
    with pytest.raises(DataLossError, match="A snappy file is cut off"):
        decompress_framed(data[:-1], 100)
