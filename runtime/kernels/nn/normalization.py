"""Batch normalization and local response normalization.

TF: tensorflow/core/kernels/fused_batch_norm_op.cc, lrn_op.cc
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.intra_op_pool import shard
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.math.element_blocks import BLOCK, block_size, on_threads
from runtime.kernels.nn.window import is_channels_first

# If there are no more channels than this, sums over neighbours are a product with a 0/1 matrix.
BAND_CHANNELS = 512


def fused_batch_norm(
    x: np.ndarray,
    scale: np.ndarray,
    offset: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    *,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: str,
    is_training: bool,
) -> tuple[np.ndarray, ...]:
    """FusedBatchNorm: normalise each channel of `x` `[n, …, c]`; statistics are `[c]`.

    Returns (y, batch_mean, batch_variance, reserve_space_1, reserve_space_2). If `is_training`, `x`
    is normalised with the batch's mean and variance, which are the reserve spaces and are needed
    for the gradient. The returned statistics are a moving average of `mean` and `variance`, into
    which the batch's mean and unbiased variance enter with weight `exponential_avg_factor`.
    Otherwise, `x` is normalised with `mean` and `variance`, which are returned, and the reserve
    spaces are zeros.
    """
    if not is_training:
        return _infer(x, scale, offset, mean, variance, epsilon, data_format, None)
    channels_first = is_channels_first(data_format)
    _check_batch_norm(
        x, scale, offset, mean, variance, exponential_avg_factor, channels_first, is_training
    )
    statistics = scale.dtype
    if x.size == 0:
        nan = np.full(scale.shape, np.nan, statistics)
        zeros = np.zeros(scale.shape, statistics)
        return x, nan, nan, zeros, zeros
    wide = x.astype(np.float32, copy=False)
    axes = spatial_axes(x.ndim, channels_first)
    batch_mean = wide.mean(axis=axes)
    centred = wide - along_channels(batch_mean, x.ndim, channels_first)
    batch_variance = np.square(centred).mean(axis=axes)
    count = x.size // batch_mean.size
    unbiased = batch_variance * np.float32(count / max(count - 1, 1))
    y = _normalise(wide, batch_mean, batch_variance, scale, offset, epsilon, channels_first)
    outputs = (
        _moving_average(mean, batch_mean, exponential_avg_factor),
        _moving_average(variance, unbiased, exponential_avg_factor),
        batch_mean,
        batch_variance,
    )
    return y.astype(x.dtype, copy=False), *(each.astype(statistics) for each in outputs)


def _infer(
    x: np.ndarray,
    scale: np.ndarray,
    offset: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    epsilon: float,
    data_format: str,
    out: np.ndarray | None,
) -> tuple[np.ndarray, ...]:
    """Compute `fused_batch_norm` for inference, with the statistics `mean` and `variance`.

    If `out` (float32) is not None, y is written into it.
    """
    channels_first = is_channels_first(data_format)
    _check_batch_norm(x, scale, offset, mean, variance, 1.0, channels_first, False)
    zeros = np.zeros(scale.shape, scale.dtype)
    if x.size == 0:
        nan = np.full(scale.shape, np.nan, scale.dtype)
        return x, nan, nan, zeros, zeros
    wide = x.astype(np.float32, copy=False)
    y = _normalise(wide, mean, variance, scale, offset, epsilon, channels_first, out)
    return y.astype(x.dtype, copy=False), mean, variance, zeros, zeros


def fused_batch_norm_v3_in_place(
    x: np.ndarray, *statistics: np.ndarray, **attrs: Any
) -> tuple[np.ndarray, ...]:
    """FusedBatchNormV3: compute the same as `fused_batch_norm_v3`.

    For inference in float32, y is written into `x`.
    """
    if attrs["is_training"] or x.dtype != np.float32:
        return fused_batch_norm_v3(x, *statistics, **attrs)
    scale, offset, mean, variance = statistics
    epsilon, data_format = attrs["epsilon"], attrs["data_format"]
    outputs = _infer(x, scale, offset, mean, variance, epsilon, data_format, x)
    return *outputs, np.zeros((), scale.dtype)


def fused_batch_norm_v3(
    x: np.ndarray,
    scale: np.ndarray,
    offset: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    *,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: str,
    is_training: bool,
) -> tuple[np.ndarray, ...]:
    """FusedBatchNormV3: compute FusedBatchNorm, and return a third reserve space, a scalar 0."""
    outputs = fused_batch_norm(
        x,
        scale,
        offset,
        mean,
        variance,
        epsilon=epsilon,
        exponential_avg_factor=exponential_avg_factor,
        data_format=data_format,
        is_training=is_training,
    )
    return *outputs, np.zeros((), scale.dtype)


def _check_batch_norm(
    x: np.ndarray,
    scale: np.ndarray,
    offset: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    exponential_avg_factor: float,
    channels_first: bool,
    is_training: bool,
) -> None:
    if x.ndim not in (4, 5):
        raise InvalidArgumentError(f"input must be 4 or 5-dimensional{shape_text(x.shape)}")
    for name, vector in (
        ("scale", scale),
        ("offset", offset),
        ("estimated_mean", mean),
        ("estimated_variance", variance),
    ):
        if vector.ndim != 1:
            raise InvalidArgumentError(f"{name} must be 1-dimensional{shape_text(vector.shape)}")
    channels = x.shape[1 if channels_first else -1]
    must_match = "must have the same number of elements as the channels of x, got"
    for name, vector in (("scale", scale), ("offset", offset)):
        if vector.size != channels:
            raise InvalidArgumentError(f"{name} {must_match} {vector.size} and {channels}")
    if is_training and exponential_avg_factor == 1:
        return
    condition = "exponential_avg_factor != 1" if is_training else "is_training=false"
    for name, vector in (("mean", mean), ("variance", variance)):
        if vector.size != channels:
            raise InvalidArgumentError(
                f"When {condition}, {name} {must_match} {vector.size} and {channels}"
            )


def spatial_axes(rank: int, channels_first: bool) -> tuple[int, ...]:
    """Return every axis except the channels, for a tensor of `rank`."""
    return (0, *range(2, rank)) if channels_first else tuple(range(rank - 1))


def along_channels(vector: np.ndarray, rank: int, channels_first: bool) -> np.ndarray:
    """Return `vector` `[c]` reshaped so that it broadcasts along the channels of a tensor."""
    return vector.reshape(-1, *(1,) * (rank - 2)) if channels_first else vector


def _normalise(
    x: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    scale: np.ndarray,
    offset: np.ndarray,
    epsilon: float,
    channels_first: bool,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Compute `(x - mean) / sqrt(variance + epsilon) * scale + offset`.

    `x` is multiplied once and added to once. If `out` is not None, the result is written into it.
    """
    wide = (each.astype(np.float32, copy=False) for each in (mean, variance, scale, offset))
    mean, variance, scale, offset = wide
    with np.errstate(all="ignore"):  # as in TensorFlow, a variance below -epsilon gives NaN
        factor = scale / np.sqrt(variance + np.float32(epsilon))
    shift = offset - mean * factor
    y = on_threads(np.multiply, x, along_channels(factor, x.ndim, channels_first), out)
    return on_threads(np.add, y, along_channels(shift, x.ndim, channels_first), y)


