"""Windows of convolutions and pools over sizes that may be symbolic.

A symbolic size can only be passed on unchanged, by windows of stride 1 whose padding makes up for
their size. Everything else requires integers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from runtime.clusters.bounds import MAX_SIZE
from runtime.clusters.dimensions import Dimension, InexpressibleError, Shape, SymbolicSize
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.values import Layout, Value
from runtime.foundation.errors import OpError
from runtime.graph.node import Node
from runtime.kernels.nn.window import (
    WindowAttrs,
    WindowedDimension,
    channel_axis,
    is_channels_first,
    spatial_values,
    windowed_dimension,
)


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedWindows:
    """Windows over the spatial axes: ONNX's attributes, and the sizes of the output."""

    outputs: Shape
    attributes: dict[str, Any]  # kernel_shape, strides, pads and, for convolutions, dilations


def window_attrs(node: Node) -> WindowAttrs:
    """Return the attributes of a convolution that place its windows.

    Raises DeclinedError if they are ones that TensorFlow refuses.
    """
    attrs = WindowAttrs(
        node.attr("strides"),
        text(node, "padding"),
        text(node, "data_format"),
        node.find_attr("dilations") or (),
        node.find_attr("explicit_paddings") or (),
    )
    try:
        attrs.check(node.op)
        attrs.explicit_pairs()
    except OpError as error:
        raise DeclinedError(str(error)) from None
    return attrs


def text(node: Node, name: str) -> str:
    """Return the attribute `name`, a string."""
    value = node.attr(name)
    return value.decode() if isinstance(value, bytes) else str(value)


def place(attrs: WindowAttrs, sizes: Shape, windows: Sequence[int]) -> PlacedWindows:
    """Place windows over spatial axes of `sizes`; `windows` are their sizes.

    Raises DeclinedError if TensorFlow would refuse a size, or if there is nothing to compute.
    """
    strides = spatial_values(attrs.strides, attrs.data_format)
    dilations = spatial_dilations(attrs)
    pairs = attrs.explicit_pairs()
    placed = [
        _place_one(*each, attrs.padding)
        for each in zip(sizes, windows, strides, dilations, pairs, strict=True)
    ]
    befores, afters = [each[1] for each in placed], [each[2] for each in placed]
    if max(*windows, *strides, *dilations, *befores, *afters) > MAX_SIZE:
        raise DeclinedError(f"windows of {windows}, strides {strides}, dilations {dilations}")
    attributes: dict[str, Any] = {
        "kernel_shape": list(windows),
        "strides": list(strides),
        "pads": befores + afters,
    }
    if any(each != 1 for each in dilations):
        attributes["dilations"] = list(dilations)
    return PlacedWindows(tuple(each[0] for each in placed), attributes)


def spatial_dilations(attrs: WindowAttrs) -> tuple[int, ...]:
    """Return the dilation of each spatial axis; it is 1 if the node has none."""
    return spatial_values(attrs.dilations or (1,) * len(attrs.data_format), attrs.data_format)


def _place_one(
    size: Dimension, window: int, stride: int, dilation: int, pair: tuple[int, int], padding: str
) -> tuple[Dimension, int, int]:
    """Return (size of the output, padding before, padding after) of one axis."""
    if isinstance(size, SymbolicSize):
        needed = (window - 1) * dilation
        before, after = (needed // 2, needed - needed // 2) if padding == "SAME" else pair
        if stride != 1 or before + after != needed:
            raise InexpressibleError(f"windows of {window} with stride {stride} over {size}")
        return size, before, after
    placed = place_static(size, window, stride, padding, dilation, pair)
    if placed.output == 0 or size == 0:
        raise DeclinedError(f"windows of {window} over {size} elements give nothing")
    return placed.output, placed.pad_before, placed.pad_after


def place_static(
    size: int, window: int, stride: int, padding: str, dilation: int, pair: tuple[int, int]
) -> WindowedDimension:
    """Place windows over an axis of an integer size; raise DeclinedError if TensorFlow refuses."""
    try:
        return windowed_dimension(size, window, stride, padding, dilation, pair)
    except OpError as error:
        raise DeclinedError(str(error)) from None


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """A tensor in the order that ONNX wants, batch, channels, then spatial axes, with its sizes."""

    value: Value
    batch: Dimension
    channels: int
    spatial: Shape
    is_last: bool  # TensorFlow's shape has the channels last
    layout: Layout  # in which results of the same form are

    def shape(self, spatial: Shape, channels: int | None = None) -> Shape:
        """Return TensorFlow's shape of a tensor with the same batch and form."""
        depth = self.channels if channels is None else channels
        if self.is_last:
            return (self.batch, *spatial, depth)
        return (self.batch, depth, *spatial)


def image(emission: Emission, value: Value, data_format: str) -> Image:
    """Return `value`, whose axes `data_format` names, channels first in the model.

    Raises DeclinedError if the rank differs or the number of channels is not a positive integer.
    """
    if value.rank != len(data_format):
        raise DeclinedError(f"rank {value.rank} for {data_format}")
    channels = value.shape[channel_axis(data_format)]
    if isinstance(channels, SymbolicSize) or channels < 1:
        raise DeclinedError(f"{channels} channels")
    is_last = not is_channels_first(data_format)
    moved = emission.channels_first(value) if is_last else emission.as_is(value)
    spatial = tuple(value.shape[1:-1] if is_last else value.shape[2:])
    return Image(moved, value.shape[0], channels, spatial, is_last, moved.layout)
