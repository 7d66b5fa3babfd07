"""Gradient functions of pooling ops, and of the ops that compute gradients of pooling.

TF: tensorflow/python/ops/nn_grad.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.attr_value import AttributeValue
from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes
from runtime.graph.node import Endpoint, Node


def _attrs(node: Node, *names: str) -> dict[str, AttributeValue]:
    return {name: node.attr(name) for name in names}


_POOL_ATTRS = ("ksize", "strides", "padding", "data_format")


def _max_pool_v2(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, ksize, strides = node.inputs
    attrs = _attrs(node, "padding", "data_format")
    return [ops.MaxPoolGradV2(x, (node, 0), grads[0], ksize, strides, **attrs), None, None]


def _max_pool_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """MaxPoolGrad: return zeros for the inputs x and y, and a MaxPoolGradGrad for the third input.

    x and y only determine the positions of the largest values, which are piecewise constant.
    """
    x, y, _ = node.inputs
    dy = ops.MaxPoolGradGrad(x, y, grads[0], **_attrs(node, *_POOL_ATTRS))
    return [ops.ZerosLike(x), ops.ZerosLike(y), dy]


def _avg_pool_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [None, ops.AvgPool(grads[0], **_attrs(node, *_POOL_ATTRS))]


def _max_pool_3d(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.MaxPool3DGrad(node.inputs[0], (node, 0), grads[0], **_attrs(node, *_POOL_ATTRS))]


def _avg_pool_3d(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.AvgPool3DGrad(ops.Shape(node.inputs[0]), grads[0], **_attrs(node, *_POOL_ATTRS))]


def _max_pool_grad_v2(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, y, _, ksize, strides = node.inputs
    attrs = _attrs(node, "padding", "data_format")
    dy = ops.MaxPoolGradGradV2(x, y, grads[0], ksize, strides, **attrs)
    return [ops.ZerosLike(x), ops.ZerosLike(y), dy, None, None]


def _max_pool_3d_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, y, _ = node.inputs
    dy = ops.MaxPool3DGradGrad(x, y, grads[0], **_attrs(node, *_POOL_ATTRS))
    return [ops.ZerosLike(x), ops.ZerosLike(y), dy]


def _avg_pool_3d_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [None, ops.AvgPool3D(grads[0], **_attrs(node, *_POOL_ATTRS))]


def _back_to_input(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """MaxPoolGradGrad and MaxPool3DGradGrad: zeros for x and y, the op `…Grad` for the third."""
    x, y, _ = node.inputs
    op = node.op.replace("GradGrad", "Grad")
    dy = ops.add(op, x, y, grads[0], **_attrs(node, *_POOL_ATTRS))
    return [ops.ZerosLike(x), ops.ZerosLike(y), dy]


def _max_pool_with_argmax(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    attrs = _attrs(node, "ksize", "strides", "padding", "include_batch_in_index")
    return [ops.MaxPoolGradWithArgmax(node.inputs[0], grads[0], (node, 1), **attrs)]


def _fractional_max_pool(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    given = (node.inputs[0], (node, 0), grads[0], (node, 1), (node, 2))
    return [ops.FractionalMaxPoolGrad(*given, **_attrs(node, "overlapping"))]


def _fractional_avg_pool(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    shape = ops.Shape(node.inputs[0], out_type=DataType.INT64)
    given = (shape, grads[0], (node, 1), (node, 2))
    return [ops.FractionalAvgPoolGrad(*given, **_attrs(node, "overlapping"))]


POOLING_GRADIENTS: dict[str, GradientFunction] = {
    "MaxPoolV2": _max_pool_v2,
    "MaxPoolGrad": _max_pool_grad,
    "MaxPoolGradV2": _max_pool_grad_v2,
    "MaxPoolGradGrad": _back_to_input,
    "MaxPoolWithArgmax": _max_pool_with_argmax,
    "MaxPool3D": _max_pool_3d,
    "MaxPool3DGrad": _max_pool_3d_grad,
    "MaxPool3DGradGrad": _back_to_input,
    "AvgPoolGrad": _avg_pool_grad,
    "AvgPool3D": _avg_pool_3d,
    "AvgPool3DGrad": _avg_pool_3d_grad,
    "FractionalMaxPool": _fractional_max_pool,
    "FractionalAvgPool": _fractional_avg_pool,
}
