"""Relu6 of small and large tensors, which are computed by different ufuncs."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

from runtime.foundation.intra_op_pool import set_thread_width
from runtime.kernels.math.element_blocks import CLIP_FROM, LARGE, THREADED_BLOCK
from runtime.kernels.nn.activations import relu6, relu6_in_place

INTEGERS = (
    *(np.int8, np.int16, np.int32, np.int64),
    *(np.uint8, np.uint16, np.uint32, np.uint64),
)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
SPECIAL = np.array([-np.inf, -7.5, -0.0, 0, 1e-40, 5.9, 6, 6.1, np.inf, np.nan, -np.nan])
SHAPES = ((), (3,), (CLIP_FROM + 7,), (2, THREADED_BLOCK + 5), (LARGE + 3, 1))


@pytest.fixture(params=[1, 2])
def _threads(request: pytest.FixtureRequest) -> Iterator[None]:
    set_thread_width(request.param)
    yield
    set_thread_width(0)


def values(dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    if dtype in FLOATS:
        return np.resize(SPECIAL, shape).astype(dtype)
    return np.resize(np.array([100, 0, 5, -1, 6, -100, 7, 1]), shape).astype(dtype)


def assert_same_bits(got: np.ndarray, want: np.ndarray) -> None:
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.usefixtures("_threads")
def test_relu6_is_max_then_min_in_every_bit(dtype, shape):
    features = values(dtype, shape)
    want = np.minimum(np.maximum(features, dtype(0)), dtype(6))
    assert_same_bits(relu6(features), want)
    assert_same_bits(relu6(features.T), want.T)
    result = relu6_in_place(features)
    assert result is features
    assert_same_bits(result, want)


@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float32])
def test_relu6_of_a_view_with_gaps(dtype):
    whole = values(dtype, (4, CLIP_FROM))
    features = whole[:, ::2]
    want = np.minimum(np.maximum(features, dtype(0)), dtype(6))
    between = whole[:, 1::2].copy()
    assert_same_bits(relu6(features), want)
    assert_same_bits(relu6_in_place(features), want)
    assert_same_bits(whole[:, 1::2], between)


@pytest.mark.parametrize(("size", "calls"), [(CLIP_FROM, 1), (CLIP_FROM - 1, 0)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
def test_relu6_of_large_tensors_is_clipped(monkeypatch, dtype, size, calls):
    clip = mock.Mock(wraps=np.clip)
    monkeypatch.setattr(np, "clip", clip)
    relu6(np.ones(size, dtype))
    relu6_in_place(np.ones(size, dtype))
    assert clip.call_count == 2 * calls
