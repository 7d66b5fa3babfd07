"""Checksums of large data, in pieces between which other threads run."""

from __future__ import annotations

import sys

import google_crc32c
import numpy as np
import pytest

from runtime.framework.io import masked_crc32c
from runtime.framework.io.masked_crc32c import crc32c, extend_without_gil

LARGEST_PIECE = 1 << 20  # bytes; the extension takes 0.2 ms for them, and keeps the GIL


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is given to the extension, without the library."""
    monkeypatch.setattr(masked_crc32c, "extend_without_gil", lambda: None)
    sizes: list[int] = []
    extend = google_crc32c.extend

    def noted(crc: int, data: bytes | np.ndarray) -> int:
        sizes.append(len(data))
        return int(extend(crc, data))

    monkeypatch.setattr(google_crc32c, "extend", noted)
    return sizes


@pytest.mark.parametrize("size", [0, 1, LARGEST_PIECE, 3 * LARGEST_PIECE + 1])
def test_the_checksum_of_any_size_is_that_of_the_whole(size: int) -> None:
    data = np.random.default_rng(1).integers(0, 256, size, np.uint8)
    assert crc32c(data) == crc32c(data.tobytes()) == google_crc32c.value(data.tobytes())


def test_it_continues_the_checksum_of_what_precedes() -> None:
    data = bytes(range(256)) * 8192
    assert crc32c(data[999:], crc32c(data[:999])) == crc32c(data)


@pytest.mark.skipif(sys.platform != "linux", reason="the wheels of Linux bring the library")
def test_large_data_are_checked_without_the_gil(monkeypatch: pytest.MonkeyPatch) -> None:
    assert extend_without_gil() is not None
    data = bytes(range(256)) * 8192
    expected = google_crc32c.value(data)
    monkeypatch.setattr(google_crc32c, "extend", None)
    assert crc32c(data) == crc32c(np.frombuffer(data, np.uint8)) == expected


def test_no_call_of_the_extension_takes_long(pieces: list[int]) -> None:
    size = 5 * LARGEST_PIECE + 3
    crc32c(bytes(size))
    crc32c(np.zeros(size, np.uint8))
    assert sum(pieces) == 2 * size
    assert max(pieces) <= LARGEST_PIECE
