"""Convolution over three spatial dimensions and its gradients.

TF: tensorflow/core/kernels/conv_ops_3d.cc, conv_grad_ops_3d.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.nn.convolution import convolve
from runtime.kernels.nn.convolution_gradients import backprop_filter, backprop_input
from runtime.kernels.nn.window import (
    WindowAttrs,
    channel_axis,
    from_channels_last,
    to_channels_last,
)


def conv3d(
    x: np.ndarray,
    filter: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int],
) -> np.ndarray:
    """Conv3D: convolve `x` `[n, d, h, w, c]` with `filter` `[kd, kh, kw, c / groups, out]`."""
    attrs = WindowAttrs(strides, padding, data_format, dilations)
    attrs.check("Conv3D", refusal=InvalidArgumentError)
    for name, tensor in (("input", x), ("filter", filter)):
        if tensor.ndim != 5:
            raise InvalidArgumentError(f"{name} must be 5-dimensional")
    depth, filter_depth, out_depth = x.shape[channel_axis(data_format)], *filter.shape[-2:]
    if not filter.size:
        raise InvalidArgumentError(
            "filter must not have zero elements (i.e. all dimensions must be non-zero)"
        )
    if depth % filter_depth:
        raise InvalidArgumentError(
            f"Input depth must be evenly divisible by filter depth: {depth} vs {filter_depth}"
        )
    groups = depth // filter_depth
    dimensions = attrs.place(x.shape, filter.shape[:-2])
    if not x.shape[0] or not all(each.output for each in dimensions):
        shape = (x.shape[0], *(each.output for each in dimensions), out_depth)
        return from_channels_last(np.zeros(shape, x.dtype), data_format)
    if not groups:
        raise InvalidArgumentError(
            f"Number of channels in filter ({filter_depth}) must match last dimension of input "
            f"({depth})"
        )
    if out_depth % groups:
        raise InvalidArgumentError(
            f"output depth must be evenly divisible by number of groups: {out_depth} vs {groups}"
        )
    y = convolve(to_channels_last(x, data_format), filter, dimensions)
    return from_channels_last(y, data_format)


def conv3d_backprop_input_v2(
    input_sizes: np.ndarray,
    filter: np.ndarray,
    out_backprop: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int],
) -> np.ndarray:
    """Conv3DBackpropInputV2: return the gradient of Conv3D with respect to its input.

    It has the shape `input_sizes`, (n, d, h, w, c).
    """
    attrs = WindowAttrs(strides, padding, data_format, dilations)
    attrs.check("Conv3DBackpropInput", refusal=InvalidArgumentError)
    sizes = _sizes("input_sizes", input_sizes)
    return backprop_input("Conv3DBackpropInputOp", sizes.tolist(), filter, out_backprop, attrs)


def conv3d_backprop_filter_v2(
    x: np.ndarray,
    filter_sizes: np.ndarray,
    out_backprop: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    data_format: str,
    dilations: Sequence[int],
) -> np.ndarray:
    """Conv3DBackpropFilterV2: return the gradient of Conv3D with respect to its filter.

    It has the shape `filter_sizes`, (kd, kh, kw, c, out).
    """
    attrs = WindowAttrs(strides, padding, data_format, dilations)
    attrs.check("Conv3DBackpropFilter", refusal=InvalidArgumentError)
    sizes = _sizes("filter_sizes", filter_sizes)
    return backprop_filter("Conv3DBackpropFilterOp", x, sizes, out_backprop, attrs)


def conv3d_backprop_input(
    x: np.ndarray,
    filter: np.ndarray,
    out_backprop: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int],
) -> np.ndarray:
    """Conv3DBackpropInput: return the gradient of Conv3D with respect to its input `x`.

    Only the shape of `x` is used.
    """
    return conv3d_backprop_input_v2(
        np.array(x.shape),
        filter,
        out_backprop,
        strides=strides,
        padding=padding,
        data_format="NDHWC",
        dilations=dilations,
    )


def conv3d_backprop_filter(
    x: np.ndarray,
    filter: np.ndarray,
    out_backprop: np.ndarray,
    *,
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int],
) -> np.ndarray:
    """Conv3DBackpropFilter: return the gradient of Conv3D with respect to `filter`.

    Only the shape of `filter` is used.
    """
    return conv3d_backprop_filter_v2(
        x,
        np.array(filter.shape),
        out_backprop,
        strides=strides,
        padding=padding,
        data_format="NDHWC",
        dilations=dilations,
    )


def _sizes(name: str, sizes: np.ndarray) -> np.ndarray:
    if sizes.ndim != 1:
        raise InvalidArgumentError(f"{name} must be a vector, got shape {shape_text(sizes.shape)}")
    return sizes


KERNELS = (
    KernelDef("Conv3DBackpropFilter", conv3d_backprop_filter, {"T": FLOAT_TYPES}, expensive=True),
    KernelDef("Conv3DBackpropInput", conv3d_backprop_input, {"T": FLOAT_TYPES}, expensive=True),
    KernelDef("Conv3D", conv3d, {"T": FLOAT_TYPES}, expensive=True),
    KernelDef(
        "Conv3DBackpropFilterV2", conv3d_backprop_filter_v2, {"T": FLOAT_TYPES}, expensive=True
    ),
    KernelDef(
        "Conv3DBackpropInputV2", conv3d_backprop_input_v2, {"T": FLOAT_TYPES}, expensive=True
    ),
)
