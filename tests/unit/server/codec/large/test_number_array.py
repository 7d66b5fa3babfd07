"""Numbers as arrays of the type that the graph has."""

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from server.codec.large.number_array import NumberArray, narrowed, stacked

INT64 = np.dtype(np.int64)


def numbers(*chunks, shape=None):
    arrays = [np.array(chunk) for chunk in chunks]
    return NumberArray(arrays, shape or (sum(map(len, chunks)),))


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 127], np.int8),
        ([-129, 0], np.int16),
        ([1 << 15], np.int32),
        ([1 << 31], np.int64),
        ([-(1 << 63), (1 << 63) - 1], np.int64),
    ],
)
def test_integers_are_kept_in_the_narrowest_type(values, dtype):
    narrow = narrowed(np.array(values, np.int64))
    assert narrow.dtype == dtype
    assert narrow.tolist() == values


def test_integers_are_exact():
    big = (1 << 63) - 1
    array = numbers([1, 2], [big], shape=(3, 1)).integers(INT64, -(1 << 63), big)
    assert array.dtype == np.int64
    assert array.tolist() == [[1], [2], [big]]


def test_integers_wrap_but_must_be_in_range():
    array = numbers([300, -1]).integers(np.dtype(np.uint8), -1000, 1000)
    assert array.tolist() == [44, 255]
    assert numbers([300, -1]).integers(INT64, 0, 300) is None
    assert numbers([301], [1]).integers(INT64, -1, 300) is None


def test_a_fraction_is_no_integer():
    assert numbers([1], [1.0]).integers(INT64, 0, 10) is None


def test_floats_are_rounded_twice_and_may_become_infinite():
    once = (1 << 24) + 1
    array = numbers([0.5, 1e300], [once], shape=(1, 3)).floats(np.dtype(np.float32))
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, [[0.5, np.inf, np.float32(float(once))]])


def test_rows_are_cut_from_the_chunks():
    rows = numbers([1, 2, 3], [4.5], [5, 6], shape=(3, 2)).rows(3)
    assert [row.shape for row in rows] == [(2,)] * 3
    assert [row.floats(np.dtype(np.float64)).tolist() for row in rows] == [[1, 2], [3, 4.5], [5, 6]]
    assert rows[0].integers(INT64, 0, 9) is not None  # the fraction is elsewhere


@pytest.mark.parametrize(("shape", "count"), [((4,), 4), ((2, 2), 3)])
def test_rows_must_be_lists_in_the_right_number(shape, count):
    message = f"Expected {count} lists, got numbers of shape "
    with pytest.raises(InvalidArgumentError, match=message):
        numbers([1, 2, 3, 4], shape=shape).rows(count)


def test_stacked():
    both = stacked([numbers([1, 2]), numbers([3], [4])])
    assert both is not None
    assert both.integers(INT64, 0, 9).tolist() == [[1, 2], [3, 4]]
    assert stacked([numbers([1, 2]), numbers([3])]) is None
    assert stacked([numbers([1, 2]), [3, 4]]) is None


def test_the_begin_of_the_numbers_is_shown():
    assert repr(numbers([1, 2], [0.5], shape=(3, 1))) == "[1, 2]"
    assert repr(numbers([0.25] * 1000)) == repr([0.25] * 64)
