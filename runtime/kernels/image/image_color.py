"""Conversion between RGB and HSV, and adjustment of contrast, hue and saturation.

TF: tensorflow/core/kernels/image/colorspace_op.h, adjust_contrast_op.cc, adjust_hue_op.cc,
adjust_saturation_op.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.foundation.intra_op_pool import shard
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.math.accumulation import widen
from runtime.kernels.math.element_blocks import THREADED_BLOCK, block_size, choose

PIXEL_NANOSECONDS = 40  # estimated time to convert one pixel from RGB to HSV and back


def rgb_to_hsv(images: np.ndarray) -> np.ndarray:
    """RGBToHSV: convert RGB pixels `[…, 3]` to hue, saturation and value, each in [0, 1]."""
    _check_pixels(images)
    return _in_pixel_blocks(images, _rgb_to_hsv)


def hsv_to_rgb(images: np.ndarray) -> np.ndarray:
    """HSVToRGB: convert pixels of hue, saturation and value `[…, 3]` to RGB."""
    _check_pixels(images)
    return _in_pixel_blocks(images, _hsv_to_rgb)


def _in_pixel_blocks(
    images: np.ndarray, function: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Apply `function` to the pixels of `images`; return its results in the same shape and dtype.

    The argument of `function` is a block of pixels `[n, 3]` in the accumulation dtype.
    """
    pixels = images.reshape(-1, 3)
    result = np.empty(pixels.shape, images.dtype)
    size = max(1, block_size(images.size) // 4)

    def work(start: int, limit: int) -> None:
        for first in range(start, limit, size):
            part = slice(first, min(first + size, limit))
            result[part] = function(widen(pixels[part]))

    shard(len(pixels), PIXEL_NANOSECONDS, work, THREADED_BLOCK // 4)
    return result.reshape(images.shape)


def _check_pixels(images: np.ndarray) -> None:
    if images.ndim < 1:
        raise InvalidArgumentError(f"input must be at least 1D{shape_text(images.shape)}")
    if images.shape[-1] != 3:
        raise FailedPreconditionError(
            f"input must have 3 channels but input only has {images.shape[-1]} channels."
        )


def _rgb_to_hsv(rgb: np.ndarray) -> np.ndarray:
    red, green, blue = np.ascontiguousarray(rgb.T)
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    number = rgb.dtype.type
    one, nothing = number(1), np.zeros_like(value)
    saturation = np.where(value > 0, spread / np.where(value > 0, value, one), number(0))
    norm = one / (number(6) * np.where(spread > 0, spread, one))
    hue = choose(
        red == value,
        norm * (green - blue),
        choose(
            green == value,
            norm * (blue - red) + number(2 / 6),
            norm * (red - green) + number(4 / 6),
        ),
    )
    hue = choose(spread > 0, hue, nothing)
    hue = choose(hue < 0, hue + one, hue)
    return np.stack([hue, saturation, value], axis=-1)


def _hsv_to_rgb(hsv: np.ndarray) -> np.ndarray:
    hue, saturation, value = np.ascontiguousarray(hsv.T)
    number = hsv.dtype.type
    sixths = hue * number(6)
    rgb = np.empty(hsv.shape, hsv.dtype)
    rest = number(1) - saturation
    for channel, pure in enumerate(
        (
            np.abs(sixths - number(3)) - number(1),
            number(2) - np.abs(sixths - number(2)),
            number(2) - np.abs(sixths - number(4)),
        )
    ):
        np.maximum(np.minimum(pure, number(1), out=pure), number(0), out=pure)
        pure *= saturation
        pure += rest
        pure *= value
        rgb[:, channel] = pure
    return rgb


def adjust_contrast_v2(images: np.ndarray, contrast_factor: np.ndarray) -> np.ndarray:
    """AdjustContrastv2: scale each pixel's difference from the mean of the channel in its image.

    `images` is `[…, h, w, c]`; `contrast_factor` is the scale.
    """
    _check_images(images)
    factor = _scalar("contrast_factor", contrast_factor)
    if images.size == 0:
        return images
    height, width, channels = images.shape[-3:]
    lines = widen(images).reshape(-1, height, width * channels)
    pixels = lines.reshape(len(lines), -1, channels)
    weights = np.full(height * width, 1 / (height * width), lines.dtype)
    mean = np.tile(np.matmul(weights, pixels), width)[:, None]
    result = np.subtract(lines, mean)
    result *= factor
    result += mean
    return result.reshape(images.shape).astype(images.dtype, copy=False)


def adjust_contrast(
    images: np.ndarray, contrast_factor: np.ndarray, min_value: np.ndarray, max_value: np.ndarray
) -> np.ndarray:
    """AdjustContrast: compute AdjustContrastv2 as float32, clipped to [min_value, max_value]."""
    low, high = _scalar("min_value", min_value), _scalar("max_value", max_value)
    adjusted = adjust_contrast_v2(images.astype(np.float64), contrast_factor).astype(np.float32)
    adjusted = np.where(high < adjusted, high, adjusted)  # a NaN bound does not clip
    return np.where(low > adjusted, low, adjusted)


def adjust_hue(images: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """AdjustHue: add `delta` to the hue of RGB pixels `[…, h, w, 3]`; hue is cyclic in [0, 1)."""
    _check_colours(images)
    amount = _scalar("delta", delta) * np.float32(SIXTHS)
    return _in_pixel_blocks(images, lambda pixels: _with_hue_shifted(pixels, amount))


SIXTHS = 6  # parts of the colour wheel; in each, red, green and blue have one order by size
# For each sixth (column): the channels of the largest, the middle and the smallest component.
_CHANNELS_BY_SIXTH = np.array([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2], [2, 2, 0, 0, 1, 1]])


def _with_hue_shifted(rgb: np.ndarray, amount: np.float32) -> np.ndarray:
    """Return pixels `[n, 3]` with `amount` sixths of the colour wheel added to their hue.

    The values of the largest and the smallest component do not change. Components may have any
    range.
    """
    red, green, blue = np.ascontiguousarray(rgb.T)
    smaller, larger = np.minimum(red, green), np.maximum(red, green)
    least, largest = np.minimum(smaller, blue), np.maximum(larger, blue)
    between = np.maximum(smaller, np.minimum(larger, blue))
    sixth = np.where(
        red < green,
        np.where(blue < red, 1, np.where(blue > green, 3, 2)),
        np.where(blue < green, 0, np.where(blue > red, 4, 5)),
    )
    spread = largest - least
    is_grey = spread == 0
    part = (between - least) / np.where(is_grey, np.float32(1), spread)
    hue = np.where(
        is_grey, np.float32(0), sixth.astype(np.float32) + _mirrored_in_odd_sixths(part, sixth)
    )
    hue = np.fmod(hue + amount, np.float32(SIXTHS))
    hue = np.where(hue < 0, hue + np.float32(SIXTHS), hue)
    hue = np.where(hue < SIXTHS, hue, np.float32(0))
    sixth = hue.astype(np.intp)
    between = least + _mirrored_in_odd_sixths(hue - sixth.astype(np.float32), sixth) * spread
    result = np.empty_like(rgb)
    rows = np.arange(len(rgb))
    for places, values in zip(_CHANNELS_BY_SIXTH, (largest, between, least), strict=True):
        result[rows, places[sixth]] = values
    return result


def _mirrored_in_odd_sixths(part: np.ndarray, sixth: np.ndarray) -> np.ndarray:
    """Return `1 - part` in odd sixths, where the middle component falls as the hue rises."""
    return np.where(sixth % 2 == 0, part, np.float32(1) - part)


def adjust_saturation(images: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """AdjustSaturation: multiply the saturation of RGB pixels `[…, h, w, 3]` by `scale`.

    The saturation is clipped to [0, 1].
    """

    def multiply(hsv: np.ndarray, amount: np.float32) -> None:
        hsv[..., 1] = np.clip(hsv[..., 1] * amount, 0, 1)

    return _in_hsv(images, "scale", scale, multiply)


def _in_hsv(
    images: np.ndarray,
    name: str,
    amount: np.ndarray,
    change: Callable[[np.ndarray, np.float32], None],
) -> np.ndarray:
    _check_colours(images)
    number = _scalar(name, amount)

    def changed(pixels: np.ndarray) -> np.ndarray:
        hsv = _rgb_to_hsv(pixels)
        change(hsv, number)
        return _hsv_to_rgb(hsv)

    return _in_pixel_blocks(images, changed)


def _check_colours(images: np.ndarray) -> None:
    _check_images(images)
    if images.shape[-1] != 3:
        raise InvalidArgumentError(
            f"input must have 3 channels but instead has {images.shape[-1]} channels."
        )


def _check_images(images: np.ndarray) -> None:
    if images.ndim < 3:
        raise InvalidArgumentError(
            f"input must be at least 3-D, got shape{shape_text(images.shape)}"
        )


def _scalar(name: str, tensor: np.ndarray) -> np.float32:
    if np.ndim(tensor):
        raise InvalidArgumentError(f"{name} must be scalar: {shape_text(np.shape(tensor))}")
    return np.float32(tensor)


_FLOAT = {"T": (DataType.FLOAT,)}

KERNELS = (
    KernelDef("AdjustContrast", adjust_contrast),
    KernelDef("AdjustContrastv2", adjust_contrast_v2, _FLOAT),
    KernelDef("AdjustHue", adjust_hue, _FLOAT),
    KernelDef("AdjustSaturation", adjust_saturation, _FLOAT),
    KernelDef("HSVToRGB", hsv_to_rgb, {"T": FLOAT_TYPES}),
    KernelDef("RGBToHSV", rgb_to_hsv, {"T": FLOAT_TYPES}),
)
