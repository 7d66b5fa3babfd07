"""Gradient functions of normalisation ops, and of the ops that compute gradients of them.

TF: tensorflow/python/ops/nn_grad.py, nn_fused_batch_norm_grad.py
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.framework.attr_value import AttributeValue
from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.node import Endpoint, Node


def _attrs(node: Node, *names: str) -> dict[str, AttributeValue]:
    return {name: node.attr(name) for name in names}


def _fused_batch_norm(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """FusedBatchNorm, V2 and V3: add FusedBatchNormGrad of the same version.

    If `is_training` is true, this node reads the batch statistics that the forward node outputs,
    else the inputs `mean` and `variance` of the forward node.
    """
    x, scale, _, mean, variance = node.inputs
    is_training = node.attr("is_training")
    version = node.op.removeprefix("FusedBatchNorm")
    saved = [(node, 3), (node, 4)] if is_training else [mean, variance]
    if version == "V3":
        saved.append((node, 5))
    attrs = _attrs(node, "epsilon", "data_format", "is_training")
    found = ops.add(f"FusedBatchNormGrad{version}", grads[0], x, scale, *saved, **attrs)
    return [*found[:3], None, None]


def _lrn(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    attrs = _attrs(node, "depth_radius", "bias", "alpha", "beta")
    return [ops.LRNGrad(grads[0], node.inputs[0], (node, 0), **attrs)]


def _global_batch_norm(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    x, mean, variance, _, gamma = node.inputs
    attrs = _attrs(node, "variance_epsilon", "scale_after_normalization")
    found = ops.BatchNormWithGlobalNormalizationGrad(x, mean, variance, gamma, grads[0], **attrs)
    return list(found)


# --- second derivatives of batch normalisation ----------------------------------------------------


def _fused_batch_norm_grad(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """FusedBatchNormGrad, V2 and V3: return the gradients of `y_backprop`, `x` and `scale`.

    float16 and bfloat16 are computed in float32.
    """
    dtype = type_of(node.inputs[1])
    function = _second_of_batch if node.attr("is_training") else _second_of_given
    dy, x, scale = function(_Channels(ops, node, grads))
    rest = [None] * (len(node.inputs) - 3)
    return [ops.Cast(dy, DstT=dtype), ops.Cast(x, DstT=dtype), scale, *rest]


class _Channels:
    """The operands of one FusedBatchNormGrad, with vectors of the shape `[1, …, channels, …]`.

    The op computes dx, dscale and doffset; `by_x`, `by_scale` and `by_offset` are the gradients of
    these three.
    """

    def __init__(self, ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> None:
        self.ops = ops
        self._format = str(node.attr("data_format"))
        self.dy, self.x, self.by_x = (
            ops.Cast(each, DstT=DataType.FLOAT) for each in (*node.inputs[:2], grads[0])
        )
        self.scale, self.mean, self.variance = map(self._spread, node.inputs[2:5])
        self.by_scale, self.by_offset = map(self._spread, grads[1:3])
        self.epsilon = ops.like(float(node.attr("epsilon")), self.scale)

    def _spread(self, vector: Endpoint) -> Endpoint:
        shape = [-1 if each == "C" else 1 for each in self._format]
        output: Endpoint = self.ops.Reshape(vector, self.ops.indices(shape))
        return output

    def _reduced(self, op: str, x: Endpoint) -> Endpoint:
        axes = [axis for axis, each in enumerate(self._format) if each != "C"]
        output: Endpoint = self.ops.add(op, x, self.ops.indices(axes), keep_dims=True)
        return output

    def mean_of(self, x: Endpoint) -> Endpoint:
        """Return the mean of each channel."""
        return self._reduced("Mean", x)

    def sum_of(self, x: Endpoint) -> Endpoint:
        """Return the sum of each channel, as a vector `[channels]`."""
        output: Endpoint = self.ops.Reshape(self._reduced("Sum", x), self.ops.indices([-1]))
        return output


def _second_of_given(at: _Channels) -> tuple[Endpoint, Endpoint, Endpoint]:
    """With given statistics, dx = dy × scale × r and dscale = Σ dy (x − mean) r."""
    ops = at.ops
    r = ops.Rsqrt(ops.AddV2(at.variance, at.epsilon))
    by_scale = ops.Mul(at.by_scale, r)
    by_dy = ops.AddV2(
        ops.Mul(ops.Mul(at.by_x, at.scale), r),
        ops.AddV2(ops.Mul(by_scale, ops.Sub(at.x, at.mean)), at.by_offset),
    )
    return by_dy, ops.Mul(by_scale, at.dy), at.sum_of(ops.Mul(ops.Mul(at.by_x, at.dy), r))


def _second_of_batch(at: _Channels) -> tuple[Endpoint, Endpoint, Endpoint]:
    """With the statistics of the batch, differentiate dx = scale × r (c − r² p x̂) and dscale.

    x̂ and c are x and dy less their means, r the reciprocal of the standard deviation, p the mean of
    c × x̂; dscale = r Σ c x̂. Below, u is `by_x` less its mean, a the mean of u × c and b the mean
    of u × x̂.
    """
    ops = at.ops
    x = ops.Sub(at.x, at.mean_of(at.x))
    r2 = ops.Reciprocal(ops.AddV2(at.mean_of(ops.Square(x)), at.epsilon))
    r = ops.Sqrt(r2)
    c, u = (ops.Sub(each, at.mean_of(each)) for each in (at.dy, at.by_x))
    p, a, b = (at.mean_of(ops.Mul(*pair)) for pair in ((c, x), (u, c), (u, x)))
    by_scale = ops.Mul(at.by_scale, r)
    slope = ops.Mul(r, ops.Sub(u, ops.Mul(ops.Mul(r2, b), x)))
    by_dy = ops.AddV2(ops.Mul(at.scale, slope), ops.AddV2(ops.Mul(by_scale, x), at.by_offset))
    along_x = ops.Sub(ops.Mul(ops.Mul(ops.like(3, r2), r2), ops.Mul(p, b)), a)
    bent = ops.Sub(ops.Mul(x, along_x), ops.AddV2(ops.Mul(c, b), ops.Mul(u, p)))
    by_x = ops.AddV2(
        ops.Mul(ops.Mul(at.scale, ops.Mul(r, r2)), bent),
        ops.Mul(by_scale, ops.Sub(c, ops.Mul(ops.Mul(r2, p), x))),
    )
    return by_dy, by_x, at.sum_of(ops.Mul(slope, c))


NORMALIZATION_GRADIENTS: dict[str, GradientFunction] = {
    **{f"FusedBatchNorm{version}": _fused_batch_norm for version in ("", "V2", "V3")},
    **{f"FusedBatchNormGrad{version}": _fused_batch_norm_grad for version in ("", "V2", "V3")},
    "BatchNormWithGlobalNormalization": _global_batch_norm,
    "LRN": _lrn,
}
