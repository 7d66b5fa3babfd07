"""Offsets and tags that do not fit together are refused; types of any bytes are kept."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.op_packages.text.boise_tags import boise_tags_to_offsets, offsets_to_boise_tags

BEGINS, ENDS = np.array([0, 3, 6], np.int32), np.array([2, 5, 8], np.int32)
SPLITS = np.array([0, 3], np.int64)
ONE = np.array([0, 1], np.int64)
TYPE = np.array(["é\0".encode()], object)


def tags(first: int, last: int, splits: np.ndarray = SPLITS, strict: bool = False) -> list[bytes]:
    span = np.array([first], np.int32), np.array([last], np.int32), TYPE
    rows = SPLITS, splits, ONE, ONE, ONE
    found = offsets_to_boise_tags(BEGINS, ENDS, *span, *rows, np.asarray(strict))
    return list(found.tolist())


def test_a_type_of_any_bytes() -> None:
    found = tags(0, 8)
    assert found == [prefix + TYPE[0] for prefix in (b"B-", b"I-", b"E-")]
    back = boise_tags_to_offsets(BEGINS, ENDS, np.array(found, object), SPLITS, SPLITS, SPLITS)
    assert [each.tolist() for each in back] == [[0], [8], [b"\xc3\xa9"], [0, 1]]  # up to its zero


def test_a_boundary_in_a_token() -> None:
    assert tags(1, 5) == [b"B-" + TYPE[0], b"E-" + TYPE[0], b"O"]
    assert tags(1, 5, strict=True) == [b"O", b"E-" + TYPE[0], b"O"]


def test_rows_that_do_not_agree_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Token offsets must have the same size"):
        tags(0, 8, splits=np.array([0, 2], np.int64))
    with pytest.raises(InvalidArgumentError, match="Token row splits must ascend"):
        wrong = np.array([0, 7], np.int64)
        boise_tags_to_offsets(BEGINS, ENDS, np.full(3, b"O", object), wrong, wrong, wrong)
