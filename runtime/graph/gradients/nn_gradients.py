"""Gradient functions of neural network ops, and of ops that compute gradients.

TF: tensorflow/python/ops/nn_grad.py, rnn_grad.py, ctc_ops.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from runtime.framework.attr_value import AttributeValue
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes
from runtime.graph.node import Endpoint, Node

# A function (nodes, y) → the derivative of slope at y; see `_slope_product`.
SlopeDerivative = Callable[[GradientNodes, Endpoint], Endpoint]


def _attrs(node: Node, *names: str) -> dict[str, AttributeValue]:
    return {name: node.attr(name) for name in names}


# --- convolutions ---------------------------------------------------------------------------------

_CONV2D_ATTRS = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
_CONV3D_ATTRS = ("strides", "padding", "data_format", "dilations")
# op → (names of the attributes, op that computes the gradient of the input, op that computes the
# gradient of the filter)
_CONVOLUTIONS = {
    "Conv2D": (_CONV2D_ATTRS, "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    "DepthwiseConv2dNative": (
        _CONV2D_ATTRS, "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter",
    ),
    "Conv3D": (_CONV3D_ATTRS, "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
}  # fmt: skip


def _convolution(
    forward: str, ops: GradientNodes, node: Node, grads: Sequence[Endpoint]
) -> Gradients:
    names, to_input, to_filter = _CONVOLUTIONS[forward]
    (x, weights), attrs = node.inputs, _attrs(node, *names)
    return [
        ops.add(to_input, ops.Shape(x), weights, grads[0], **attrs),
        ops.add(to_filter, x, ops.Shape(weights), grads[0], **attrs),
    ]


def _input_gradient(
    forward: str, ops: GradientNodes, node: Node, grads: Sequence[Endpoint]
) -> Gradients:
    """Return the gradients of the inputs of a …BackpropInput node (transposed convolution).

    This op computes the gradient of the input of the convolution `forward`.
    """
    names, _, to_filter = _CONVOLUTIONS[forward]
    (_, weights, dy), attrs = node.inputs, _attrs(node, *names)
    return [
        None,
        ops.add(to_filter, grads[0], ops.Shape(weights), dy, **attrs),
        ops.add(forward, grads[0], weights, **attrs),
    ]


def _filter_gradient(
    forward: str, ops: GradientNodes, node: Node, grads: Sequence[Endpoint]
) -> Gradients:
    """Return the gradients of the inputs of a …BackpropFilter node.

    This op computes the gradient of the filter of the convolution `forward`.
    """
    names, to_input, _ = _CONVOLUTIONS[forward]
    (x, _, dy), attrs = node.inputs, _attrs(node, *names)
    return [
        ops.add(to_input, ops.Shape(x), grads[0], dy, **attrs),
        None,
        ops.add(forward, x, grads[0], **attrs),
    ]


def _convolutions() -> dict[str, GradientFunction]:
    found: dict[str, GradientFunction] = {}
    for forward, (_, to_input, to_filter) in _CONVOLUTIONS.items():
        found[forward] = functools.partial(_convolution, forward)
        found[to_input] = functools.partial(_input_gradient, forward)
        found[to_filter] = functools.partial(_filter_gradient, forward)
    return found


_DILATION_ATTRS = ("strides", "rates", "padding")


def _dilation2d(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    (x, weights), attrs = node.inputs, _attrs(node, *_DILATION_ATTRS)
    return [
        ops.Dilation2DBackpropInput(x, weights, grads[0], **attrs),
        ops.Dilation2DBackpropFilter(x, weights, grads[0], **attrs),
    ]


def _bias_add_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    dy = node.inputs[0]
    shape = ops.Shape(dy)
    if node.attr("data_format") == "NHWC":
        return [ops.BroadcastTo(grads[0], shape)]
    missing = ops.Sub(ops.Rank(dy), ops.indices(2))
    ones = ops.Fill(ops.Reshape(missing, ops.indices([1])), ops.indices(1))
    kept = ops.ConcatV2([ops.Shape(grads[0]), ones], ops.indices(0))
    return [ops.BroadcastTo(ops.Reshape(grads[0], kept), shape)]


def _bias_add_v1(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [grads[0], ops.BiasAddGrad(grads[0])]


# --- recurrent layers -----------------------------------------------------------------------------


def _block_lstm(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """BlockLSTM and BlockLSTMV2: the outputs `cs` and `h` have gradients."""
    outputs = [(node, index) for index in range(7)]
    attrs = _attrs(node, "use_peephole")
    found = ops.BlockLSTMGrad(*node.inputs, *outputs, grads[1], grads[6], **attrs)
    return [None, *found]


# --- losses -------------------------------------------------------------------------------


def cross_entropy_slope(ops: GradientNodes, node: Node, grad: Endpoint) -> Endpoint:
    """Return the gradient of the logits that comes through the second output of a cross-entropy op.

    The second output, `backprop`, is softmax(logits) − labels; `grad` is the gradient of it.
    """
    softmax = ops.Softmax(node.inputs[0])
    weighted = ops.Sum(ops.Mul(grad, softmax), ops.indices([-1]), keep_dims=True)
    output: Endpoint = ops.Mul(ops.Sub(grad, weighted), softmax)
    return output


def _ctc_loss(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """CTCLoss, CTCLossV2: return the gradient of the inputs that comes through the loss `[batch]`.

    The second output of the op is the derivative of the loss, `[time, batch, classes]`.
    """
    loss = ops.ExpandDims(grads[0], ops.indices(-1))
    return [ops.Mul(loss, (node, 1)), None, None, None]


# --- gradients of gradients -----------------------------------------------------------------------


def _leaky_relu(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.LeakyReluGrad(grads[0], node.inputs[0], alpha=node.attr("alpha"))]


def _leaky_relu_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x = node.inputs[1]
    return [ops.LeakyReluGrad(grads[0], x, alpha=node.attr("alpha")), ops.ZerosLike(x)]


def _relu_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x = node.inputs[1]
    return [ops.add(node.op, grads[0], x), ops.ZerosLike(x)]


def _elu_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """EluGrad and SeluGrad: return the gradients of the inputs `dy` and `y`.

    Both ops compute slope(y) × dy, where y is the output of Elu or Selu. If y < 0, slope(y) is
    linear in y; otherwise it is constant.
    """
    dy, y = node.inputs
    by_output = ops.SelectV2(ops.Less(y, ops.like(0, y)), ops.Mul(grads[0], dy), ops.ZerosLike(y))
    return [ops.add(node.op, grads[0], y), by_output]


def _softplus_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    dy, x = node.inputs
    divisor = ops.AddV2(ops.AddV2(ops.Exp(ops.Neg(x)), ops.like(2, x)), ops.Exp(x))
    return [ops.SoftplusGrad(grads[0], x), ops.RealDiv(ops.Mul(grads[0], dy), divisor)]


def _slope_product(
    slope_derivative: SlopeDerivative,
    ops: GradientNodes,
    node: Node,
    grads: Sequence[Endpoint],
) -> Gradients:
    """Return the gradients of the inputs `y` and `dy` of an op slope(y) × dy, such as TanhGrad.

    All of these ops except for TanhGrad and SigmoidGrad conjugate y.
    """
    y, dy = node.inputs
    conjugated = ops.conjugate(y)
    if node.op in ("TanhGrad", "SigmoidGrad"):
        by_output = ops.Mul(ops.Mul(grads[0], ops.conjugate(dy)), slope_derivative(ops, conjugated))
    else:
        by_output = ops.Mul(ops.Mul(ops.conjugate(grads[0]), dy), slope_derivative(ops, conjugated))
    return [by_output, ops.add(node.op, conjugated, grads[0])]


# op that computes slope(y) × dy → function that adds the derivative of slope at y
_SLOPE_DERIVATIVES: dict[str, SlopeDerivative] = {
    "TanhGrad": lambda ops, y: ops.Mul(ops.like(-2, y), y),
    "SigmoidGrad": lambda ops, y: ops.Sub(ops.like(1, y), ops.Mul(ops.like(2, y), y)),
    "ReciprocalGrad": lambda ops, y: ops.Mul(ops.like(-2, y), y),
    "InvGrad": lambda ops, y: ops.Mul(ops.like(-2, y), y),
    "SqrtGrad": lambda ops, y: ops.RealDiv(ops.like(-0.5, y), ops.Square(y)),
    "RsqrtGrad": lambda ops, y: ops.Mul(ops.like(-1.5, y), ops.Square(y)),
}

NN_GRADIENTS: dict[str, GradientFunction] = {
    **_convolutions(),
    "Dilation2D": _dilation2d,
    "BiasAddGrad": _bias_add_grad,
    "BiasAddV1": _bias_add_v1,
    "BlockLSTM": _block_lstm,
    "BlockLSTMV2": _block_lstm,
    "CTCLoss": _ctc_loss,
    "CTCLossV2": _ctc_loss,
    "LeakyRelu": _leaky_relu,
    "LeakyReluGrad": _leaky_relu_grad,
    "ReluGrad": _relu_grad,
    "Relu6Grad": _relu_grad,
    "EluGrad": _elu_grad,
    "SeluGrad": _elu_grad,
    "SoftplusGrad": _softplus_grad,
    **{
        op: functools.partial(_slope_product, slope_derivative)
        for op, slope_derivative in _SLOPE_DERIVATIVES.items()
    },
}
