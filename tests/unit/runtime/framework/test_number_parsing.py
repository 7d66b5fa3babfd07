"""Numbers in text: plain ones are parsed together, others one by one, with equal results."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.framework.dtypes import DataType
from runtime.framework.number_parsing import parse_number, parse_plain_numbers

PLAIN = {
    DataType.FLOAT: [b"1", b"-2.5", b"+3.", b"1e10", b"4E-3", b"007", b".5", b"1234567890123456"],
    DataType.DOUBLE: [b"0.1", b"1234567.12345678", b"-1e-30"],
    DataType.INT32: [b"0", b"-2147483648", b"+2147483647", b"0042"],
    DataType.INT64: [b"999999999999999999", b"-5"],
}


@pytest.mark.parametrize("data_type", PLAIN)
def test_plain_numbers_at_once(data_type: DataType) -> None:
    texts = PLAIN[data_type]
    numbers = parse_plain_numbers(texts, data_type)
    assert numbers is not None
    assert numbers.dtype == data_type.numpy
    want = np.array([parse_number(text, data_type) for text in texts], data_type.numpy)
    assert numbers.tolist() == want.tolist()


@pytest.mark.parametrize("text", [b"", b" 1", b"1 ", b"1_0", b"nan", b"0x1", b"1\n2", b"--1", b"+"])
@pytest.mark.parametrize("data_type", [DataType.FLOAT, DataType.INT32])
def test_others_are_left_to_the_slow_way(text: bytes, data_type: DataType) -> None:
    assert parse_plain_numbers([b"1", text], data_type) is None


@pytest.mark.parametrize("text", [b"2147483648", b"-2147483649", b"1.5"])
def test_integers_that_do_not_fit_are_left_too(text: bytes) -> None:
    assert parse_plain_numbers([text], DataType.INT32) is None


def test_no_numbers() -> None:
    numbers = parse_plain_numbers([], DataType.FLOAT)
    assert numbers is not None
    assert numbers.shape == (0,)
