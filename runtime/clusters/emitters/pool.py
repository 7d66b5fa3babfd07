"""Emitters of average and maximum pools over two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emitters.windows import Image, image, place, text
from runtime.clusters.op_emitter import FLOAT, OpEmitter
from runtime.clusters.values import Value
from runtime.foundation.errors import OpError
from runtime.graph.node import Node
from runtime.kernels.nn.window import WindowAttrs, channel_axis, spatial_values


def _average(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write AvgPool or AvgPool3D; padding does not count."""
    return _pooled(emission, node, inputs[0], node.attr("ksize"), node.attr("strides"))[1]


def _maximum(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write MaxPool or MaxPool3D."""
    ksize, strides = node.attr("ksize"), node.attr("strides")
    return _guarded(emission, *_pooled(emission, node, inputs[0], ksize, strides))


def _maximum_v2(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write MaxPoolV2, whose windows and strides are tensors."""
    x, ksize, strides = inputs
    if ksize.constant is None or strides.constant is None:
        raise DeclinedError("windows that only a run knows")
    sizes, steps = np.ravel(ksize.constant).tolist(), np.ravel(strides.constant).tolist()
    return _guarded(emission, *_pooled(emission, node, x, sizes, steps))


def _pooled(
    emission: Emission, node: Node, x: Value, ksize: Sequence[int], strides: Sequence[int]
) -> tuple[Image, Value]:
    """Write a pool; return its input and its result."""
    data_format = text(node, "data_format")
    explicit = node.find_attr("explicit_paddings") or ()
    attrs = WindowAttrs(strides, text(node, "padding"), data_format, (), explicit)
    windows = _windows(attrs, ksize)
    source = image(emission, x, data_format)
    placed = place(attrs, source.spatial, windows)
    op_type = "AveragePool" if node.op.startswith("Avg") else "MaxPool"
    return source, emission.op(
        op_type,
        [source.value],
        x.dtype,
        source.shape(placed.outputs),
        layout=source.layout,
        **placed.attributes,
    )


def _windows(attrs: WindowAttrs, ksize: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of windows; raise DeclinedError if they are not over spatial axes only."""
    try:
        attrs.check("pool")
        pairs = attrs.explicit_pairs()
    except OpError as error:
        raise DeclinedError(str(error)) from None
    if len(ksize) != len(attrs.data_format) or min(ksize) < 1:
        raise DeclinedError(f"windows of {ksize}")
    if ksize[0] != 1 or ksize[channel_axis(attrs.data_format)] != 1:
        raise DeclinedError(f"windows of {ksize} over the batch or the channels")
    windows: tuple[int, ...] = spatial_values(ksize, attrs.data_format)
    if any(max(pair) >= window for pair, window in zip(pairs, windows, strict=True) if any(pair)):
        raise DeclinedError("padding as large as a window")
    return windows


def _guarded(emission: Emission, source: Image, pooled: Value) -> Value:
    """Require a finite input of a maximum.

    TensorFlow ignores NaN and starts with the lowest finite number; what the engine gives depends
    on the position of NaN in a window.
    """
    emission.require_finite(source.value)
    return pooled


_TYPES = {"T": FLOAT}

EMITTERS = (
    OpEmitter("AvgPool", _average, _TYPES),
    OpEmitter("AvgPool3D", _average, _TYPES),
    OpEmitter("MaxPool", _maximum, _TYPES),
    OpEmitter("MaxPool3D", _maximum, _TYPES),
    OpEmitter("MaxPoolV2", _maximum_v2, _TYPES, constants=(1, 2)),
)
