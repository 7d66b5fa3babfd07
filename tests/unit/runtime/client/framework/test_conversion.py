"""Conversion of Python values into constants."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.client import (
    bfloat16,
    bool,
    complex128,
    constant,
    convert_to_tensor,
    float32,
    float64,
    int32,
    int64,
    ops,
    string,
    uint8,
)
from tests.unit.runtime.client.evaluation import value_of


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, int32), (1 << 40, int64), (1.5, float32), ([1, 2.5], float32), (True, bool),
        ("a", string), (b"a", string), (1j, complex128), ([], float32), (np.float64(1), float64),
        (np.arange(2), int64), (np.array(["a"]), string),
    ],
)  # fmt: skip
def test_types_of_constants(graph, value, dtype):
    assert constant(value).dtype is dtype


def test_constants_of_a_given_type_and_shape(graph):
    assert value_of(constant(300, uint8)) == 44
    assert value_of(constant(1, shape=[3])).tolist() == [1, 1, 1]
    assert value_of(constant([1, 2, 3, 4], float64, [2, 2])).tolist() == [[1, 2], [3, 4]]
    assert value_of(constant([1.5], bfloat16)).dtype.name == "bfloat16"
    assert value_of(constant([1, 2], shape=[2, 2])).tolist() == [[1, 2], [2, 2]]  # 2 is repeated
    with pytest.raises(
        ValueError, match=r"Too many elements provided\. Takes at most 2, but got 3"
    ):
        constant([1, 2, 3], shape=[2])
    assert value_of(constant([b"a\0", "é"])).tolist() == [b"a\0", "é".encode()]


def test_lists_with_tensors_are_packed(graph):
    a = constant(1.0)
    assert value_of(convert_to_tensor([a, [2.0][0], 3])).tolist() == [1, 2, 3]
    assert value_of(ops.Sum([[a, 1], [2, a]], 0)).tolist() == [3, 2]
