"""Emitters of batch normalization in inference, and of local response normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.clusters.dimensions import product
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emitters.windows import Image, image, text
from runtime.clusters.op_emitter import FLOAT, OpEmitter
from runtime.clusters.values import Layout, Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
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
    """Write LRN: each element is divided by a power of the squares around it, over channels."""
    source = image(emission, inputs[0], "NHWC")
    count = 2 * int(node.attr("depth_radius")) + 1
    result = emission.op(
        "LRN",
        [source.value],
        inputs[0].dtype,
        inputs[0].shape,
        layout=Layout.CHANNELS_FIRST,
        size=count,
        alpha=float(node.attr("alpha")) * count,  # ONNX's is for the mean, TensorFlow's for the sum
        beta=float(node.attr("beta")),
        bias=float(node.attr("bias")),
    )
    # The engine adds and subtracts squares along the channels, so that one which is not finite
    # stays in the sum.
    emission.require_finite(result)
    return result


def _is_usual_response(node: Node) -> bool:
    """Return whether kernels take the radius, and the engine the powers; others are errors."""
    has_radius = 0 <= node.attr("depth_radius") <= _MAX_RADIUS
    return bool(has_radius and node.attr("alpha") > 0 and node.attr("beta") > 0)


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
    OpEmitter("LRN", _local_response, _TYPES, check=_is_usual_response),
)
