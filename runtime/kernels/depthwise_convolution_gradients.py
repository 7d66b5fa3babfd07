"""Gradients of the depthwise convolution.

TF: tensorflow/core/kernels/depthwise_conv_grad_op.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.kernels.accumulation import widen
from runtime.kernels.convolution import pad_spatial
from runtime.kernels.convolution_gradients import inside_padding, tap_slices
from runtime.kernels.register_types import FLOAT_TYPES
from runtime.kernels.window import (
    WindowAttrs,
    WindowedDimension,
    channel_axis,
    from_channels_last,
    spatial_values,
    to_channels_last,
)


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
    """Gradient for the input of shape `input_sizes`; `filter` is `[kh, kw, c, multiplier]`."""
    attrs = WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
    if input_sizes.ndim != 1:
        raise InvalidArgumentError(
            f"Conv2DBackpropInput: input_sizes input must be 1-dim, not {input_sizes.ndim}"
        )
    sizes = _sizes("input_sizes", input_sizes)
    dimensions = _dimensions("Input", sizes, filter.shape, out_backprop.shape, attrs)
    gradient = widen(to_channels_last(out_backprop, data_format))
    by_channel = gradient.reshape(*gradient.shape[:-1], *filter.shape[2:])
    shape = (sizes[0], *(each.padded for each in dimensions), filter.shape[2])
    check_allocation(shape, gradient.dtype)
    padded = np.zeros(shape, gradient.dtype)
    if out_backprop.size:
        weights = widen(filter)
        for tap in np.ndindex(filter.shape[:2]):
            part = (by_channel * weights[tap]).sum(axis=-1)
            padded[(slice(None), *tap_slices(tap, dimensions))] += part
    result = padded[(slice(None), *inside_padding(dimensions))]
    return from_channels_last(result.astype(filter.dtype, copy=False), data_format)


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
    """Gradient for the filter of shape `filter_sizes` `[kh, kw, c, multiplier]`."""
    attrs = WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
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
        by_channel = gradient.reshape(*gradient.shape[:-1], *shape[2:])
        for tap in np.ndindex(*shape[:2]):
            seen = padded[(slice(None), *tap_slices(tap, dimensions))]
            result[tap] = (seen[..., None] * by_channel).sum(axis=(0, 1, 2))
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
    """Check the shapes against each other and place the windows."""
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
