"""Image resizing: bilinear, nearest, bicubic, area; and their gradients.

TF: tensorflow/core/kernels/image/resize_bilinear_op.cc, resize_nearest_neighbor_op.cc,
resize_bicubic_op.cc, resize_area_op.cc
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.intra_op_pool import shard
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES, REAL_NUMBER_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.image.resampling import (
    AreaTaps,
    Sampling,
    Taps,
    gradient_samplings,
    resize_samplings,
)
from runtime.kernels.math.accumulation import widen
from runtime.kernels.nn.convolution import tiles

LINES = 32  # output rows computed at once, so that they stay in a core's cache
TAP_NANOSECONDS = 2.0  # estimated time to multiply one input by a weight and add it to an output
CUBIC_TABLE_SIZE = 1 << 10  # number of tabulated positions between two inputs, as in TensorFlow


def resize_bilinear(
    images: np.ndarray, size: np.ndarray, *, align_corners: bool, half_pixel_centers: bool
) -> np.ndarray:
    """ResizeBilinear: resize `images` `[n, h, w, c]` to `size` by linear interpolation; float32."""
    rows, columns = resize_samplings(images, size, align_corners, half_pixel_centers)
    if (rows.outputs, columns.outputs) == images.shape[1:3]:
        return images.astype(np.float32)  # weights would turn infinities into NaN
    return _resample(images, rows.linear_taps(), columns.linear_taps())


def _resample(images: np.ndarray, rows: Taps, columns: Taps) -> np.ndarray:
    """Resample the rows of `images`, then the columns, and return float32.

    LINES output rows are computed at a time, on the threads of the step.
    """
    count, height, width, channels = images.shape
    lines = len(rows.indices)
    pixels = images.reshape(count, height, width * channels)
    result = np.empty((count, lines, len(columns.indices), channels), np.float32)
    flat = result.reshape(count, lines, len(columns.indices) * channels)
    numbers = columns.of_numbers(channels)

    def work(start: int, limit: int) -> None:
        for image, first, last in tiles(start, limit, lines, LINES):
            part = slice(first, last)
            used = rows.indices[part]
            low, high = int(used.min()), int(used.max())
            near = dataclasses.replace(rows, indices=used - low, weights=rows.weights[part])
            seen = pixels[image, low : high + 1].astype(np.float32, copy=False)
            flat[image, part] = numbers.apply(near.apply(seen, 0), 1)

    taps = rows.indices.shape[1] + columns.indices.shape[1]
    shard(count * lines, flat.shape[-1] * taps * TAP_NANOSECONDS, work)
    return result


def resize_nearest_neighbor(
    images: np.ndarray, size: np.ndarray, *, align_corners: bool, half_pixel_centers: bool
) -> np.ndarray:
    """ResizeNearestNeighbor: resize `images` `[n, h, w, c]` to `size`, keeping the dtype.

    Each output pixel is the nearest input pixel.
    """
    rows, columns = resize_samplings(images, size, align_corners, half_pixel_centers)
    return np.take(np.take(images, rows.nearest(), 1), columns.nearest(), 2)


def resize_bicubic(
    images: np.ndarray, size: np.ndarray, *, align_corners: bool, half_pixel_centers: bool
) -> np.ndarray:
    """ResizeBicubic: resize `images` `[n, h, w, c]` to `size` by cubic interpolation; float32."""
    rows, columns = resize_samplings(images, size, align_corners, half_pixel_centers)
    return _resample(images, cubic_taps(rows), cubic_taps(columns))


def cubic_taps(sampling: Sampling) -> Taps:
    """Return the four inputs around the position of each output, and their cubic weights."""
    positions = sampling.positions()
    floor = np.floor(positions).astype(np.int64)
    offset = np.rint((positions - floor) * np.float32(CUBIC_TABLE_SIZE)).astype(np.int64)
    near, far = _cubic_table(-0.5 if sampling.half_pixel_centers else -0.75)
    mirrored = CUBIC_TABLE_SIZE - offset
    weights = np.stack([far[offset], near[offset], near[mirrored], far[mirrored]], axis=1)
    wanted = floor[:, None] + np.arange(-1, 3)
    indices = np.clip(wanted, 0, sampling.inputs - 1)
    if sampling.half_pixel_centers:  # inputs outside of the image have no weight
        weights = np.where(indices == wanted, weights, np.float32(0))
        total = weights.sum(axis=1, keepdims=True)
        usable = np.abs(total) >= 1000 * np.finfo(np.float32).tiny
        weights = np.where(usable, weights / np.where(usable, total, np.float32(1)), weights)
    return Taps(indices, weights)


@functools.cache
def _cubic_table(a: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Keys's cubic kernel with parameter `a` at distances [0, 1], and at distances [1, 2].

    Each table has CUBIC_TABLE_SIZE + 1 entries.
    """
    x = np.arange(CUBIC_TABLE_SIZE + 1) / CUBIC_TABLE_SIZE
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return near.astype(np.float32), far.astype(np.float32)


