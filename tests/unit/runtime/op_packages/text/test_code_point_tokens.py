"""Tokens of code points, where the script changes or white space is."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.op_packages.text.code_point_tokens import (
    unicode_script_tokenize_with_offsets,
    whitespace_tokenize_with_offsets,
)


def points(text: str) -> np.ndarray:
    return np.array([ord(each) for each in text], np.int32)


def lists(arrays: tuple[np.ndarray, ...]) -> list[list[int]]:
    return [each.tolist() for each in arrays]


def test_scripts_end_tokens() -> None:
    found = unicode_script_tokenize_with_offsets(
        points("abцд é"), np.array([0, 6, 6]), Tsplits=DataType.INT64, keep_whitespace=False
    )
    text = [ord(each) for each in "abцдé"]
    assert lists(found) == [text, [0, 2, 4, 5], [0, 2, 5], [2, 4, 6], [0, 3, 3]]


def test_white_space_may_be_kept() -> None:
    found = unicode_script_tokenize_with_offsets(
        points("!  ?"), np.array([0, 4]), Tsplits=DataType.INT32, keep_whitespace=True
    )
    assert lists(found)[1:] == [[0, 1, 3, 4], [0, 1, 3], [1, 3, 4], [0, 3]]
    assert found[1].dtype == found[4].dtype == np.int32
    # without, the punctuation around white space is one token
    found = unicode_script_tokenize_with_offsets(
        points("!  ?"), np.array([0, 4]), Tsplits=DataType.INT64, keep_whitespace=False
    )
    assert lists(found)[1:] == [[0, 2], [0], [4], [0, 1]]


def test_what_is_no_code_point_is_a_token() -> None:
    values = np.array([65, -1, -2, 0x110000, 65], np.int32)
    found = unicode_script_tokenize_with_offsets(
        values, np.array([0, 5]), Tsplits=DataType.INT64, keep_whitespace=False
    )
    assert found[2].tolist() == [0, 1, 4]


def test_white_space_ends_tokens() -> None:
    found = whitespace_tokenize_with_offsets(
        points(" ab\u3000c  d"), np.array([0, 5, 8]), Tsplits=DataType.INT64
    )
    text = [ord(each) for each in "abcd"]
    assert lists(found) == [text, [0, 2, 3, 4], [1, 4, 2], [3, 5, 3], [0, 2, 3]]


@pytest.mark.parametrize("splits", [[], [0], [0, 0]])
def test_no_rows(splits: list[int]) -> None:
    found = whitespace_tokenize_with_offsets(
        points(""), np.array(splits, np.int64), Tsplits=DataType.INT64
    )
    assert lists(found) == [[], [0], [], [], [0] * len(splits)]


@pytest.mark.parametrize("splits", [[0, 9], [2, 1], [-1, 1]])
def test_rows_that_are_not_there(splits: list[int]) -> None:
    with pytest.raises(InvalidArgumentError, match="row_splits"):
        whitespace_tokenize_with_offsets(points("abc"), np.array(splits), Tsplits=DataType.INT64)
