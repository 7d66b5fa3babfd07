"""What convolutions and their gradients allocate.

Each bound follows the code: the padded input, the result, both also in float32 for half types and
once more if channels come first, and for each thread the rows of windows that it multiplies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from runtime.foundation.intra_op_pool import thread_width
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import elements, itemsize, numbers_in, shape_of, volume
from runtime.kernels.nn.convolution import TILE_BYTES
from runtime.kernels.nn.convolution_any_rank import DATA_FORMATS
from runtime.kernels.nn.window import WindowAttrs, WindowedDimension, channel_axis

V = TensorValue
Ints = Sequence[int]


def _convolution(
    batch: int, depth: int, filter: Sequence[int], dimensions: Sequence[WindowedDimension],
    width: int,
) -> int:  # fmt: skip
    """Return what `convolution.convolve` allocates."""
    *window, filter_depth, out_depth = filter
    outputs = [each.output for each in dimensions]
    padded = batch * math.prod(each.padded for each in dimensions) * depth
    result = batch * math.prod(outputs) * out_depth
    if not result:
        return 0
    groups = depth // max(filter_depth, 1)
    multiplier = out_depth // max(groups, 1) if filter_depth == 1 and groups > 1 else 1
    work = max(width, 4)
    line = math.prod(window) * filter_depth * math.prod(outputs[1:]) * work
    rows = thread_width() * (max(TILE_BYTES, line) + math.prod(outputs[1:]) * out_depth * work)
    whole = batch * outputs[0] * line  # no tile is larger than all windows
    weights = math.prod(filter) * work * (outputs[-1] if multiplier * groups > 1 else 3)
    return padded * work * (3 + multiplier) + result * work * 4 + min(rows, 2 * whole) + 2 * weights


def _placed(
    op_attrs: WindowAttrs, input_shape: Ints, windows: Ints
) -> tuple[WindowedDimension, ...]:
    return op_attrs.place(input_shape, windows)


def _conv(
    x: V, filter: V, *, strides: Ints, padding: str, explicit_paddings: Ints, data_format: str,
    dilations: Ints,
) -> int:  # fmt: skip
    return _forward(
        x, filter, WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
    )


def _conv3d(
    x: V, filter: V, *, strides: Ints, padding: str, data_format: str, dilations: Ints
) -> int:
    return _forward(x, filter, WindowAttrs(strides, padding, data_format, dilations))


def _forward(x: V, filter: V, attrs: WindowAttrs) -> int:
    shape, weights = shape_of(x), shape_of(filter)
    dimensions = _placed(attrs, shape, weights[:-2])
    depth = shape[channel_axis(attrs.data_format)]
    return _convolution(shape[0], depth, weights, dimensions, itemsize(x))


def _any_rank(
    x: V, filter: V, *, strides: Ints, padding: str, explicit_paddings: Ints, data_format: str,
    dilations: Ints, batch_dims: int,
) -> int:  # fmt: skip
    shape = shape_of(x)
    flat = (math.prod(shape[:batch_dims]), *shape[batch_dims:])
    layout = DATA_FORMATS[data_format][len(flat) - 2]
    attrs = WindowAttrs(strides, padding, layout, dilations or (1,) * len(flat), explicit_paddings)
    weights = shape_of(filter)
    dimensions = _placed(attrs, flat, weights[:-2])
    return _convolution(flat[0], flat[channel_axis(layout)], weights, dimensions, itemsize(x))


def _depthwise(
    x: V, filter: V, *, strides: Ints, padding: str, explicit_paddings: Ints, data_format: str,
    dilations: Ints,
) -> int:  # fmt: skip
    attrs = WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
    *window, depth, multiplier = shape_of(filter)
    dimensions = _placed(attrs, shape_of(x), window)
    weights = (*window, 1, depth * multiplier)
    return _convolution(shape_of(x)[0], depth, weights, dimensions, itemsize(x))


def _gradients(sizes: Ints, filter: Ints, out_backprop: V, attrs: WindowAttrs, width: int) -> int:
    """Return what the gradient of a convolution for its input or its filter allocates."""
    dimensions = _placed(attrs, sizes, filter[:-2])
    batch, depth = sizes[0], sizes[channel_axis(attrs.data_format)]
    work = max(width, 4)
    reach = [each.padded + each.window * each.dilation for each in dimensions]
    padded = batch * math.prod(reach) * depth
    windows = batch * math.prod(each.output for each in dimensions) * depth
    weights = volume(filter)
    return work * (4 * padded + 3 * windows + 4 * weights + 4 * elements(out_backprop))


def _backprop_input(
    input_sizes: V, filter: V, out_backprop: V, *, strides: Ints, padding: str,
    explicit_paddings: Ints, data_format: str, dilations: Ints,
) -> int:  # fmt: skip
    sizes, out = numbers_in(input_sizes), shape_of(out_backprop)
    if len(sizes) == 2:
        sizes = [out[0], *sizes]
        sizes.insert(channel_axis(data_format), shape_of(filter)[2])
    attrs = WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
    return _gradients(sizes, shape_of(filter), out_backprop, attrs, itemsize(filter))


def _backprop_filter(
    x: V, filter_sizes: V, out_backprop: V, *, strides: Ints, padding: str,
    explicit_paddings: Ints, data_format: str, dilations: Ints,
) -> int:  # fmt: skip
    attrs = WindowAttrs(strides, padding, data_format, dilations, explicit_paddings)
    return _gradients(shape_of(x), numbers_in(filter_sizes), out_backprop, attrs, itemsize(x))


def _backprop_input_3d_v2(
    input_sizes: V, filter: V, out_backprop: V, *, strides: Ints, padding: str, data_format: str,
    dilations: Ints,
) -> int:  # fmt: skip
    attrs = WindowAttrs(strides, padding, data_format, dilations)
    sizes = numbers_in(input_sizes)
    return _gradients(sizes, shape_of(filter), out_backprop, attrs, itemsize(filter))


def _backprop_filter_3d_v2(
    x: V, filter_sizes: V, out_backprop: V, *, strides: Ints, padding: str, data_format: str,
    dilations: Ints,
) -> int:  # fmt: skip
    attrs = WindowAttrs(strides, padding, data_format, dilations)
    return _gradients(shape_of(x), numbers_in(filter_sizes), out_backprop, attrs, itemsize(x))


def _backprop_3d(
    x: V, filter: V, out_backprop: V, *, strides: Ints, padding: str, dilations: Ints
) -> int:
    attrs = WindowAttrs(strides, padding, "NDHWC", dilations)
    return _gradients(shape_of(x), shape_of(filter), out_backprop, attrs, itemsize(x))


def _depthwise_attrs(
    strides: Ints, padding: str, explicit_paddings: Ints, data_format: str, dilations: Ints
) -> WindowAttrs:
    rates = dilations if len(dilations) == len(data_format) and min(dilations) > 0 else ()
    return WindowAttrs(strides, padding, data_format, rates, explicit_paddings)


def _depthwise_gradient(
    sizes: Ints, filter: Ints, out_backprop: V, attrs: WindowAttrs, width: int
) -> int:
    # each channel of the gradient is spread by itself, and each image has gradients of weights
    spread = list(sizes)
    spread[channel_axis(attrs.data_format)] = filter[2] * filter[3]
    every = _gradients(spread, filter, out_backprop, attrs, width)
    merged = math.prod(filter) * max(sizes[2], 1) * max(width, 4)
    return every + sizes[0] * volume(filter) * max(width, 4) + merged


def _depthwise_input(
    input_sizes: V, filter: V, out_backprop: V, *, strides: Ints, padding: str,
    explicit_paddings: Ints, data_format: str, dilations: Ints,
) -> int:  # fmt: skip
    attrs = _depthwise_attrs(strides, padding, explicit_paddings, data_format, dilations)
    sizes = numbers_in(input_sizes)
    return _depthwise_gradient(sizes, shape_of(filter), out_backprop, attrs, itemsize(filter))


def _depthwise_filter(
    x: V, filter_sizes: V, out_backprop: V, *, strides: Ints, padding: str,
    explicit_paddings: Ints, data_format: str, dilations: Ints,
) -> int:  # fmt: skip
    attrs = _depthwise_attrs(strides, padding, explicit_paddings, data_format, dilations)
    sizes = numbers_in(filter_sizes)
    return _depthwise_gradient(shape_of(x), sizes, out_backprop, attrs, itemsize(x))


def _fused_pad(x: V, paddings: V, filter: V, *, strides: Ints, padding: str) -> int:
    return _padded_convolution(shape_of(x)[:4], itemsize(x), paddings, filter, strides, padding)


def _fused_resize(x: V, size: V, paddings: V, filter: V, *, strides: Ints, padding: str) -> int:
    batch, _, width, depth = shape_of(x)
    height, columns = numbers_in(size)
    work = max(itemsize(x), 4)
    resized = batch * height * columns * depth * work
    between = batch * height * width * depth * work
    taps = (height + columns) * depth * 64
    every = _padded_convolution(
        (batch, height, columns, depth), itemsize(x), paddings, filter, strides, padding
    )
    return every + 3 * resized + 3 * between + taps


def _padded_convolution(
    shape: Ints, width: int, paddings: V, filter: V, strides: Ints, padding: str
) -> int:
    margins = numbers_in(paddings)
    sizes = [
        size + before + after
        for size, before, after in zip(shape, margins[::2], margins[1::2], strict=True)
    ]
    attrs = WindowAttrs(strides, padding, "NHWC", (1, 1, 1, 1))
    dimensions = _placed(attrs, sizes, shape_of(filter)[:-2])
    mirrored = 2 * volume(sizes) * width + 48 * max(sizes)
    return mirrored + _convolution(sizes[0], sizes[3], shape_of(filter), dimensions, width)


CONVOLUTIONS: dict[str, MemoryNeed] = {
    "Conv": _any_rank,
    "Conv2D": _conv,
    "Conv2DBackpropFilter": _backprop_filter,
    "Conv2DBackpropInput": _backprop_input,
    "Conv3D": _conv3d,
    "Conv3DBackpropFilter": _backprop_3d,
    "Conv3DBackpropFilterV2": _backprop_filter_3d_v2,
    "Conv3DBackpropInput": _backprop_3d,
    "Conv3DBackpropInputV2": _backprop_input_3d_v2,
    "DepthwiseConv2dNative": _depthwise,
    "DepthwiseConv2dNativeBackpropFilter": _depthwise_filter,
    "DepthwiseConv2dNativeBackpropInput": _depthwise_input,
    "FusedPadConv2D": _fused_pad,
    "FusedResizeAndPadConv2D": _fused_resize,
}
