"""Sizes of tensors, from which kernels compute what they need."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.resources.tensor_list import TensorList
from runtime.kernels.memory_sizes import (
    STRING,
    broadcast_elements,
    broadcast_text,
    dense,
    largest_in,
    listed_items,
    longest_in,
    nonzero_in,
    numbers_in,
    size_of,
    text_in,
    total_in,
    volume,
)

WORDS = np.array([b"a", b"bcd"], object)


def test_a_negative_size_is_no_volume():
    assert volume([3, -1]) == 0
    assert dense([1 << 40, 1 << 20], np.float32) == 1 << 62


def test_a_shape_beyond_int64_has_no_volume():
    with pytest.raises(InvalidArgumentError, match="more than"):
        volume([1 << 40, 1 << 30])


def test_numbers_are_counted_with_their_claimed_shape():
    assert size_of(np.broadcast_to(np.float32(1), (1 << 20, 1 << 20))) == 1 << 42
    assert size_of(np.int64(3), np.zeros((2, 3), np.int8)) == 14


@pytest.mark.parametrize(
    ("value", "text"),
    [(WORDS, 4), (np.array(b"xyz", object), 3), (b"xyz", 3), (np.zeros(3), 0), (None, 0)],
)
def test_the_text_of_strings_is_counted_in_every_form(value: object, text: int):
    assert text_in(value) == text


def test_repeated_strings_are_looked_at_once_and_counted_each_time():
    many = np.broadcast_to(WORDS, (1 << 40, 2))
    assert text_in(many) == 4 << 40
    assert size_of(many) == (4 + 2 * (8 + STRING)) << 40
    assert longest_in(many) == 3


def test_values_of_repeated_numbers_are_looked_at_once():
    many = np.broadcast_to(np.array([0, 5, -7]), (1 << 40, 3))
    assert (largest_in(many), nonzero_in(many), total_in(many)) == (5, 2 << 40, 5 << 40)


def test_a_long_tensor_is_not_read_as_a_shape():
    assert numbers_in(np.arange(3)) == [0, 1, 2]
    assert numbers_in(np.zeros(1000, np.int32)) == []
    assert numbers_in(WORDS) == []


def test_shapes_that_do_not_broadcast_have_no_elements():
    assert broadcast_elements(np.zeros((1 << 10, 1)), np.zeros(1 << 10)) == 1 << 20
    assert broadcast_elements(np.zeros(2), np.zeros(3)) == 0


def test_joined_strings_have_the_text_of_both_sides():
    joined = broadcast_text(WORDS[:, np.newaxis], np.array([b"12", b"3"], object))
    assert joined >= 4 * 2 + 3 * 2 + 4 * STRING


def test_a_list_tells_the_shape_of_its_elements():
    array = np.zeros((2, 5), np.float32)
    assert listed_items(TensorList(DataType.FLOAT, (-1, 5), [None, array])) == (2, (2, 5), 4)
    assert listed_items(TensorList(DataType.FLOAT, (3, 5), [None])) == (1, (3, 5), 4)
    assert listed_items(array) == (0, (), 0)
