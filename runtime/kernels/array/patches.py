"""Kernels that return windows of an image or volume as vectors.

The ops are ExtractImagePatches and ExtractVolumePatches.

TF: tensorflow/core/kernels/{extract_image_patches_op,extract_volume_patches_op}.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text


def extract_image_patches(
    images: np.ndarray,
    *,
    ksizes: tuple[int, ...],
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    padding: str,
) -> np.ndarray:
    """ExtractImagePatches: return the windows of `images` [b, h, w, c] as vectors.

    Returns [b, rows, columns, kh·kw·c]; positions outside of the image are zero.
    """
    for name, values in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
        _check_spatial(name, values)
    if images.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(images.shape)}")
    return patches(images, ksizes[1:-1], strides[1:-1], rates[1:-1], padding)


def extract_volume_patches(
    volumes: np.ndarray, *, ksizes: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> np.ndarray:
    """ExtractVolumePatches: return the windows of `volumes` [b, d, h, w, c] as vectors.

    Returns [b, planes, rows, columns, kd·kh·kw·c]; positions outside of the volume are zero.
    """
    for name, values in (("ksizes", ksizes), ("strides", strides)):
        _check_spatial(name, values)
    if volumes.ndim != 5:
        raise InvalidArgumentError(f"input must be 5-dimensional{shape_text(volumes.shape)}")
    return patches(volumes, ksizes[1:-1], strides[1:-1], (1, 1, 1), padding)


def _check_spatial(name: str, values: tuple[int, ...]) -> None:
    if values[0] != 1 or values[-1] != 1:
        raise UnimplementedError(f"Only support {name} across space.")
    if min(values) < 1:
        raise OutOfRangeError(f"{name} is out of range.")


def patches(
    value: np.ndarray,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    padding: str,
) -> np.ndarray:
    """Return the windows of `value` [b, S…, c] as vectors: `[b, counts…, sizes…·c]`.

    `sizes`, `strides` and `rates` have one entry per dimension in S. Positions outside of the
    tensor are zero.
    """
    batch, *spatial, depth = value.shape
    reach = [(size - 1) * rate + 1 for size, rate in zip(sizes, rates, strict=True)]
    counts, margins = [], []
    for length, window, stride in zip(spatial, reach, strides, strict=True):
        count, margin = _window_count(length, window, stride, padding)
        counts.append(count)
        margins.append(margin)
    result_shape = (batch, *counts, math.prod(sizes) * depth)
    check_allocation(result_shape, value.dtype)
    if not math.prod(result_shape):
        return np.empty(result_shape, value.dtype)
    padded = np.pad(value, [(0, 0), *margins, (0, 0)])
    axes = tuple(range(1, len(sizes) + 1))
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axes)
    chosen = (
        slice(None),
        *(slice(0, count * stride, stride) for count, stride in zip(counts, strides, strict=True)),
        slice(None),
        *(slice(None, None, rate) for rate in rates),
    )
    picked = windows[chosen]  # [b, counts…, c, sizes…]
    return np.moveaxis(picked, len(sizes) + 1, -1).reshape(result_shape)


def _window_count(
    length: int, window: int, stride: int, padding: str
) -> tuple[int, tuple[int, int]]:
    """Return (number of windows along a dimension, (zeros before, zeros after))."""
    if padding == "VALID":
        reach = length - window + stride
        count = -(-reach // stride) if reach < 0 else reach // stride  # C++ rounds toward zero
        if count < 0:
            raise InvalidArgumentError(
                f"Computed output size would be negative: {count} [input_size: {length}, "
                f"effective_filter_size: {window}, stride: {stride}]"
            )
        return count, (0, 0)
    count = -(-length // stride)
    missing = max(0, (count - 1) * stride + window - length)
    return count, (missing // 2, missing - missing // 2)


KERNELS = (
    KernelDef("ExtractImagePatches", extract_image_patches),
    KernelDef("ExtractVolumePatches", extract_volume_patches),
)
