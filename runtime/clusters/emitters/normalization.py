"""Emitters of batch normalization in inference, and of local response normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.clusters.dimensions import product
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emitters.elementwise import elementwise, like
from runtime.clusters.emitters.windows import Image, image, text
from runtime.clusters.op_emitter import FLOAT, OpEmitter
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
from runtime.kernels.nn.normalization import BAND_CHANNELS
from runtime.kernels.nn.window import is_channels_first

_FORMATS = {False: ("NHWC", "NDHWC"), True: ("NCHW", "NCDHW")}


def _is_inference(node: Node) -> bool:
    return not node.attr("is_training")


def _batch_normalization(emission: Emission, node: Node, inputs: Sequence[Value]) -> list[Value]:
    """Write FusedBatchNorm, V2 or V3: `x` `[n, …, c]`, then scale, offset, mean, variance `[c]`.

    The engine folds it into a convolution before it, or makes it a convolution.
    """
    x, *statistics = inputs
    wanted = is_channels_first(text(node, "data_format"))
    # TensorFlow takes a tensor of rank 5 under a format of four letters as well.
    data_format = next((each for each in _FORMATS[wanted] if len(each) == x.rank), "NHWC")
    source = image(emission, x, data_format)
    if any(each.shape != (source.channels,) for each in statistics):
        raise DeclinedError(f"statistics that are not [{source.channels}]")
    y = emission.op(
        "BatchNormalization",
        [source.value, *statistics],
        x.dtype,
        x.shape,
        layout=source.layout,
        epsilon=float(node.attr("epsilon")),
    )
    zeros = emission.constant(np.zeros(source.channels, np.float32))
    spaces = [zeros, zeros, emission.constant(np.zeros((), np.float32))]
    means = [_unless_empty(emission, source, each) for each in statistics[2:]]
    return [y, *means, *spaces][: len(node.output_types)]


def _unless_empty(emission: Emission, source: Image, statistic: Value) -> Value:
    """Return a statistic as TensorFlow returns it: NaN if `x` has no elements."""
    count = emission.size(product((source.batch, *source.spatial)))
    if count.constant is not None:
        if count.constant == 0:
            raise DeclinedError("an input without elements")
        return statistic
    zero = emission.constant(0, DataType.INT64)
    is_empty = emission.op("Equal", [count, zero], DataType.BOOL, ())
    nan = emission.constant(np.full(source.channels, np.nan, np.float32))
    return emission.op("Where", [is_empty, nan, statistic], statistic.dtype, statistic.shape)


def _local_response(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    """Write LRN: each element is divided by a power of the squares around it, over channels.

    The engine's own operation adds a square when it comes into the window and subtracts it when it
    leaves, so that a large one takes digits from all channels after it. A convolution adds those
    of each window.
    """
    source = image(emission, inputs[0], "NHWC")
    if source.channels > BAND_CHANNELS:
        raise DeclinedError(f"a band of {source.channels} channels")
    squares = elementwise(emission, "Mul", source.value, source.value)
    weights = _window_weights(emission, node, source.channels)
    biases = emission.constant(np.full(source.channels, node.attr("bias"), np.float32))
    norm = emission.op(
        "Conv",
        [squares, weights, biases],
        squares.dtype,
        squares.shape,
        layout=source.layout,
        kernel_shape=[1, 1],
        strides=[1, 1],
        pads=[0, 0, 0, 0],
    )
    emission.require_finite(norm)  # a sum has 0 times the squares that are outside of its window
    return _divided_by_power(emission, source.value, norm, float(node.attr("beta")))


def _window_weights(emission: Emission, node: Node, count: int) -> Value:
    """Return the filter `[count, count, 1, 1]` that sums windows, multiplied by `alpha`."""
    channels = np.arange(count)
    band = np.abs(channels[:, None] - channels) <= node.attr("depth_radius")
    weights = band * np.float32(node.attr("alpha"))
    return emission.constant(weights[:, :, np.newaxis, np.newaxis])


def _divided_by_power(emission: Emission, x: Value, norm: Value, beta: float) -> Value:
    if beta == 1.0:
        return elementwise(emission, "Div", x, norm)
    if beta == 0.5:
        return elementwise(emission, "Div", x, elementwise(emission, "Sqrt", norm))
    logarithm = elementwise(emission, "Log", norm)
    scaled = elementwise(emission, "Mul", logarithm, like(emission, -beta, norm))
    return elementwise(emission, "Mul", x, elementwise(emission, "Exp", scaled))


def _has_radius(node: Node) -> bool:
    """Return whether kernels take the radius; others are errors."""
    return bool(0 <= node.attr("depth_radius") <= _MAX_RADIUS)


_MAX_RADIUS = 1 << 20  # far more channels than tensors have
_TYPES = {"T": FLOAT}

EMITTERS = (
    OpEmitter("FusedBatchNorm", _batch_normalization, _TYPES, check=_is_inference),
    OpEmitter(
        "FusedBatchNormV2", _batch_normalization, {"T": FLOAT, "U": FLOAT}, check=_is_inference
    ),
    OpEmitter(
        "FusedBatchNormV3", _batch_normalization, {"T": FLOAT, "U": FLOAT}, check=_is_inference
    ),
    OpEmitter("LRN", _local_response, _TYPES, check=_has_radius),
)
