"""Convolution and image kernels where TensorFlow's CPU kernels give no answer to compare with."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.kernels.image.image_decode import decode_gif, decode_png
from runtime.kernels.nn.convolution import conv2d, depthwise_conv2d_native
from runtime.kernels.nn.convolution_gradients import conv2d_backprop_input
from runtime.kernels.nn.pooling import avg_pool, max_pool
from runtime.kernels.nn.pooling_gradients import max_pool_grad_with_argmax

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 7, 4)).astype(np.float32)
FILTER = RNG.normal(size=(3, 3, 4, 5)).astype(np.float32)
CONVOLUTION: dict[str, Any] = {
    "strides": (1, 1, 1, 1), "padding": "SAME", "explicit_paddings": (),
    "dilations": (1, 1, 1, 1), "data_format": "NHWC",
}  # fmt: skip


def channels_first(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def test_convolution_accepts_channels_first() -> None:
    first = {**CONVOLUTION, "strides": (1, 1, 2, 3), "data_format": "NCHW"}
    last = {**CONVOLUTION, "strides": (1, 2, 3, 1)}
    got = conv2d(channels_first(X), FILTER, **first)
    np.testing.assert_array_equal(got, channels_first(conv2d(X, FILTER, **last)))


@pytest.mark.parametrize("pool", [avg_pool, max_pool])
def test_pooling_accepts_channels_first(pool: Any) -> None:
    extra = {"explicit_paddings": ()} if pool is max_pool else {}
    first = pool(
        channels_first(X), ksize=(1, 1, 2, 3), strides=(1, 1, 2, 1), padding="SAME",
        data_format="NCHW", **extra,
    )  # fmt: skip
    last = pool(
        X, ksize=(1, 2, 3, 1), strides=(1, 2, 1, 1), padding="SAME", data_format="NHWC", **extra
    )
    np.testing.assert_array_equal(first, channels_first(last))


@pytest.mark.parametrize("height", [6, 30])  # few rows and many take different paths
def test_depthwise_convolution_accepts_channels_first(height: int) -> None:
    x = RNG.normal(size=(2, height, 7, 4)).astype(np.float32)
    filter = RNG.normal(size=(3, 3, 4, 1)).astype(np.float32)
    valid = {**CONVOLUTION, "padding": "VALID"}
    got = depthwise_conv2d_native(channels_first(x), filter, **{**valid, "data_format": "NCHW"})
    np.testing.assert_array_equal(got, channels_first(depthwise_conv2d_native(x, filter, **valid)))


def test_depthwise_convolution_dilates_as_a_sparse_filter_would() -> None:
    filter = RNG.normal(size=(3, 3, 4, 2)).astype(np.float32)
    spread = np.zeros((5, 5, 4, 2), np.float32)
    spread[::2, ::2] = filter
    dilated = depthwise_conv2d_native(X, filter, **{**CONVOLUTION, "dilations": (1, 2, 2, 1)})
    plain = depthwise_conv2d_native(X, spread, **CONVOLUTION)
    np.testing.assert_allclose(dilated, plain, rtol=1e-5, atol=1e-5)


def test_convolution_refuses_a_padding_that_takes_too_much_memory() -> None:
    huge = {**CONVOLUTION, "padding": "EXPLICIT"}
    huge["explicit_paddings"] = (0, 0, 1 << 40, 0, 0, 0, 0, 0)
    with pytest.raises(ResourceExhaustedError, match="OOM when allocating"):
        conv2d(X, FILTER, **huge)


def test_transposed_convolution_refuses_a_zero_stride() -> None:
    zero = {**CONVOLUTION, "strides": (1, 0, 1, 1)}
    with pytest.raises(InvalidArgumentError, match="stride must be >= 1, but got 0"):
        conv2d_backprop_input(np.array([2, 6, 7, 4]), FILTER, X, **zero)


def test_argmax_outside_of_the_image_is_refused() -> None:
    attrs: dict[str, Any] = {
        "ksize": (1, 1, 2, 1), "strides": (1, 1, 2, 1), "padding": "SAME",
        "include_batch_in_index": False,
    }  # fmt: skip
    gradient = np.ones((1, 1, 2, 1), np.float32)
    argmax = np.array([0, 7]).reshape(1, 1, 2, 1)
    with pytest.raises(InvalidArgumentError, match="argmax holds 7, which is outside"):
        max_pool_grad_with_argmax(np.zeros((1, 1, 4, 1), np.float32), gradient, argmax, **attrs)


def test_a_window_far_larger_than_the_input_costs_no_more_than_the_input() -> None:
    pooled = max_pool(
        X, ksize=(1, 1 << 40, 1 << 40, 1), strides=(1, 1, 1, 1), padding="SAME",
        explicit_paddings=(), data_format="NHWC",
    )  # fmt: skip
    np.testing.assert_array_equal(pooled, np.broadcast_to(X.max((1, 2), keepdims=True), X.shape))


def png_header(width: int, height: int) -> bytes:
    """A PNG file that claims a size and holds no pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = b""
    for body in (b"IHDR" + header, b"IDAT", b"IEND"):
        chunks += struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return b"\x89PNG\r\n\x1a\n" + chunks


@pytest.mark.parametrize("side", [9_000, 20_000])
def test_image_beyond_the_pixel_limit_is_refused_unread(side: int) -> None:
    contents = np.array(png_header(side, side), object)
    with pytest.raises(ResourceExhaustedError, match="exceeds"):
        decode_png(contents, channels=3, dtype=DataType.UINT8)


def test_frames_of_an_animation_count_towards_the_pixel_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames = [Image.new("RGB", (4, 4), (shade, 0, 0)) for shade in range(0, 250, 50)]
    target = io.BytesIO()
    frames[0].save(target, "GIF", save_all=True, append_images=frames[1:])
    contents = np.array(target.getvalue(), object)
    assert decode_gif(contents).shape == (5, 4, 4, 3)
    monkeypatch.setattr("runtime.kernels.image.image_decode.MAX_PIXELS", 3 * 16)
    with pytest.raises(ResourceExhaustedError, match="GIF of 4 or more frames"):
        decode_gif(contents)
