"""Gradients of convolutions; the gradient for the input is also the transposed convolution.

Both gradients loop over the positions in a window, which are called taps, with one matrix product
for each. For the input's gradient, the product is added to the input elements under the tap. For
the filter's gradient, these elements are an operand of the product.

TF: tensorflow/core/kernels/conv_grad_input_ops.h, conv_grad_filter_ops.cc, conv_grad_shape_utils.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES
from runtime.kernels.linalg.matrix_product import matrix_product
from runtime.kernels.math.accumulation import accumulation_dtype, widen
from runtime.kernels.nn.convolution import pad_spatial
from runtime.kernels.nn.window import (
    WindowAttrs,
    WindowedDimension,
    channel_axis,
    from_channels_last,
    is_channels_first,
    spatial_values,
    to_channels_last,
)


def conv2d_backprop_input(
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
    """Conv2DBackpropInput: return the gradient of Conv2D with respect to its input.

    `input_sizes` is the shape of the input, or only its two spatial sizes.
    """
    attrs = WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
    _check_strides_length(attrs)
    attrs.check("Conv2DBackpropInput")
    if input_sizes.ndim != 1:
        raise InvalidArgumentError(
            f"Conv2DBackpropInput: input_sizes input must be 1-dim, not {input_sizes.ndim}"
        )
    if input_sizes.size not in (2, 4):
        raise InvalidArgumentError(
            "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: "
            f"{input_sizes.size}"
        )
    sizes = [int(size) for size in input_sizes]
    if len(sizes) == 2 and filter.ndim == 4 == out_backprop.ndim:
        sizes = [out_backprop.shape[0], *sizes]
        sizes.insert(channel_axis(data_format), filter.shape[2])
    return backprop_input("Conv2DCustomBackpropInput", sizes, filter, out_backprop, attrs)


def conv2d_backprop_filter(
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
    """Conv2DBackpropFilter: return the gradient of Conv2D with respect to its filter.

    It has the shape `filter_sizes`, (kh, kw, c, out).
    """
    attrs = WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
    _check_strides_length(attrs)
    attrs.check("Conv2DBackpropFilter", refusal=InvalidArgumentError)
    if filter_sizes.ndim != 1:
        raise InvalidArgumentError(
            f"Conv2DCustomBackpropFilter: filter_sizes input must be 1-dim, not {filter_sizes.ndim}"
        )
    return backprop_filter("Conv2DCustomBackpropFilter", x, filter_sizes, out_backprop, attrs)


def _check_strides_length(attrs: WindowAttrs) -> None:
    if len(attrs.strides) != len(attrs.data_format):
        raise InvalidArgumentError(
            f"Sliding window strides field must specify {len(attrs.data_format)} dimensions"
        )


def backprop_input(
    label: str,
    sizes: Sequence[int],
    filter: np.ndarray,
    out_backprop: np.ndarray,
    attrs: WindowAttrs,
) -> np.ndarray:
    """Return the gradient with respect to an input of shape `sizes`.

    Error messages begin with `label`.
    """
    dimensions = backprop_dimensions(label, sizes, filter.shape, out_backprop.shape, attrs)
    check_allocation(sizes, filter.dtype)
    if 0 in sizes or 0 in out_backprop.shape:
        return np.zeros(sizes, filter.dtype)
    gradient = widen(to_channels_last(out_backprop, attrs.data_format))
    result = _scatter_windows(gradient, widen(filter), dimensions)
    return from_channels_last(result.astype(filter.dtype, copy=False), attrs.data_format)


def _scatter_windows(
    gradient: np.ndarray, filter: np.ndarray, dimensions: Sequence[WindowedDimension]
) -> np.ndarray:
    """Compute the gradient of the input from `gradient`, the gradient of the output.

    For each tap, `gradient @ filter[tap].T` is added to the input elements under that tap. Both
    gradients are channels-last.
    """
    rows = np.ascontiguousarray(gradient).reshape(-1, gradient.shape[-1])
    depth = filter.shape[-2]
    padded_shape = (gradient.shape[0], *(each.padded for each in dimensions), depth)
    check_allocation(padded_shape, gradient.dtype)
    padded = np.zeros(padded_shape, gradient.dtype)
    for tap in np.ndindex(filter.shape[:-2]):
        check_task()
        part = matrix_product(rows, filter[tap].T).reshape(*gradient.shape[:-1], depth)
        padded[(slice(None), *tap_slices(tap, dimensions))] += part
    return padded[(slice(None), *inside_padding(dimensions))]


def backprop_filter(
    label: str,
    x: np.ndarray,
    filter_sizes: np.ndarray,
    out_backprop: np.ndarray,
    attrs: WindowAttrs,
) -> np.ndarray:
    """Return the gradient with respect to a filter of shape `filter_sizes`.

    Error messages begin with `label`.
    """
    shape = tuple(int(size) for size in filter_sizes)
    check_allocation(shape, x.dtype)
    dimensions = backprop_dimensions(label, x.shape, shape, out_backprop.shape, attrs)
    result = np.zeros(shape, x.dtype)
    if 0 in x.shape or 0 in shape or 0 in out_backprop.shape:
        return result
    working = accumulation_dtype(x.dtype)
    padded = pad_spatial(
        to_channels_last(x, attrs.data_format).astype(working, copy=False), dimensions
    )
    gradient = widen(to_channels_last(out_backprop, attrs.data_format))
    rows = np.ascontiguousarray(gradient).reshape(-1, gradient.shape[-1])
    for tap in np.ndindex(shape[:-2]):
        check_task()
        seen = padded[(slice(None), *tap_slices(tap, dimensions))]
        result[tap] = matrix_product(seen.reshape(-1, seen.shape[-1]).T, rows)
    return result


def tap_slices(tap: Sequence[int], dimensions: Sequence[WindowedDimension]) -> tuple[slice, ...]:
    """Return slices of a padded input that select, for each output, the element under `tap`."""
    starts = (position * each.dilation for position, each in zip(tap, dimensions, strict=True))
    return tuple(
        slice(start, start + (each.output - 1) * each.stride + 1, each.stride)
        for start, each in zip(starts, dimensions, strict=True)
    )


def inside_padding(dimensions: Sequence[WindowedDimension]) -> tuple[slice, ...]:
    """Return slices of a padded input that select the elements that are not padding."""
    return tuple(slice(each.pad_before, each.pad_before + each.input) for each in dimensions)


def backprop_dimensions(
    label: str,
    input_shape: Sequence[int],
    filter_shape: Sequence[int],
    out_shape: Sequence[int],
    attrs: WindowAttrs,
) -> tuple[WindowedDimension, ...]:
    """Return the windows of a convolution, given the shapes of its gradient op.

    Raises InvalidArgumentError if the shapes do not agree; messages begin with `label`.

    TF: ConvBackpropComputeDimensionsV2
    """
    rank = len(attrs.data_format)
    for name, shape in (
        ("input", input_shape),
        ("filter", filter_shape),
        ("out_backprop", out_shape),
    ):
        if len(shape) != rank:
            raise InvalidArgumentError(f"{label}: {name} must be {rank}-dimensional")
    for size in (*input_shape, *filter_shape):
        if size < 0:
            raise InvalidArgumentError(f"Dimension {size} must be >= 0")
    _check_depths(label, input_shape, filter_shape, out_shape, channel_axis(attrs.data_format))
    dimensions = attrs.place(input_shape, filter_shape[:-2])
    outputs = spatial_values(out_shape, attrs.data_format)
    first = 2 if is_channels_first(attrs.data_format) else 1
    for axis, (placed, output) in enumerate(zip(dimensions, outputs, strict=True), start=first):
        if placed.output != output:
            raise InvalidArgumentError(
                f"{label}: Size of out_backprop doesn't match computed: actual = {output}, "
                f"computed = {placed.output} spatial_dim: {axis} input: {placed.input} "
                f"filter: {placed.window} output: {output} stride: {placed.stride} "
                f"dilation: {placed.dilation}"
            )
    return dimensions


def _check_depths(
    label: str,
    input_shape: Sequence[int],
    filter_shape: Sequence[int],
    out_shape: Sequence[int],
    axis: int,
) -> None:
    if input_shape[0] != out_shape[0]:
        raise InvalidArgumentError(
            f"{label}: input and out_backprop must have the same batch size. Input batch: "
            f"{input_shape[0]}, outbackprop batch: {out_shape[0]}, batch_dim: 0"
        )
    depth, filter_depth = input_shape[axis], filter_shape[-2]
    if filter_depth == 0 or depth % filter_depth:
        raise InvalidArgumentError(f"{label}: input depth must be evenly divisible by filter depth")
    if filter_shape[-1] != out_shape[axis]:
        raise InvalidArgumentError(f"{label}: filter and out_backprop must have the same out_depth")
    if depth != filter_depth:
        raise InvalidArgumentError(
            "Gradients for grouped convolutions are not supported on CPU. Please file a feature "
            f"request if you run into this issue. Computed input depth {depth} doesn't match "
            f"filter input depth {filter_depth}"
        )


KERNELS = (
    KernelDef(
        "Conv2DBackpropInput",
        conv2d_backprop_input,
        {"T": (*FLOAT_TYPES, DataType.INT32)},
        expensive=True,
    ),
    KernelDef("Conv2DBackpropFilter", conv2d_backprop_filter, {"T": FLOAT_TYPES}, expensive=True),
)
