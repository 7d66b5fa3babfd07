"""Gradients of the depthwise convolution.

TF: tensorflow/core/kernels/depthwise_conv_grad_op.cc
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.intra_op_pool import shard
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES
from runtime.kernels.math.accumulation import widen
from runtime.kernels.nn.convolution import (
    TAP_NANOSECONDS,
    depthwise_convolve,
    pad_spatial,
    window_view,
)
from runtime.kernels.nn.window import (
    WindowAttrs,
    WindowedDimension,
    channel_axis,
    from_channels_last,
    spatial_values,
    to_channels_last,
)


def _attrs(
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int],
    explicit_paddings: Sequence[int],
) -> WindowAttrs:
    """Return the attributes as WindowAttrs.

    Invalid dilations are ignored, because TensorFlow's kernels do not read that attribute.
    """
    rates = dilations if len(dilations) == len(data_format) and min(dilations) > 0 else ()
    return WindowAttrs(strides, padding, data_format, rates, explicit_paddings)


def depthwise_backprop_input(
    input_sizes: np.ndarray,
    filter: np.ndarray,
    out_backprop: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
) -> np.ndarray:
    """DepthwiseConv2dNativeBackpropInput: return the gradient with respect to the input.

    It has the shape `input_sizes`; `filter` is `[kh, kw, c, multiplier]`.
    """
    attrs = _attrs(strides, padding, data_format, dilations, explicit_paddings)
    if input_sizes.ndim != 1:
        raise InvalidArgumentError(
            f"Conv2DBackpropInput: input_sizes input must be 1-dim, not {input_sizes.ndim}"
        )
    sizes = _sizes("input_sizes", input_sizes)
    dimensions = _dimensions("Input", sizes, filter.shape, out_backprop.shape, attrs)
    gradient = widen(to_channels_last(out_backprop, data_format))
    check_allocation(sizes, gradient.dtype)
    if not out_backprop.size or not math.prod(sizes):
        return np.zeros(input_sizes, filter.dtype)
    result = _convolve_back(gradient, widen(filter), dimensions)
    return from_channels_last(result.astype(filter.dtype, copy=False), data_format)


def _convolve_back(
    gradient: np.ndarray, filter: np.ndarray, dimensions: Sequence[WindowedDimension]
) -> np.ndarray:
    """Compute the gradient of the input from `gradient`, the gradient of the output.

    Zeros are inserted between the elements of `gradient` if strides are greater than 1. Then it is
    convolved with the flipped filter. Both gradients are channels-last.
    """
    reach = [(each.window - 1) * each.dilation for each in dimensions]
    shape = [each.padded + more for each, more in zip(dimensions, reach, strict=True)]
    spread = np.zeros((gradient.shape[0], *shape, gradient.shape[-1]), gradient.dtype)
    at = [
        slice(more, more + (each.output - 1) * each.stride + 1, each.stride)
        for each, more in zip(dimensions, reach, strict=True)
    ]
    spread[(slice(None), *at)] = gradient
    seen = [
        slice(each.pad_before, each.pad_before + each.input + more)
        for each, more in zip(dimensions, reach, strict=True)
    ]
    back = [
        dataclasses.replace(each, stride=1, pad_before=0, pad_after=0, output=each.input)
        for each in dimensions
    ]
    turned = filter[::-1, ::-1].reshape(*filter.shape[:2], -1, 1)
    result = depthwise_convolve(spread[(slice(None), *seen)], turned, back)
    if filter.shape[-1] == 1:
        return result
    return result.reshape(*result.shape[:-1], *filter.shape[2:]).sum(axis=-1)


def depthwise_backprop_filter(
    x: np.ndarray,
    filter_sizes: np.ndarray,
    out_backprop: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
) -> np.ndarray:
    """DepthwiseConv2dNativeBackpropFilter: return the gradient with respect to the filter.

    It has the shape `filter_sizes`, (kh, kw, c, multiplier).
    """
    attrs = _attrs(strides, padding, data_format, dilations, explicit_paddings)
    if filter_sizes.ndim != 1:
        raise InvalidArgumentError(
            f"Conv2DBackpropFilter: filter_sizes input must be 1-dim, not {filter_sizes.ndim}"
        )
    shape = _sizes("filter_sizes", filter_sizes)
    dimensions = _dimensions("Filter", x.shape, shape, out_backprop.shape, attrs)
    check_allocation(shape, x.dtype)
    result = np.zeros(shape, x.dtype)
    if out_backprop.size and x.size:
        padded = pad_spatial(widen(to_channels_last(x, data_format)), dimensions)
        gradient = widen(to_channels_last(out_backprop, data_format))
        windows = window_view(padded, dimensions)
        by_channel = gradient.reshape(*gradient.shape[:-1], *shape[2:])
        images = np.empty((len(x), *shape), padded.dtype)

        def work(start: int, limit: int) -> None:
            part = slice(start, limit)
            np.einsum("nhwijc,nhwcm->nijcm", windows[part], by_channel[part], out=images[part])

        cost = gradient[0].size * math.prod(shape[:2]) * TAP_NANOSECONDS
        shard(len(x), cost, work)
        result[...] = images.sum(axis=0)
    return result


def _sizes(name: str, vector: np.ndarray) -> list[int]:
    sizes = [int(size) for size in vector]
    for index, size in enumerate(sizes):
        if size < 0:
            raise InvalidArgumentError(f"Dimension {index} of {name} must be >= 0")
    return sizes


def _dimensions(
    side: str,
    input_shape: Sequence[int],
    filter_shape: Sequence[int],
    out_shape: Sequence[int],
    attrs: WindowAttrs,
) -> tuple[WindowedDimension, ...]:
    """Return the windows of the two spatial dimensions.

    Raises InvalidArgumentError if the shapes do not agree; `side` names the op in messages.
    """
    label = f"DepthwiseConv2DBackprop{side}"
    attrs.check(label, refusal=InvalidArgumentError)
    stride_h, stride_w = spatial_values(attrs.strides, attrs.data_format)
    if stride_h != stride_w:
        raise InvalidArgumentError(
            "Current implementation only supports equal length strides in the row and column "
            "dimensions."
        )
    for name, shape in (
        ("input", input_shape),
        ("filter", filter_shape),
        ("out_backprop", out_shape),
    ):
        if len(shape) != 4:
            raise InvalidArgumentError(f"{label}: {name} must be 4-dimensional")
    axis = channel_axis(attrs.data_format)
    if input_shape[0] != out_shape[0]:
        raise InvalidArgumentError(f"{label}: input and out_backprop must have the same batch size")
    if input_shape[axis] != filter_shape[2]:
        raise InvalidArgumentError(f"{label}: input and filter must have the same in_depth")
    if filter_shape[2] * filter_shape[3] != out_shape[axis]:
        raise InvalidArgumentError(f"{label}: depth_multiplier * in_depth not equal to out_depth")
    if not all(filter_shape[:2]):
        raise InvalidArgumentError(f"{label}: filter must have no empty window")
    dimensions = attrs.place(input_shape, filter_shape[:2])
    outputs = spatial_values(out_shape, attrs.data_format)
    for name, placed, output in zip(("rows", "cols"), dimensions, outputs, strict=True):
        if placed.output != output:
            raise InvalidArgumentError(
                f"{label}: Number of {name} of out_backprop doesn't match computed: "
                f"actual = {output}, computed = {placed.output}"
            )
    return dimensions


KERNELS = (
    KernelDef("DepthwiseConv2dNativeBackpropFilter", depthwise_backprop_filter, {"T": FLOAT_TYPES}),
    KernelDef("DepthwiseConv2dNativeBackpropInput", depthwise_backprop_input, {"T": FLOAT_TYPES}),
)