def resize_area(images: np.ndarray, size: np.ndarray, *, align_corners: bool) -> np.ndarray:
    """ResizeArea: resize `images` `[n, h, w, c]` to `size`; float32.

    Each output pixel is the mean of the input area that it covers.
    """
    rows, columns = resize_samplings(images, size, align_corners, False)
    return _resample(images, _area_taps(rows), _area_taps(columns))


def _area_taps(sampling: Sampling) -> AreaTaps:
    scale = sampling.scale
    starts = np.arange(sampling.outputs, dtype=np.float32) * scale
    ends = np.arange(1, sampling.outputs + 1, dtype=np.float32) * scale
    first = np.floor(starts).astype(np.int64)
    count = int((np.ceil(ends).astype(np.int64) - first).max())
    check_allocation((sampling.outputs, max(count, 1)), np.int64)
    wanted = first[:, None] + np.arange(max(count, 1))
    covered = np.minimum(wanted + 1, ends[:, None]) - np.maximum(wanted, starts[:, None])
    weights = np.maximum(covered, 0) / scale
    return AreaTaps(np.clip(wanted, 0, sampling.inputs - 1), weights.astype(np.float32))


def resize_bilinear_grad(
    grads: np.ndarray,
    original_image: np.ndarray,
    *,
    align_corners: bool,
    half_pixel_centers: bool,
) -> np.ndarray:
    """ResizeBilinearGrad: return the gradient of ResizeBilinear with respect to its images.

    It has the shape and dtype of `original_image`.
    """
    rows, columns = gradient_samplings(grads, original_image, align_corners, half_pixel_centers)
    return _resample_grad(grads, original_image, rows.linear_taps(), columns.linear_taps())


def resize_bicubic_grad(
    grads: np.ndarray,
    original_image: np.ndarray,
    *,
    align_corners: bool,
    half_pixel_centers: bool,
) -> np.ndarray:
    """ResizeBicubicGrad: return the gradient of ResizeBicubic with respect to its images.

    It has the shape and dtype of `original_image`.
    """
    rows, columns = gradient_samplings(grads, original_image, align_corners, half_pixel_centers)
    return _resample_grad(grads, original_image, cubic_taps(rows), cubic_taps(columns))


def _resample_grad(
    grads: np.ndarray, original: np.ndarray, rows: Taps, columns: Taps
) -> np.ndarray:
    wide = grads.astype(widen(original[:0]).dtype, copy=False)
    spread = columns.apply_transposed(
        rows.apply_transposed(wide, 1, original.shape[1]), 2, original.shape[2]
    )
    return spread.astype(original.dtype, copy=False)


def resize_nearest_neighbor_grad(
    grads: np.ndarray, size: np.ndarray, *, align_corners: bool, half_pixel_centers: bool
) -> np.ndarray:
    """ResizeNearestNeighborGrad: return the gradient of ResizeNearestNeighbor for its images.

    `size` is their height and width; the gradient is `[n, *size, c]`.
    """
    if grads.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(grads.shape)}")
    if np.ndim(size) != 1:
        raise InvalidArgumentError(f"shape_t must be 1-dimensional{shape_text(np.shape(size))}")
    if np.size(size) != 2:
        raise InvalidArgumentError(f"shape_t must have two elements{shape_text(np.shape(size))}")
    height, width = (int(each) for each in size)
    if height <= 0 or width <= 0:
        raise InvalidArgumentError("shape_t's elements must be positive")
    shape = (grads.shape[0], height, width, grads.shape[3])
    check_allocation(shape, np.float64)
    if not grads.size:
        return np.zeros(shape, grads.dtype)
    rows = Sampling(height, grads.shape[1], align_corners, half_pixel_centers).nearest()
    columns = Sampling(width, grads.shape[2], align_corners, half_pixel_centers).nearest()
    wide = widen(grads)
    result = wide
    for axis, places, total in ((1, rows, height), (2, columns, width)):
        ones = np.ones((len(places), 1), np.float32)
        result = Taps(places[:, None], ones).apply_transposed(result, axis, total)
    return result.astype(grads.dtype, copy=False)


_REAL = {"T": REAL_NUMBER_TYPES}

KERNELS = (
    KernelDef("ResizeArea", resize_area, _REAL),
    KernelDef("ResizeBicubic", resize_bicubic, _REAL),
    KernelDef("ResizeBicubicGrad", resize_bicubic_grad, {"T": (DataType.FLOAT, DataType.DOUBLE)}),
    KernelDef("ResizeBilinear", resize_bilinear, _REAL),
    KernelDef("ResizeBilinearGrad", resize_bilinear_grad, {"T": FLOAT_TYPES}),
    KernelDef("ResizeNearestNeighbor", resize_nearest_neighbor, _REAL),
    KernelDef("ResizeNearestNeighborGrad", resize_nearest_neighbor_grad, _REAL),
)
