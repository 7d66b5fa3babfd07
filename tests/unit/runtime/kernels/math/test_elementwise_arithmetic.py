"""ClipByValue of small and large tensors, which are computed by different ufuncs."""

from __future__ import annotations

from unittest import mock

import ml_dtypes
import numpy as np
import pytest

from runtime.kernels.math.element_blocks import CLIP_FROM
from runtime.kernels.math.elementwise_arithmetic import clip_by_value

SPECIAL = np.array([-np.inf, -7.5, -2, -0.0, 0, 1e-40, 3, 6.1, np.inf, np.nan, -np.nan])
FLOAT_BOUNDS = (
    *((-2, 3), (3, -2), (0, 6), (-0.0, 0.0), (0.0, -0.0), (-6, 0), (-np.inf, np.inf)),
    *((np.nan, 3), (-2, np.nan)),
)
INTEGER_BOUNDS = ((2, 6), (6, 2), (0, 0), (0, 100))


@pytest.mark.parametrize("size", [3, CLIP_FROM + 7])
@pytest.mark.parametrize(
    ("dtype", "bounds"),
    [
        *((np.float32, each) for each in FLOAT_BOUNDS),
        *((np.float64, each) for each in FLOAT_BOUNDS),
        *((np.float16, each) for each in FLOAT_BOUNDS),
        *((ml_dtypes.bfloat16, each) for each in FLOAT_BOUNDS),
        *((np.int8, each) for each in INTEGER_BOUNDS),
        *((np.uint16, each) for each in INTEGER_BOUNDS),
        *((np.int64, each) for each in INTEGER_BOUNDS),
    ],
)
def test_clip_by_value_is_min_then_max_in_every_bit(dtype, bounds, size):
    integers = np.array([100, 0, 5, -1, 6, -100, 7, 1])
    t = np.resize(integers if np.issubdtype(dtype, np.integer) else SPECIAL, size).astype(dtype)
    low, high = (np.array(each, dtype) for each in bounds)
    with np.errstate(all="ignore"):
        want = np.maximum(np.minimum(t, high), low)
        got = clip_by_value(t, low, high)
    assert got.dtype == want.dtype
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    ("size", "bounds", "calls"),
    [(CLIP_FROM, (-2, 3), 1), (CLIP_FROM - 1, (-2, 3), 0), (CLIP_FROM, (0, 3), 0)],
)
def test_large_tensors_are_clipped_in_one_pass(monkeypatch, size, bounds, calls):
    clip = mock.Mock(wraps=np.clip)
    monkeypatch.setattr(np, "clip", clip)
    low, high = (np.array(each, np.float32) for each in bounds)
    clip_by_value(np.ones(size, np.float32), low, high)
    assert clip.call_count == calls
