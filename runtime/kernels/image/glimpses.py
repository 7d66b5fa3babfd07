"""Glimpses: windows of images around given points; pixels outside the image are noise.

TF: tensorflow/core/kernels/image/attention_ops.cc
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text

Noise = Callable[[np.ndarray, tuple[int, ...]], np.ndarray]


def _zeros(image: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, image.dtype)


def _uniform_noise(image: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return noise of `shape`, uniform between the minimum and maximum of each image channel."""
    low, high = image.min((0, 1)), image.max((0, 1))
    return low + np.random.default_rng().random(shape, np.float32) * (high - low)


def _gaussian_noise(image: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return noise of `shape` with the mean, deviation and range of each image channel.

    All channels of a pixel use the same normal sample.
    """
    draws = np.random.default_rng().standard_normal((*shape[:2], 1), np.float32)
    noise = image.mean((0, 1)) + draws * image.std((0, 1))
    return np.clip(noise, image.min((0, 1)), image.max((0, 1)))


NOISES: dict[str, Noise] = {
    "": _gaussian_noise,
    "gaussian": _gaussian_noise,
    "uniform": _uniform_noise,
    "zero": _zeros,
}


def _corners_v1(
    offsets: np.ndarray, image: np.ndarray, window: np.ndarray, centered: bool, normalized: bool
) -> np.ndarray:
    """Return the first row and column of each window `[batch, 2]`; `offsets` are its centre."""
    corners = offsets * image if normalized else offsets
    if centered:
        corners = corners / 2 + image / 2
    return corners - window / 2


def _corners_v2(
    offsets: np.ndarray, image: np.ndarray, window: np.ndarray, centered: bool, normalized: bool
) -> np.ndarray:
    """Return the first row and column of each window `[batch, 2]`.

    `offsets` are this corner, or the window's centre if `normalized` and `centered` are true.
    """
    if not normalized:
        return offsets + image / 2 if centered else offsets
    if not centered:
        return offsets * image
    return _corners_v1(offsets, image, window, centered, normalized)


def _check_glimpses(
    input: np.ndarray, size: np.ndarray, offsets: np.ndarray, noise: str
) -> tuple[int, ...]:
    """Return the height and width of a window; raise InvalidArgumentError if an input is wrong."""
    if noise not in NOISES:
        raise InvalidArgumentError(
            f"The noise could only be uniform, gaussian, or zero, got{noise}"
        )
    if input.ndim != 4:
        raise InvalidArgumentError(
            "input must be 4-dimensional (batch_size, height, width, depth)"
            f"{shape_text(input.shape)}"
        )
    if size.shape != (2,):
        raise InvalidArgumentError(
            f"input must be a vector of size 2 (height, width){shape_text(size.shape)}"
        )
    if offsets.ndim != 2:
        raise InvalidArgumentError(f"input must be a matrix{shape_text(offsets.shape)}")
    if offsets.shape[0] != input.shape[0]:
        raise InvalidArgumentError(f"first dimension should be batch{shape_text(offsets.shape)}")
    if offsets.shape[1] != 2:
        raise InvalidArgumentError(
            f"second dimension should be of size 2{shape_text(offsets.shape)}"
        )
    if size.min() < 0:
        raise InvalidArgumentError(f"Expected a non-negative size, got {size.min()}")
    return tuple(size.tolist())


def _glimpse(
    image: np.ndarray, corner: np.ndarray, window: tuple[int, ...], noise: Noise
) -> np.ndarray:
    sizes = image.shape[:2]
    # Starts are clipped to fit an integer. A window outside the image remains outside it.
    limits = [(-length, size) for length, size in zip(window, sizes, strict=True)]
    starts = [
        int(np.clip(np.nan_to_num(first, nan=high), low, high))
        for first, (low, high) in zip(corner, limits, strict=True)
    ]
    source = tuple(
        slice(max(start, 0), max(min(start + length, size), 0))
        for start, length, size in zip(starts, window, sizes, strict=True)
    )
    inside = image[source]
    shape = (*window, image.shape[2])
    if inside.shape == shape:
        return inside
    result = noise(image, shape) if image.size else _zeros(image, shape)
    rows, columns = (max(-start, 0) for start in starts)
    result[rows : rows + inside.shape[0], columns : columns + inside.shape[1]] = inside
    return result


def _extract_glimpses(
    find_corners: Callable[..., np.ndarray],
    input: np.ndarray,
    size: np.ndarray,
    offsets: np.ndarray,
    *,
    centered: bool,
    normalized: bool,
    uniform_noise: bool,
    noise: str,
) -> np.ndarray:
    if uniform_noise and noise not in ("", "uniform"):
        raise InvalidArgumentError("The uniform_noise should not be True when noise is not uniform")
    window = _check_glimpses(input, size, offsets, noise)
    make_noise = _uniform_noise if uniform_noise else NOISES[noise]
    batch, height, width, depth = input.shape
    check_allocation((batch, *window, depth), input.dtype)
    image = np.array([height, width], np.float32)
    corners = find_corners(offsets, image, size.astype(np.float32), centered, normalized)
    result = np.empty((batch, *window, depth), input.dtype)
    for index in range(batch):
        check_task()
        result[index] = _glimpse(input[index], corners[index], window, make_noise)
    return result


extract_glimpse = functools.partial(_extract_glimpses, _corners_v1)
extract_glimpse_v2 = functools.partial(_extract_glimpses, _corners_v2)

KERNELS = (
    KernelDef("ExtractGlimpse", extract_glimpse),
    KernelDef("ExtractGlimpseV2", extract_glimpse_v2),
)
