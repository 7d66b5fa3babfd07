"""Emitters of convolutions and transposed convolutions.

Filters must be constants or follow from variables: they are brought into ONNX's order by numpy, so
that the model has no operation for it and the engine can choose a faster order still.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.clusters.dimensions import Dimension, static, static_shape
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emitters.windows import (
    Image,
    image,
    place,
    place_static,
    spatial_dilations,
    window_attrs,
)
from runtime.clusters.op_emitter import FLOAT, OpEmitter
from runtime.clusters.values import Value
from runtime.graph.node import Node
from runtime.kernels.nn.window import WindowAttrs, channel_axis, spatial_values


def _convolution(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write Conv2D or Conv3D: `x` `[n, *spatial, c]`, `filter` `[*windows, c / groups, out]`."""
    x, filter = inputs
    attrs = window_attrs(node)
    source = image(emission, x, attrs.data_format)
    windows, inner, outer = _filter_sizes(filter, x.rank)
    if source.channels % inner or outer % (source.channels // inner):
        raise DeclinedError(f"{source.channels} channels, a filter for {inner} to {outer}")
    weights = emission.derive(_channels_before_windows, filter)
    return _convolved(emission, source, weights, attrs, windows, source.channels // inner)


def _depthwise(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write DepthwiseConv2dNative: `filter` `[kh, kw, c, multiplier]`."""
    x, filter = inputs
    attrs = window_attrs(node)
    strides = spatial_values(attrs.strides, attrs.data_format)
    if len(set(strides)) != 1:
        raise DeclinedError(f"strides {strides} differ")
    source = image(emission, x, attrs.data_format)
    windows, depth, multiplier = _filter_sizes(filter, x.rank)
    if depth != source.channels:
        raise DeclinedError(f"{source.channels} channels, a filter for {depth}")
    count = depth * multiplier
    weights = emission.derive(
        lambda array: array.transpose(2, 3, 0, 1).reshape(count, 1, *windows), filter
    )
    return _convolved(emission, source, weights, attrs, windows, depth)


def _filter_sizes(filter: Value, rank: int) -> tuple[tuple[int, ...], int, int]:
    """Return the sizes of windows, and the last two sizes; decline if one is 0."""
    if filter.rank != rank:
        raise DeclinedError(f"a filter of rank {filter.rank} for rank {rank}")
    *windows, inner, outer = map(static, filter.shape)
    if not all((*windows, inner, outer)):
        raise DeclinedError("a filter without elements")
    return tuple(windows), inner, outer


def _channels_before_windows(filter: np.ndarray) -> np.ndarray:
    """Return a filter `[*windows, a, b]` as `[b, a, *windows]`."""
    return filter.transpose(filter.ndim - 1, filter.ndim - 2, *range(filter.ndim - 2))


def _convolved(
    emission: Emission,
    source: Image,
    weights: Value,
    attrs: WindowAttrs,
    windows: Sequence[int],
    groups: int,
) -> Value:
    placed = place(attrs, source.spatial, windows)
    return emission.op(
        "Conv",
        [source.value, weights],
        source.value.dtype,
        source.shape(placed.outputs, static(weights.shape[0])),
        layout=source.layout,
        group=groups,
        **placed.attributes,
    )


def _transposed(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write Conv2DBackpropInput or Conv3DBackpropInputV2, the gradient of a convolution's input.

    `filter` is `[*windows, out, c]`, where `c` are the channels of the gradient that is given.
    """
    wanted, filter, gradient = inputs
    attrs = window_attrs(node)
    source = image(emission, gradient, attrs.data_format)
    windows, outer, inner = _filter_sizes(filter, gradient.rank)
    sizes = _wanted_sizes(wanted, source, outer, attrs)
    expected = source.shape(sizes, outer)
    if inner != source.channels:
        raise DeclinedError(f"{source.channels} channels, a filter for {inner}")
    # The engine makes all products of one image before it adds them.
    if math.prod((*windows, outer, *static_shape(source.spatial))) > _MAX_PRODUCTS:
        raise DeclinedError(f"windows of {windows} at {source.spatial} positions")
    weights = emission.derive(_channels_before_windows, filter)
    return emission.op(
        "ConvTranspose",
        [source.value, weights],
        gradient.dtype,
        expected,
        layout=source.layout,
        kernel_shape=list(windows),
        **_transposed_attributes(attrs, source, sizes, windows),
    )


def _wanted_sizes(wanted: Value, source: Image, outer: int, attrs: WindowAttrs) -> tuple[int, ...]:
    """Return the spatial sizes of the result; all sizes are given, or only the spatial ones."""
    given = _elements(wanted)
    if len(given) == len(source.spatial):
        return tuple(map(static, given))
    if len(given) != len(attrs.data_format):
        raise DeclinedError(f"{len(given)} sizes for {attrs.data_format}")
    spatial = tuple(map(static, spatial_values(given, attrs.data_format)))
    if given[0] != source.batch or given[channel_axis(attrs.data_format)] != outer:
        raise DeclinedError(f"a batch of {source.batch} and {outer} channels for sizes {given}")
    return spatial


def _elements(wanted: Value) -> tuple[Dimension, ...]:
    if wanted.rank != 1:
        raise DeclinedError("sizes that are no vector")
    if wanted.sizes is not None:
        return wanted.sizes
    if wanted.constant is None:
        raise DeclinedError("sizes that only a run knows")
    return tuple(int(size) for size in wanted.constant)


def _transposed_attributes(
    attrs: WindowAttrs, source: Image, sizes: Sequence[int], windows: Sequence[int]
) -> dict[str, Any]:
    """Return ONNX's attributes, from the convolution of which this is the gradient."""
    strides = spatial_values(attrs.strides, attrs.data_format)
    dilations = spatial_dilations(attrs)
    befores, afters, rests = [], [], []
    for size, window, stride, dilation, pair, given in zip(
        sizes, windows, strides, dilations, attrs.explicit_pairs(), source.spatial, strict=True
    ):
        placed = place_static(size, window, stride, attrs.padding, dilation, pair)
        if placed.output != given or not given:
            raise DeclinedError(f"{given} outputs for an input of {size}, not {placed.output}")
        rest = placed.padded - (placed.output - 1) * stride - (window - 1) * dilation - 1
        befores.append(placed.pad_before)
        afters.append(placed.pad_after)
        rests.append(rest)
    if any(rest >= stride for rest, stride in zip(rests, strides, strict=True) if rest):
        raise DeclinedError(f"{rests} elements after the last window")
    return {
        "strides": list(strides),
        "dilations": list(dilations),
        "pads": befores + afters,
        "output_padding": rests if any(rests) else None,
    }


_MAX_PRODUCTS = 1 << 28  # 1 GiB
_TYPES = {"T": FLOAT}

EMITTERS = (
    OpEmitter("Conv2D", _convolution, _TYPES, is_heavy=True),
    OpEmitter("Conv2DBackpropInput", _transposed, _TYPES, constants=(0,), is_heavy=True),
    OpEmitter("Conv3D", _convolution, _TYPES, is_heavy=True),
    OpEmitter("Conv3DBackpropInputV2", _transposed, _TYPES, constants=(0,), is_heavy=True),
    OpEmitter("DepthwiseConv2dNative", _depthwise, _TYPES, is_heavy=True),
)
