"""Gradient functions of quantisation ops.

The gradient of a value passes unchanged; in the FakeQuant ops, only if the value is in the range.

TF: tensorflow/python/ops/array_grad.py, fake_quant ops' gradients in math_grad.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes
from runtime.graph.node import Endpoint, Node


def _straight_through(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [grads[0], *([None] * (len(node.inputs) - 1))]


def _fake_quant_by_args(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    attrs = {name: node.attr(name) for name in ("min", "max", "num_bits", "narrow_range")}
    return [ops.FakeQuantWithMinMaxArgsGradient(grads[0], node.inputs[0], **attrs)]


def _fake_quant(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """FakeQuantWithMinMaxVars: return the gradients of the values and of the range's limits."""
    attrs = {name: node.attr(name) for name in ("num_bits", "narrow_range")}
    return list(ops.add(f"{node.op}Gradient", grads[0], *node.inputs, **attrs))


def _by_range(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """QuantizeAndDequantizeV4: return the gradients of the values and of the range's limits."""
    return list(ops.QuantizeAndDequantizeV4Grad(grads[0], *node.inputs, axis=node.attr("axis")))


def _of_range_gradient(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """QuantizeAndDequantizeV4Grad: linear in its first input; its other outputs are zeros.

    TensorFlow registers a function that cannot work, as it returns three gradients of four inputs.
    """
    again = ops.QuantizeAndDequantizeV4Grad(grads[0], *node.inputs[1:], axis=node.attr("axis"))
    return [again[0], None, None, None]


QUANTIZATION_GRADIENTS: dict[str, GradientFunction] = {
    "QuantizeAndDequantize": _straight_through,
    "QuantizeAndDequantizeV4": _by_range,
    "QuantizeAndDequantizeV4Grad": _of_range_gradient,
    "QuantizeAndDequantizeV2": _straight_through,
    "QuantizeAndDequantizeV3": _straight_through,
    "FakeQuantWithMinMaxArgs": _fake_quant_by_args,
    "FakeQuantWithMinMaxVars": _fake_quant,
    "FakeQuantWithMinMaxVarsPerChannel": _fake_quant,
}