def _moving_average(running: np.ndarray, batch: np.ndarray, factor: float) -> np.ndarray:
    if factor == 1:
        return batch
    return running * np.float32(1 - factor) + batch * np.float32(factor)


def batch_norm_with_global_normalization(
    t: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    beta: np.ndarray,
    gamma: np.ndarray,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> np.ndarray:
    """BatchNormWithGlobalNormalization: normalise `t` with means `m` and variances `v`.

    `t` is `[n, h, w, c]`, `m`, `v`, `beta` and `gamma` are `[c]`. `beta` is added; `gamma` is a
    factor if `scale_after_normalization` is true.
    """
    check_global_normalization(t, (("mean", m), ("var", v), ("beta", beta), ("gamma", gamma)))
    scale = 1 / np.sqrt(v + v.dtype.type(variance_epsilon))
    if scale_after_normalization:
        scale = scale * gamma
    return ((t - m) * scale + beta).astype(t.dtype, copy=False)


def check_global_normalization(t: np.ndarray, vectors: Sequence[tuple[str, np.ndarray]]) -> None:
    """Raise InvalidArgumentError unless `t` is `[n, h, w, c]` and each of `vectors` is `[c]`."""
    if t.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional, got {shape_text(t.shape)}")
    for name, each in vectors:
        if each.shape != t.shape[-1:]:
            raise InvalidArgumentError(
                f"{name} must have shape {shape_text(t.shape[-1:])}, got {shape_text(each.shape)}"
            )


def lrn(x: np.ndarray, *, depth_radius: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    """LRN: divide each element of `x` by `(bias + alpha * sum) ** beta`.

    `sum` is the sum of the squares of the channels at most `depth_radius` away.
    """
    if x.ndim != 4:
        raise InvalidArgumentError("in must be 4-dimensional")
    if depth_radius < 0:
        raise InvalidArgumentError(f"depth_radius = {depth_radius} larger than int max")
    channels = x.shape[3]
    if x.size <= BLOCK:
        return _lrn(x, depth_radius, bias, alpha, beta)
    pixels, result = x.reshape(-1, channels), np.empty((x.size // channels, channels), x.dtype)
    at_once = max(1, block_size(x.size) // channels)

    def work(start: int, limit: int) -> None:
        for first in range(start, limit, at_once):
            part = slice(first, min(first + at_once, limit))
            result[part] = _lrn(pixels[part], depth_radius, bias, alpha, beta)

    shard(len(pixels), 5 * channels, work, at_once)
    return result.reshape(x.shape)


def _lrn(x: np.ndarray, depth_radius: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    norm = lrn_norm(x, depth_radius, bias, alpha)
    if beta == 1:  # TensorFlow divides, so that a negative norm has a quotient
        return (x / norm).astype(x.dtype)
    # exp and log together take a quarter of the time of numpy's power.
    factor = np.exp(np.float32(-beta) * np.log(norm, out=norm), out=norm)
    return (x * factor).astype(x.dtype)


def lrn_norm(x: np.ndarray, depth_radius: int, bias: float, alpha: float) -> np.ndarray:
    """Compute `bias + alpha * sum` in float32 for each element of `x`.

    `sum` is the sum of the squares of the channels at most `depth_radius` away.
    """
    squares = np.square(x.astype(np.float32, copy=False))
    total = channel_window_sum(squares, depth_radius)
    total *= np.float32(alpha)
    total += np.float32(bias)
    return total


def channel_window_sum(x: np.ndarray, depth_radius: int) -> np.ndarray:
    """Return, for each element of `x`, the sum of the channels at most `depth_radius` away.

    The channels are the last dimension.
    """
    channels = np.arange(x.shape[-1])
    if len(channels) <= BAND_CHANNELS:
        band = np.abs(channels[:, None] - channels) <= depth_radius
        sums: np.ndarray = np.matmul(x, band.astype(x.dtype))
        if np.isfinite(sums).all():  # 0 times infinity would be NaN
            return sums
    total = x.copy()
    for distance in range(1, min(depth_radius, x.shape[-1] - 1) + 1):
        total[..., distance:] += x[..., :-distance]
        total[..., :-distance] += x[..., distance:]
    return total


KERNELS = (
    KernelDef("BatchNormWithGlobalNormalization", batch_norm_with_global_normalization),
    KernelDef("FusedBatchNorm", fused_batch_norm),
    KernelDef("FusedBatchNormV2", fused_batch_norm),
    KernelDef(
        "FusedBatchNormV3",
        fused_batch_norm_v3,
        {"U": (DataType.FLOAT,)},
        fresh=True,
        in_place=fused_batch_norm_v3_in_place,
    ),
    KernelDef("LRN", lrn, {"T": (DataType.HALF, DataType.FLOAT)}),
)
