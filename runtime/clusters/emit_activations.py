"""Emitters of activation functions, clipping, biases and softmax.

TF: tensorflow/core/ops/nn_ops.cc
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emit_elementwise import (
    ARITHMETIC,
    ORDERED,
    UNSIGNED,
    chain,
    elementwise,
    like,
)
from runtime.clusters.emit_shape import reshaped
from runtime.clusters.op_emitter import FLOAT, FLOATS, OpEmitter
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node
from runtime.kernels.nn.activations import SELU_SCALE, SELU_SCALE_ALPHA

_RELU_TYPES = FLOATS | {DataType.INT32, DataType.INT8}


def clipped(emission: Emission, value: Value, low: float, high: float) -> Value:
    """Return min(max(value, low), high); the engine fuses it into a convolution before it."""
    bounds = (like(emission, low, value), like(emission, high, value))
    return elementwise(emission, "Clip", value, *bounds)


def _relu6(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return clipped(emission, inputs[0], 0, 6)


def _leaky_relu(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    return elementwise(emission, "LeakyRelu", inputs[0], alpha=float(node.attr("alpha")))


def _selu(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    alpha = SELU_SCALE_ALPHA / SELU_SCALE
    return elementwise(emission, "Selu", inputs[0], alpha=alpha, gamma=SELU_SCALE)


def _clip_by_value(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, low, high = inputs
    if any(bound.rank and bound.shape != value.shape for bound in (low, high)):
        raise DeclinedError("a bound has neither rank 0 nor the shape of the tensor")
    if low.constant is not None and high.constant is not None:
        is_plain = low.rank == high.rank == 0 and low.constant <= high.constant
        if is_plain:
            return elementwise(emission, "Clip", value, low, high)
    # In this order, as with bounds that cross each other the lower one is the result.
    return elementwise(emission, "Max", elementwise(emission, "Min", value, high), low)


def _bias_add(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    value, bias = inputs
    is_first = node.op == "BiasAdd" and node.attr("data_format") == "NCHW"
    if bias.rank != 1 or value.rank < 2 or bias.shape[0] != value.shape[1 if is_first else -1]:
        raise DeclinedError("the bias is not a vector with one element a channel")
    if not is_first:
        return elementwise(emission, "Add", value, bias)
    value = emission.as_is(value)
    shape = (*bias.shape, *(1,) * (value.rank - 2))
    return elementwise(emission, "Add", value, reshaped(emission, bias, shape))


def _softmax(emission: Emission, node: Node, inputs: Sequence[Value]) -> Value:
    logits = emission.as_is(inputs[0])
    if logits.rank < 1:
        raise DeclinedError("the logits have no axes, which is an error")
    return emission.op(node.op, [logits], logits.dtype, logits.shape, axis=-1)


EMITTERS = (
    OpEmitter("BiasAdd", _bias_add, {"T": ARITHMETIC}),
    OpEmitter("BiasAddV1", _bias_add, {"T": ARITHMETIC}),
    OpEmitter("ClipByValue", _clip_by_value, {"T": ORDERED - UNSIGNED}),
    OpEmitter("Elu", chain("Elu"), {"T": FLOAT}),
    OpEmitter("LeakyRelu", _leaky_relu, {"T": FLOAT}),
    OpEmitter("LogSoftmax", _softmax, {"T": FLOATS}),
    OpEmitter("Relu", chain("Relu"), {"T": _RELU_TYPES}),
    OpEmitter("Relu6", _relu6, {"T": ORDERED}),
    OpEmitter("Selu", _selu, {"T": FLOAT}),
    OpEmitter("Softmax", _softmax, {"T": FLOATS}),
    OpEmitter("Softplus", chain("Softplus"), {"T": FLOAT}),
    OpEmitter("Softsign", chain("Softsign"), {"T": FLOAT}),
)
