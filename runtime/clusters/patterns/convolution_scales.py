"""A convolution takes in the scales and shifts of its channels that follow it.

The engine does this itself where all arrays are part of the model. Done here, models whose weights
are inputs have it as well, and a batch normalization costs nothing at a run.
"""

from __future__ import annotations

import numpy as np

from runtime.clusters.dimensions import static
from runtime.clusters.emission import Emission, Operation
from runtime.clusters.patterns.pattern import OperationGraph
from runtime.clusters.values import Value

# Operation → axis of its weights along which the channels of its result are
_CHANNEL_AXIS = {"Conv": 0, "ConvTranspose": 1}


def take_in_scales(graph: OperationGraph, operation: Operation) -> Value | None:
    """Replace a convolution and a product, sum, difference or normalization by channel."""
    if operation.op_type == "BatchNormalization":
        return _with_normalization(graph, operation)
    if operation.op_type not in ("Mul", "Add", "Sub"):
        return None
    left, right = operation.inputs
    assert left is not None
    assert right is not None
    if operation.op_type != "Sub" and left.array is not None:
        left, right = right, left
    convolution = _convolution(graph, left)
    if convolution is None or left.model_shape != operation.outputs[0].model_shape:
        return None
    vector = _by_channel(graph.emission, right, left)
    if vector is None:
        return None
    if operation.op_type == "Mul":
        return _scaled(graph.emission, convolution, operation, vector, None)
    if operation.op_type == "Sub":
        vector = graph.emission.derive(np.negative, vector)
    return _scaled(graph.emission, convolution, operation, None, vector)


def _convolution(graph: OperationGraph, value: Value | None) -> Operation | None:
    """Return the convolution, of known weights, that makes `value` for one reader."""
    found = graph.only(value, *_CHANNEL_AXIS)
    if found is None or any(each is not None and each.array is None for each in found.inputs[1:]):
        return None
    if found.op_type == "ConvTranspose" and found.attributes.get("group", 1) != 1:
        return None
    return found


def _by_channel(emission: Emission, value: Value, image: Value) -> Value | None:
    """Return `value` as a vector `[channels]` if it is known and the same for each pixel."""
    if value.array is None:
        return None
    rank, channels = image.rank, static(image.model_shape[1])
    shape = (1,) * (rank - value.array.ndim) + value.array.shape
    if shape[1] not in (1, channels) or any(
        size != 1 for axis, size in enumerate(shape) if axis != 1
    ):
        return None
    return emission.derive(
        lambda array: np.broadcast_to(array.reshape(-1), (channels,)).copy(), value
    )


def _with_normalization(graph: OperationGraph, operation: Operation) -> Value | None:
    source, *statistics = operation.inputs
    convolution = _convolution(graph, source)
    known = [each for each in statistics if each is not None and each.array is not None]
    if convolution is None or len(known) != 4:
        return None
    scale, offset, mean, variance = known
    epsilon = np.float32(operation.attributes["epsilon"])
    derive = graph.emission.derive
    factor = derive(lambda s, v: s / np.sqrt(v + epsilon), scale, variance)
    shift = derive(lambda o, m, f: o - m * f, offset, mean, factor)
    return _scaled(graph.emission, convolution, operation, factor, shift)


def _scaled(
    emission: Emission,
    convolution: Operation,
    operation: Operation,
    factor: Value | None,
    shift: Value | None,
) -> Value:
    """Return the convolution times `factor` plus `shift`, both `[channels]`, as `operation`."""
    source, weights, *bias = convolution.inputs
    assert weights is not None
    added = bias[0] if bias else None
    if factor is not None:
        axis = _CHANNEL_AXIS[convolution.op_type]
        shape = [1] * weights.rank
        shape[axis] = -1
        weights = emission.derive(lambda w, f: w * f.reshape(shape), weights, factor)
        added = None if added is None else emission.derive(np.multiply, added, factor)
    if shift is not None:
        added = shift if added is None else emission.derive(np.add, added, shift)
    made = operation.outputs[0]
    operands = [source, weights] if added is None else [source, weights, added]
    return emission.op(
        convolution.op_type,
        operands,
        made.dtype,
        made.shape,
        layout=made.layout,
        **convolution.attributes,
    )
