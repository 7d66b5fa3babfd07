"""2-D convolutions, dense and depthwise, and the arithmetic for any number of dimensions.

A convolution is computed as matrix products: windows of the input are copied to rows, in tiles that
fit in the cache, and are multiplied by the filter as a matrix. Sums of 16-bit floats are float32.

TF: tensorflow/core/kernels/conv_ops.cc, depthwise_conv_op.cc
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.foundation.intra_op_pool import shard
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.linalg.matrix_product import matrix_product, matrix_product_into
from runtime.kernels.math.accumulation import accumulation_dtype
from runtime.kernels.nn.window import (
    WindowAttrs,
    WindowedDimension,
    channel_axis,
    from_channels_last,
    spatial_values,
    to_channels_last,
)

TILE_BYTES = 1 << 20  # bytes of a tile of window rows, which must fit in the cache of one core
# If there are no more channels than this, a row of pixels is multiplied as one vector.
MERGED_CHANNELS = 256
# Approximate costs in one thread; they decide whether lines are divided among threads.
MULTIPLY_ADD_NANOSECONDS = 0.015  # to multiply and add one element in a matrix product
TAP_NANOSECONDS = 0.2  # to multiply and add one element in np.einsum


def conv2d(
    x: np.ndarray,
    filter: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
) -> np.ndarray:
    """Conv2D: convolve `x` `[n, h, w, c]` with `filter` `[kh, kw, c / groups, out]`.

    Returns `[n, oh, ow, out]`.
    """
    attrs = WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
    attrs.check("Conv2D")
    _check_conv2d(x, filter, data_format)
    dimensions = attrs.place(x.shape, filter.shape[:-2])
    y = convolve(to_channels_last(x, data_format), filter, dimensions)
    return from_channels_last(y, data_format)


def _check_conv2d(x: np.ndarray, filter: np.ndarray, data_format: str) -> None:
    if x.ndim != 4:
        raise InvalidArgumentError(
            f"convolution input must be 4-dimensional: {shape_text(x.shape)}"
        )
    if filter.ndim != 4:
        raise InvalidArgumentError(
            f"convolution filter must be 4-dimensional: {shape_text(filter.shape)}"
        )
    depth, filter_depth, out_depth = x.shape[channel_axis(data_format)], *filter.shape[-2:]
    if filter_depth <= 0:
        raise InvalidArgumentError(f"filter depth must be stricly positive, got {filter_depth}")
    if depth % filter_depth:
        raise InvalidArgumentError(
            f"input depth must be evenly divisible by filter depth: {depth} vs {filter_depth}"
        )
    groups = depth // filter_depth
    if x.size and out_depth % groups:
        raise InvalidArgumentError(
            f"output depth must be evenly divisible by number of groups: {out_depth} vs {groups}"
        )
    if not all(filter.shape[:-2]):
        raise InvalidArgumentError(
            "filter must not have zero elements (i.e. all dimensions must be non-zero)"
        )


def convolve(
    x: np.ndarray, filter: np.ndarray, dimensions: Sequence[WindowedDimension]
) -> np.ndarray:
    """Convolve channels-last `x` with `filter` `[*windows, channels per group, out]`.

    The number of groups is the number of channels of `x` divided by the channels per group.
    Raises ResourceExhaustedError if the padded input or the output would be too large.
    """
    out_shape = (x.shape[0], *(each.output for each in dimensions), filter.shape[-1])
    check_allocation(out_shape, x.dtype)
    if 0 in out_shape or 0 in x.shape:
        return np.zeros(out_shape, x.dtype)
    working = accumulation_dtype(x.dtype)
    filter = filter.astype(working, copy=False)
    padded = pad_spatial(x.astype(working, copy=False), dimensions)
    groups = x.shape[-1] // filter.shape[-2]
    if groups > 1 and filter.shape[-2] == 1:
        multiplier = filter.shape[-1] // groups
        by_channel = filter.reshape(*filter.shape[:-2], groups, multiplier)
        result = depthwise_convolve(padded, by_channel, dimensions)
    else:
        result = np.empty(out_shape, working)
        inner, outer = filter.shape[-2], filter.shape[-1] // groups
        for group in range(groups):
            _convolve_group(
                padded[..., group * inner : (group + 1) * inner],
                filter[..., group * outer : (group + 1) * outer],
                dimensions,
                result[..., group * outer : (group + 1) * outer],
            )
    return result.astype(x.dtype, copy=False)


def pad_spatial(x: np.ndarray, dimensions: Sequence[WindowedDimension]) -> np.ndarray:
    """Return channels-last `x` with zeros around its spatial dimensions.

    If there is no padding, returns `x` itself.
    """
    if all(each.pad_before == 0 == each.pad_after for each in dimensions):
        return x
    shape = (x.shape[0], *(each.padded for each in dimensions), x.shape[-1])
    check_allocation(shape, x.dtype)
    padded = np.empty(shape, x.dtype)
    inside = tuple(slice(each.pad_before, each.pad_before + each.input) for each in dimensions)
    padded[(slice(None), *inside)] = x
    for axis, each in enumerate(dimensions):
        across = (slice(None), *inside[:axis])
        padded[(*across, slice(0, each.pad_before))] = 0
        padded[(*across, slice(each.pad_before + each.input, None))] = 0
    return padded


def _convolve_group(
    x: np.ndarray, filter: np.ndarray, dimensions: Sequence[WindowedDimension], out: np.ndarray
) -> None:
    """Convolve a padded `x` with `filter`, one tile of window rows at a time; write into `out`."""
    depth, out_depth = filter.shape[-2:]
    matrix = np.ascontiguousarray(filter).reshape(-1, out_depth)
    if all(each.window == 1 for each in dimensions):
        steps = tuple(slice(0, (d.output - 1) * d.stride + 1, d.stride) for d in dimensions)
        rows = x[(slice(None), *steps)].reshape(-1, depth)
        _matmul_into(rows, matrix, out)
        return
    windows = window_view(x, dimensions)
    line_rows, line_count = math.prod(out.shape[2:-1]), out.shape[1]
    row_bytes = matrix.shape[0] * line_rows * x.dtype.itemsize
    lines = max(1, TILE_BYTES // max(row_bytes, 1))  # in a tile, along the first spatial axis

    def convolve_lines(start: int, limit: int) -> None:
        for image, first, last in tiles(start, limit, line_count, lines):
            rows = windows[image, first:last].reshape(-1, matrix.shape[0])
            target = out[image, first:last]
            if target.flags.c_contiguous:
                np.matmul(rows, matrix, out=target.reshape(-1, out_depth))
            else:
                target[...] = np.matmul(rows, matrix).reshape(target.shape)

    cost = line_rows * matrix.size * MULTIPLY_ADD_NANOSECONDS
    shard(len(x) * line_count, cost, convolve_lines)


def tiles(start: int, limit: int, line_count: int, lines: int) -> Iterator[tuple[int, int, int]]:
    """Divide the lines from `start` up to, not including, `limit` into tiles within single images.

    Lines are numbered through all images, each of which has `line_count` lines. Yields (index of
    the image, first line, end line) for each tile of at most `lines` lines; both line numbers count
    from the start of that image, and the end line is exclusive.
    """
    while start < limit:
        check_task()
        image, first = divmod(start, line_count)
        last = min(first + lines, line_count, first + limit - start)
        yield image, first, last
        start += last - first


def _matmul_into(rows: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    if out.flags.c_contiguous:
        matrix_product_into(rows, matrix, out.reshape(-1, out.shape[-1]))
    else:
        out[...] = matrix_product(rows, matrix).reshape(out.shape)


def window_view(x: np.ndarray, dimensions: Sequence[WindowedDimension]) -> np.ndarray:
    """Return a view `[n, *outputs, *windows, depth]` of a padded `x`: the window of each output."""
    shape = (
        x.shape[0],
        *(each.output for each in dimensions),
        *(each.window for each in dimensions),
        x.shape[-1],
    )
    spatial = x.strides[1:-1]
    strides = (
        x.strides[0],
        *(size * each.stride for size, each in zip(spatial, dimensions, strict=True)),
        *(size * each.dilation for size, each in zip(spatial, dimensions, strict=True)),
        x.strides[-1],
    )
    return as_strided(x, shape, strides, writeable=False)


def depthwise_conv2d_native(
    x: np.ndarray,
    filter: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
) -> np.ndarray:
    """DepthwiseConv2dNative: convolve each channel of `x` with `multiplier` filters of its own.

    `filter` is `[kh, kw, c, multiplier]`.
    """
    attrs = WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
    dimensions = depthwise_dimensions(x.shape, filter.shape, attrs)
    x = to_channels_last(x, data_format)
    out_depth = filter.shape[2] * filter.shape[3]
    out_shape = (x.shape[0], *(each.output for each in dimensions), out_depth)
    check_allocation(out_shape, x.dtype)
    if 0 in out_shape or 0 in x.shape or 0 in filter.shape:
        return from_channels_last(np.zeros(out_shape, x.dtype), data_format)
    working = accumulation_dtype(x.dtype)
    padded = pad_spatial(x.astype(working, copy=False), dimensions)
    result = depthwise_convolve(padded, filter.astype(working, copy=False), dimensions)
    return from_channels_last(result.astype(x.dtype, copy=False), data_format)


def depthwise_dimensions(
    input_shape: Sequence[int], filter_shape: Sequence[int], attrs: WindowAttrs
) -> tuple[WindowedDimension, ...]:
    """Check the arguments of a depthwise convolution; return the windows of rows and columns."""
    if len(attrs.dilations) == 4:
        sides = attrs.dilations[0], attrs.dilations[channel_axis(attrs.data_format)]
        if sides != (1, 1):
            shown = " ".join(map(str, attrs.dilations))
            raise UnimplementedError(
                f"Current kernel implementation does not support dilations, received [{shown}]"
            )
    attrs.check("DepthwiseConv2D", refusal=InvalidArgumentError)
    stride_h, stride_w = spatial_values(attrs.strides, attrs.data_format)
    if stride_h != stride_w:
        raise InvalidArgumentError(
            "Current implementation only supports equal length strides in the row and column "
            "dimensions."
        )
    if len(input_shape) != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(input_shape)}")
    if len(filter_shape) != 4:
        raise InvalidArgumentError(f"filter must be 4-dimensional: {shape_text(filter_shape)}")
    depth = input_shape[channel_axis(attrs.data_format)]
    if depth != filter_shape[2]:
        raise InvalidArgumentError(
            f"input and filter must have the same depth: {depth} vs {filter_shape[2]}"
        )
    return attrs.place(input_shape, filter_shape[:2])


def depthwise_convolve(
    x: np.ndarray, filter: np.ndarray, dimensions: Sequence[WindowedDimension]
) -> np.ndarray:
    """Convolve each channel of a padded `x` `[n, *spatial, c]` with its filters.

    `filter` is `[*windows, c, multiplier]`; the result is `[n, *outputs, c * multiplier]`.
    """
    x = np.ascontiguousarray(x)  # _merge_columns reads a row of pixels as one vector
    channels, multiplier = filter.shape[-2:]
    if multiplier > 1:
        x = np.repeat(x, multiplier, axis=-1)
        channels *= multiplier
    filter = np.ascontiguousarray(filter).reshape(*filter.shape[:-2], channels)
    outputs = tuple(each.output for each in dimensions)
    result = np.empty((x.shape[0], *outputs, channels), x.dtype)
    out, windows = result, window_view(x, dimensions)
    if channels <= MERGED_CHANNELS and dimensions[-1].stride == 1:
        # If channels are few, inner loops are short. A whole row of pixels is longer: it is treated
        # as the channels of one pixel.
        filter = np.tile(filter, outputs[-1])
        windows = _merge_columns(windows, channels * outputs[-1])
        out = result.reshape(*result.shape[:-2], 1, -1)
    rank = len(dimensions)
    pixel, tap, channel = [*range(rank + 1)], [*range(rank + 1, 2 * rank + 1)], [2 * rank + 1]
    axes, filter_axes, out_axes = pixel + tap + channel, tap + channel, pixel + channel

    def convolve_lines(start: int, limit: int) -> None:
        for image, first, last in tiles(start, limit, outputs[0], outputs[0]):
            part = slice(image, image + 1), slice(first, last)
            np.einsum(windows[part], axes, filter, filter_axes, out_axes, out=out[part])

    cost = out[0, 0].size * filter[..., 0].size * TAP_NANOSECONDS
    shard(len(x) * outputs[0], cost, convolve_lines)
    return result


def _merge_columns(windows: np.ndarray, merged: int) -> np.ndarray:
    """Return a view of `windows` in which a row of output pixels is one pixel of many channels.

    `windows` is `[n, *rows, columns, *windows, c]` and must have the stride 1 along the columns.
    The view is `[n, *rows, 1, *windows, columns * c]`, and `merged` is `columns * c`.
    """
    axis = (windows.ndim - 2) // 2
    shape = (*windows.shape[:axis], 1, *windows.shape[axis + 1 : -1], merged)
    return as_strided(windows, shape, windows.strides, writeable=False)


KERNELS = (
    KernelDef("Conv2D", conv2d, {"T": (*FLOAT_TYPES, DataType.INT32)}, expensive=True, fresh=True),
    KernelDef(
        "DepthwiseConv2dNative",
        depthwise_conv2d_native,
        {"T": FLOAT_TYPES},
        expensive=True,
        fresh=True,
    ),
)
