"""Bytes of strings, parts of them, and code points in bits."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.framework.string_tensor import string_tensor
from runtime.op_packages.text.byte_splits import (
    byte_split_by_offsets,
    byte_split_with_offsets,
    utf8_binarize,
)


def test_bytes_and_their_places() -> None:
    found, splits, starts, ends = byte_split_with_offsets(string_tensor([b"ab", b"", b"\xff"]))
    assert found.tolist() == [97, 98, 255]
    assert splits.tolist() == [0, 2, 2, 3]
    assert (starts.tolist(), ends.tolist()) == ([0, 1, 0], [1, 2, 1])
    assert (found.dtype, splits.dtype, starts.dtype) == (np.uint8, np.int64, np.int32)


def parts(starts: list[int], ends: list[int], splits: list[int]) -> list[bytes]:
    offsets = np.array(starts, np.int32), np.array(ends, np.int32), np.array(splits, np.int64)
    found: list[bytes] = byte_split_by_offsets(string_tensor([b"hello", b"x"]), *offsets)[
        0
    ].tolist()
    return found


def test_parts_of_strings() -> None:
    assert parts([0, 2, 1], [2, 5, 1], [0, 2, 3]) == [b"he", b"llo", b""]


@pytest.mark.parametrize(
    ("starts", "ends", "splits", "message"),
    [
        ([6], [6], [0, 1, 1], "Start offsets out of range"),
        ([0], [-1], [0, 1, 1], "End offsets out of range"),
        ([2], [1], [0, 1, 1], "Start offset after end offset"),
        ([0], [1], [0, 1], "2 strings need 3 row splits"),
        ([0], [1], [0, 2, 2], "row_splits must be in"),
        ([0], [1], [0, 1, 0], "must not decrease"),
    ],
)
def test_offsets_that_are_not_in_the_strings(
    starts: list[int], ends: list[int], splits: list[int], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        parts(starts, ends, splits)


def test_bits_of_code_points() -> None:
    found = utf8_binarize(
        string_tensor([b"\x05", b"\xff\x01\x01"]),
        word_length=2,
        bits_per_char=3,
        replacement_char=6,
    )
    assert found.dtype == np.float32
    assert found.tolist() == [[1, 0, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0]]


def test_arguments_of_binarize() -> None:
    with pytest.raises(FailedPreconditionError, match="rank 1"):
        utf8_binarize(np.array(b"a", object), word_length=1, bits_per_char=1, replacement_char=0)
    with pytest.raises(InvalidArgumentError, match="must not be negative"):
        utf8_binarize(string_tensor([]), word_length=-1, bits_per_char=1, replacement_char=0)
