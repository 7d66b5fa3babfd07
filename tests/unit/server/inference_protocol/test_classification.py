"""The classification extension."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from runtime.errors import InvalidArgumentError
from server.inference_protocol.classification import classes


def test_the_highest_come_first_and_of_equal_ones_the_first() -> None:
    found = classes(np.array([1, 3, 3, -2], np.float32), 3, is_batch=False)
    assert found.tolist() == [b"3.000000:1", b"3.000000:2", b"1.000000:0"]


def test_each_row_of_a_batch_has_its_own() -> None:
    array = np.array([[0.5, 0.25], [1, 2]], ml_dtypes.bfloat16)
    assert classes(array, 1, is_batch=True).tolist() == [[b"0.500000:0"], [b"2.000000:1"]]
    assert classes(array, 1, is_batch=False).tolist() == [b"2.000000:3"]


def test_integers_are_exact_and_there_are_no_more_classes_than_elements() -> None:
    array = np.array([-128, 127, 0], np.int8)
    assert classes(array, 9, is_batch=False).tolist() == [b"127:1", b"0:2", b"-128:0"]
    array = np.array([2**64 - 1, 0], np.uint64)
    assert classes(array, 1, is_batch=False).tolist() == [b"18446744073709551615:0"]


def test_nothing_and_no_numbers() -> None:
    assert classes(np.zeros((0, 3), np.float32), 2, is_batch=True).shape == (0, 2)
    with pytest.raises(InvalidArgumentError, match="requires numbers"):
        classes(np.array([b"a"], object), 1, is_batch=False)
