"""Convolutions of uniformly quantized tensors, and of floats with quantized weights.

Arrays are `[batch, features, spatial…]`, and the weights `[output features, input features,
spatial…]`, unless `dimension_numbers` gives another order.

TF: tensorflow/core/kernels/uniform_quant_ops/uniform_quantized_convolution_ops.cc,
tensorflow/core/util/quantization/uniform_quant_ops_params.cc
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.kernels.quantization.uniform_convolution_layout import Layout, layout_of
from runtime.kernels.quantization.uniform_products import (
    check_of_whole_tensor,
    integer_product,
    quantized_rows,
)
from runtime.kernels.quantization.uniform_quantization import (
    check_positive,
    check_scales,
    fixed_point,
    limits,
    rescaled,
)

Ints = Sequence[int]


def _windows(padded: np.ndarray, layout: Layout) -> np.ndarray:
    """Return the view `[batch, features, output…, kernel…]` of `padded` `[batch, features, …]`."""
    steps = padded.strides[2:]
    return np.lib.stride_tricks.as_strided(
        padded,
        (*padded.shape[:2], *layout.output_sizes, *layout.kernel_sizes),
        (
            *padded.strides[:2],
            *(step * stride for step, stride in zip(steps, layout.strides, strict=True)),
            *(step * rate for step, rate in zip(steps, layout.rhs_dilation, strict=True)),
        ),
        writeable=False,
    )


def _padded(centred: np.ndarray, margin: np.ndarray, layout: Layout) -> np.ndarray:
    """Dilate `centred` `[batch, features, …]`, and pad it with `margin` `[batch]`, all int32."""
    shape = centred.shape[:2] + layout.padded_sizes
    check_allocation(shape, np.int32)
    padded = np.empty(shape, np.int32)
    padded[...] = margin.reshape(-1, *[1] * (centred.ndim - 1))
    places = [
        slice(before, before + (size - 1) * rate + 1 if size else before, rate)
        for (before, _), size, rate in zip(
            layout.paddings, centred.shape[2:], layout.lhs_dilation, strict=True
        )
    ]
    padded[(slice(None), slice(None), *places)] = centred
    return padded


def _runs(layout: Layout) -> list[tuple[int, int, int, int]]:
    """Return (start, end, batch group, feature group) of runs of output features.

    All features of a run read the same features of the same examples.
    """
    count = layout.output_features
    sizes = [count // groups for groups in (layout.batch_groups, layout.feature_groups)]
    starts = sorted({start for size in sizes if size for start in range(0, count, size)})
    ends = [*starts[1:], count]
    return [
        (start, end, start // sizes[0], start // sizes[1])
        for start, end in zip(starts, ends, strict=True)
    ]


def _convolved(padded: np.ndarray, kernel: np.ndarray, layout: Layout) -> np.ndarray:
    """Return the sums of products, int32 `[batch, output features, output…]`.

    `padded` is `[batch · batch groups, features, …]`, `kernel` `[output features, features of a
    group, kernel…]`, both int32 and centred.
    """
    batch, depth = len(padded) // layout.batch_groups, kernel.shape[1]
    result = np.zeros((batch, layout.output_features, *layout.output_sizes), np.int32)
    if not (result.size and kernel.size):
        return result
    windows = _windows(padded, layout)
    rank = len(layout.output_sizes)
    order = (*range(1, 1 + rank), 0, *range(1 + rank, 1 + 2 * rank))  # output…, features, kernel…
    for start, end, batch_group, feature_group in _runs(layout):
        weights = kernel[start:end].reshape(end - start, -1).T
        features = slice(feature_group * depth, (feature_group + 1) * depth)
        for example in range(batch):
            check_task()
            taken = windows[batch_group * batch + example, features].transpose(order)
            product = integer_product(taken.reshape(-1, len(weights)), weights)
            result[example, start:end] = product.T.reshape(-1, *layout.output_sizes)
    return result


def _check_channels(
    rhs: np.ndarray, scales: np.ndarray, zero_points: np.ndarray, axis: int, layout: Layout
) -> None:
    if axis not in (-1, layout.rhs_order[0]):
        raise InvalidArgumentError(
            "rhs_quantization_axis Attr must be -1 (per-tensor) or "
            "dimension_numbers.kernel_output_feature_dimension (per-channel)."
        )
    check_scales(rhs.shape, scales, zero_points, axis)


def _by_channel(values: np.ndarray, rank: int) -> np.ndarray:
    """Return a scalar, or a vector that broadcasts along the features of `[batch, features, …]`."""
    return values.reshape(1, -1, *[1] * (rank - 2)) if values.ndim else values


def _kernel(rhs: np.ndarray, zero_points: np.ndarray, layout: Layout) -> np.ndarray:
    """Return the centred weights, int32 `[output features, input features, kernel…]`."""
    kernel = rhs.transpose(layout.rhs_order).astype(np.int32)
    zero = zero_points.reshape(-1, *[1] * (rhs.ndim - 1)) if zero_points.ndim else zero_points
    with np.errstate(over="ignore"):
        return kernel - zero


def uniform_quantized_convolution(
    lhs: np.ndarray,
    rhs: np.ndarray,
    lhs_scales: np.ndarray,
    lhs_zero_points: np.ndarray,
    rhs_scales: np.ndarray,
    rhs_zero_points: np.ndarray,
    output_scales: np.ndarray,
    output_zero_points: np.ndarray,
    *,
    window_strides: Ints,
    padding: str,
    explicit_padding: Ints,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    batch_group_count: int,
    feature_group_count: int,
    dimension_numbers: str | bytes,
    lhs_quantization_axis: int,
    rhs_quantization_axis: int,
    output_quantization_axis: int,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
) -> np.ndarray:
    """UniformQuantizedConvolution: convolve int8 `lhs` with the int8 weights `rhs`: int32.

    The weights and the output may have a scale and a zero point for each output feature.
    """
    if lhs_quantization_axis != -1:
        raise InvalidArgumentError("lhs_quantization_axis Attr must be -1 (per-tensor).")
    for name, scales in (("lhs", lhs_scales), ("rhs", rhs_scales), ("output", output_scales)):
        check_positive(f"{name} scales elements must be all positive.", scales)
    layout = layout_of(
        lhs.shape, rhs.shape, window_strides=window_strides, padding=padding,
        explicit_padding=explicit_padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
        batch_group_count=batch_group_count, feature_group_count=feature_group_count,
        dimension_numbers=dimension_numbers,
    )  # fmt: skip
    check_of_whole_tensor(lhs_scales, lhs_zero_points)
    _check_channels(rhs, rhs_scales, rhs_zero_points, rhs_quantization_axis, layout)
    _check_output(layout, output_scales, output_zero_points, output_quantization_axis)
    if output_scales.ndim > rhs_scales.ndim:
        raise InvalidArgumentError(
            "If rhs is per-tensor quantized, output must be also per-tensor quantized. Given "
            f"output scales/zero_points of rank {output_scales.ndim}"
        )
    with np.errstate(over="ignore"):
        multiplier = fixed_point(lhs_scales.astype(np.float64) * rhs_scales / output_scales)
        centred = lhs.transpose(layout.lhs_order).astype(np.int32) - lhs_zero_points
        margin = lhs_zero_points.astype(np.int8).astype(np.int32) - lhs_zero_points
    padded = _padded(centred, np.asarray(margin), layout)
    sums = _convolved(padded, _kernel(rhs, rhs_zero_points, layout), layout)
    result = rescaled(
        sums,
        (_by_channel(multiplier[0], sums.ndim), _by_channel(multiplier[1], sums.ndim)),
        _by_channel(output_zero_points, sums.ndim),
        *limits("output_quantization", output_quantization_min_val, output_quantization_max_val),
    )
    return result.transpose(np.argsort(layout.output_order))


def _check_output(layout: Layout, scales: np.ndarray, zero_points: np.ndarray, axis: int) -> None:
    if axis not in (-1, layout.output_order[1]):
        raise InvalidArgumentError(
            "output_quantization_axis Attr must be -1 (per-tensor) or "
            "dimension_numbers.output_feature_dimension (per-channel)."
        )
    check_allocation(layout.output_shape, np.int32)
    check_scales(layout.output_shape, scales, zero_points, axis)


def uniform_quantized_convolution_hybrid(
    lhs: np.ndarray,
    rhs: np.ndarray,
    rhs_scales: np.ndarray,
    rhs_zero_points: np.ndarray,
    *,
    window_strides: Ints,
    padding: str,
    explicit_padding: Ints,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    batch_group_count: int,
    feature_group_count: int,
    dimension_numbers: str | bytes,
    rhs_quantization_axis: int,
) -> np.ndarray:
    """UniformQuantizedConvolutionHybrid: convolve float `lhs` with int8 weights `rhs`: float32.

    Each example of `lhs` is quantized; the weights may have a scale and a zero point for each
    output feature.
    """
    check_positive("rhs scales elements must be all positive.", rhs_scales)
    layout = layout_of(
        lhs.shape, rhs.shape, window_strides=window_strides, padding=padding,
        explicit_padding=explicit_padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
        batch_group_count=batch_group_count, feature_group_count=feature_group_count,
        dimension_numbers=dimension_numbers,
    )  # fmt: skip
    _check_channels(rhs, rhs_scales, rhs_zero_points, rhs_quantization_axis, layout)
    check_allocation(layout.output_shape, np.float32)
    ordered = lhs.transpose(layout.lhs_order)
    rows = ordered.reshape(len(ordered), math.prod(ordered.shape[1:]))
    levels, scales, zero_points = quantized_rows(rows)
    centred = (levels - zero_points[:, np.newaxis]).reshape(ordered.shape)
    padded = _padded(centred, np.zeros(len(centred), np.int32), layout)
    sums = _convolved(padded, _kernel(rhs, rhs_zero_points, layout), layout)
    batch_group = np.arange(layout.output_features) // (
        max(layout.output_features // layout.batch_groups, 1)
    )
    example = batch_group[np.newaxis] * len(sums) + np.arange(len(sums))[:, np.newaxis]
    with np.errstate(over="ignore", invalid="ignore"):
        result = sums.astype(np.float32) * scales[example].reshape(
            *example.shape, *[1] * (sums.ndim - 2)
        )
        result *= _by_channel(rhs_scales, sums.ndim)
    return result.transpose(np.argsort(layout.output_order))


KERNELS = (
    KernelDef("UniformQuantizedConvolution", uniform_quantized_convolution, expensive=True),
    KernelDef(
        "UniformQuantizedConvolutionHybrid", uniform_quantized_convolution_hybrid, expensive=True
    ),
)
