"""Gradients of batch normalization and local response normalization.

TF: tensorflow/core/kernels/{batch_norm_op.cc,fused_batch_norm_op.cc,lrn_op.cc}
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.nn.normalization import (
    along_channels,
    channel_window_sum,
    check_global_normalization,
    lrn_norm,
    spatial_axes,
)
from runtime.kernels.nn.window import is_channels_first


def fused_batch_norm_grad(
    y_backprop: np.ndarray,
    x: np.ndarray,
    scale: np.ndarray,
    reserve_space_1: np.ndarray,
    reserve_space_2: np.ndarray,
    *,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> tuple[np.ndarray, ...]:
    """FusedBatchNormGrad: return the gradients with respect to x, scale and offset.

    Returns (x_backprop, scale_backprop `[c]`, offset_backprop `[c]`, two empty vectors). The
    reserve spaces must be the mean and variance with which the forward op normalised.
    """
    channels_first = is_channels_first(data_format)
    _check(y_backprop, x, scale, reserve_space_1, reserve_space_2, channels_first)
    mean, variance, weights = (
        each.astype(np.float32, copy=False) for each in (reserve_space_1, reserve_space_2, scale)
    )
    empty = np.zeros(0, scale.dtype)
    if x.size == 0:
        zeros = np.zeros(scale.shape, scale.dtype)
        return x, zeros, zeros, empty, empty
    axes = spatial_axes(x.ndim, channels_first)
    gradient = y_backprop.astype(np.float32, copy=False)
    centred = x.astype(np.float32, copy=False) - along_channels(mean, x.ndim, channels_first)
    inverse_deviation = 1 / np.sqrt(variance + np.float32(epsilon))
    offset_backprop = gradient.sum(axis=axes)
    product = (gradient * centred).sum(axis=axes)
    x_backprop = gradient
    if is_training:
        count = np.float32(x.size // scale.size)
        slope = product / count * np.square(inverse_deviation)
        x_backprop = gradient - along_channels(offset_backprop / count, x.ndim, channels_first)
        x_backprop = x_backprop - centred * along_channels(slope, x.ndim, channels_first)
    x_backprop = x_backprop * along_channels(weights * inverse_deviation, x.ndim, channels_first)
    return (
        x_backprop.astype(x.dtype, copy=False),
        (product * inverse_deviation).astype(scale.dtype),
        offset_backprop.astype(scale.dtype),
        empty,
        empty,
    )


def fused_batch_norm_grad_v3(
    y_backprop: np.ndarray,
    x: np.ndarray,
    scale: np.ndarray,
    reserve_space_1: np.ndarray,
    reserve_space_2: np.ndarray,
    reserve_space_3: np.ndarray,
    *,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> tuple[np.ndarray, ...]:
    """FusedBatchNormGradV3: compute FusedBatchNormGrad; `reserve_space_3` is not used."""
    return fused_batch_norm_grad(
        y_backprop,
        x,
        scale,
        reserve_space_1,
        reserve_space_2,
        epsilon=epsilon,
        data_format=data_format,
        is_training=is_training,
    )


def _check(
    y_backprop: np.ndarray,
    x: np.ndarray,
    scale: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    channels_first: bool,
) -> None:
    if y_backprop.ndim not in (4, 5):
        raise InvalidArgumentError(
            f"input must be 4 or 5-dimensional{shape_text(y_backprop.shape)}"
        )
    for name, vector in (("scale", scale), ("saved mean", mean), ("saved variance", variance)):
        if vector.ndim != 1:
            raise InvalidArgumentError(f"{name} must be 1-dimensional{shape_text(vector.shape)}")
    if x.shape != y_backprop.shape:
        raise InvalidArgumentError(
            "x and y_backprop must have same shape, but x has shape "
            f"{shape_text(x.shape)} and y_backprop has shape {shape_text(y_backprop.shape)}"
        )
    channels = x.shape[1 if channels_first else -1]
    named = (("scale", scale), ("reserve_space_1", mean), ("reserve_space_2", variance))
    for name, vector in named:
        if vector.size != channels:
            raise InvalidArgumentError(
                f"{name} must have the same number of elements as the channels of x, "
                f"got {vector.size} and {channels}"
            )


def batch_norm_with_global_normalization_grad(
    t: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    gamma: np.ndarray,
    backprop: np.ndarray,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> tuple[np.ndarray, ...]:
    """BatchNormWithGlobalNormalizationGrad: return the gradients for t, m, v, beta and gamma.

    `t` and `backprop` are `[n, h, w, c]`, the other inputs are `[c]`.
    """
    check_global_normalization(t, (("mean", m), ("var", v), ("gamma", gamma)))
    if backprop.shape != t.shape:
        raise InvalidArgumentError(
            f"backprop must have shape {shape_text(t.shape)}, got {shape_text(backprop.shape)}"
        )
    one = t.dtype.type
    rows = (0, 1, 2)
    spread = v + one(variance_epsilon)
    scale = one(1) / np.sqrt(spread)
    weight = scale * gamma if scale_after_normalization else scale
    total = backprop.sum(axis=rows)
    moved = (backprop * (t - m)).sum(axis=rows)
    scaled = moved * scale if scale_after_normalization else np.zeros_like(gamma)
    return backprop * weight, -total * weight, moved * weight * one(-0.5) / spread, total, scaled


def lrn_grad(
    input_grads: np.ndarray,
    input_image: np.ndarray,
    output_image: np.ndarray,
    *,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> np.ndarray:
    """LRNGrad: return the gradient of LRN with respect to its input `[n, h, w, c]`."""
    if input_grads.ndim != 4 or input_image.ndim != 4:
        raise InvalidArgumentError("inputs must be 4-dimensional")
    if not input_grads.shape == input_image.shape == output_image.shape:
        raise InvalidArgumentError(
            "input_grads, input_image, and out_image should have the same shape"
        )
    if depth_radius < 0:
        raise InvalidArgumentError(f"depth_radius = {depth_radius} larger than int max")
    gradient, image, output = (
        each.astype(np.float32, copy=False) for each in (input_grads, input_image, output_image)
    )
    norm = lrn_norm(image, depth_radius, bias, alpha)
    spread = channel_window_sum(gradient * output / norm, depth_radius)
    result = gradient * norm ** np.float32(-beta)
    result -= np.float32(2 * alpha * beta) * image * spread
    return result.astype(input_grads.dtype, copy=False)


KERNELS = (
    KernelDef("BatchNormWithGlobalNormalizationGrad", batch_norm_with_global_normalization_grad),
    KernelDef("FusedBatchNormGrad", fused_batch_norm_grad),
    KernelDef("FusedBatchNormGradV2", fused_batch_norm_grad),
    KernelDef("FusedBatchNormGradV3", fused_batch_norm_grad_v3, {"U": (DataType.FLOAT,)}),
    KernelDef("LRNGrad", lrn_grad, {"T": (DataType.HALF, DataType.FLOAT)}),
)
