"""The error functions in float32, against the same in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from runtime.kernels.math.error_functions import erf, erfc, erfinv, ndtri

NEAR_ONE = 1 - np.logspace(-7.2, -1, 5001)
BETWEEN = np.concatenate([np.linspace(-1, 1, 20001)[1:-1], NEAR_ONE, -NEAR_ONE])
PROBABILITIES = np.concatenate([np.linspace(0, 1, 20001)[1:-1], np.logspace(-37, -1, 5001)])


@pytest.mark.parametrize(("kernel", "numbers"), [(erfinv, BETWEEN), (ndtri, PROBABILITIES)])
def test_inverses_keep_the_digits_of_float32(kernel, numbers):
    narrow = numbers.astype(np.float32)
    with np.errstate(all="ignore"):
        want = kernel(narrow.astype(np.float64))
        got = kernel(narrow)
    assert got.dtype == np.float32
    far = np.abs(want) > 1e-4
    assert np.max(np.abs(got - want)[far] / np.abs(want)[far]) < 4e-7
    assert np.max(np.abs(got - want)[~far], initial=0) < 1e-10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverses_at_their_ends(dtype):
    infinity = math.inf
    with np.errstate(all="ignore"):
        assert erfinv(np.array([-1, 1, 0], dtype)).tolist() == [-infinity, infinity, 0]
        assert ndtri(np.array([0, 1, 0.5], dtype)).tolist() == [-infinity, infinity, 0]
        outside = [*erfinv(np.array([-2, 2, math.nan], dtype)), *ndtri(np.array([-1, 2], dtype))]
    assert np.isnan(outside).all()


@pytest.mark.parametrize("size", [1, 7, 100_001])
def test_erf_of_floats(size):
    numbers = np.linspace(-6, 6, size, dtype=np.float32)
    want = np.array([math.erf(each) for each in numbers.tolist()])
    assert np.max(np.abs(erf(numbers) - want)) < 2e-7
    complement = np.array([math.erfc(each) for each in numbers.tolist()])
    assert np.max(np.abs(erfc(numbers) - complement) / complement) < 1e-5


def test_erf_keeps_what_is_near_zero():
    tiny = np.array([1e-30, -1e-10, 0.0], np.float32)
    assert np.allclose(erf(tiny), tiny * (2 / math.sqrt(math.pi)), rtol=4e-7, atol=0)
