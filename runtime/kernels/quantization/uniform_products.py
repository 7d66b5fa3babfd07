"""Matrix products of uniformly quantized tensors, and of floats with quantized weights.

The hybrid products quantize each row of the floats to int8 with a range of its own.

TF: tensorflow/core/kernels/uniform_quant_ops/uniform_quantized_dot_ops.cc, math_utils.h
(AsymmetricQuantize)
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.quantization.uniform_quantization import (
    affine_quantized,
    check_positive,
    check_scales,
    fixed_point,
    limits,
    rescaled,
    wrapped,
)

_LOWEST, _HIGHEST = np.int32(-128), np.int32(127)  # of int8
_EXACT_FLOAT32 = 1 << 24
_EXACT = 1 << 53  # sums of integers up to this size are exact in float64


def integer_product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the matrix product of int32 matrices, which wraps around: int32."""
    depth = first.shape[1]
    if not (first.size and second.size):
        return np.zeros((first.shape[0], second.shape[1]), np.int32)
    largest = [max(abs(int(each.min())), abs(int(each.max()))) for each in (first, second)]
    exact = largest[0] * largest[1] * depth < _EXACT
    wide = np.float64 if exact else np.int64  # only floats are multiplied by a fast library
    return wrapped((first.astype(wide) @ second.astype(wide)).astype(np.int64))


def _summed_as_floats(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the matrix product of int32 matrices, summed like TensorFlow's qint32: int32.

    A sum is converted to float32, added to, and converted back, term by term.
    """
    product = integer_product(first, second)
    if not product.size:
        return product
    with np.errstate(all="ignore"):
        largest = np.abs(first.astype(np.float64)) @ np.abs(second.astype(np.float64))
        rows, columns = np.nonzero(largest >= _EXACT_FLOAT32)
        sums = np.zeros(len(rows), np.int32)
        for place in range(first.shape[1] if len(rows) else 0):
            check_task()
            term = first[rows, place] * second[place, columns]
            sums = (sums.astype(np.float32) + term.astype(np.float32)).astype(np.int32)
    product[rows, columns] = sums
    return product


def quantized_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the floats `rows` `[n, m]` as (int8 as int32, scales `[n]`, zero points `[n]`).

    The range of a row is that of its numbers and 0. A row of zeros has the scale 1.
    """
    with np.errstate(all="ignore"):
        lowest = rows.min(1, initial=0).astype(np.float64)
        highest = rows.max(1, initial=0).astype(np.float64)
        span = highest - lowest
        scales = (span / (_HIGHEST - _LOWEST)).astype(np.float32)
        inverse = np.where(span != 0, (_HIGHEST - _LOWEST) / span, 0).astype(np.float32)
        is_plain = (scales != 0) & np.isfinite(inverse)
        # Of the zero points that the two ends of the range give, the one with the smaller error.
        ends = lowest / scales, highest / scales
        is_first = abs(_LOWEST) + np.abs(ends[0]) < abs(_HIGHEST) + np.abs(ends[1])
        zero = np.where(is_first, _LOWEST - ends[0], _HIGHEST - ends[1])
        whole = np.trunc(zero)
        whole += np.copysign(np.abs(zero - whole) >= 0.5, zero)
        zero_points = np.where(is_plain, np.clip(whole, _LOWEST, _HIGHEST), 0)
        zero_points = np.nan_to_num(zero_points).astype(np.int32)
    levels = affine_quantized(
        rows, inverse[:, np.newaxis], zero_points[:, np.newaxis], _LOWEST, _HIGHEST
    )
    levels = np.where(is_plain[:, np.newaxis], levels, np.int32(0))
    return levels, np.where(is_plain, scales, np.float32(1)), zero_points


def _check_matrices(lhs: np.ndarray, rhs: np.ndarray) -> None:
    for name, each in (("lhs", lhs), ("rhs", rhs)):
        if each.ndim != 2:
            raise InvalidArgumentError(
                f"{name} rank must be 2, but given {name} shape {shape_text(each.shape)}"
            )
    if lhs.shape[1] != rhs.shape[0]:
        raise InvalidArgumentError(
            "lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape "
            f"{shape_text(lhs.shape)} and rhs shape {shape_text(rhs.shape)}"
        )
    check_allocation((lhs.shape[0], rhs.shape[1]), np.int32)


def _check_channel_axis(name: str, axis: int) -> None:
    if axis not in (-1, 1):
        raise InvalidArgumentError(
            f"{name}_quantization_axis Attr must be 1 (per-channel) or -1 (per-tensor)."
        )


def check_of_whole_tensor(scales: np.ndarray, zero_points: np.ndarray) -> None:
    """Raise InvalidArgumentError unless scales and zero points of `lhs` are scalars."""
    if scales.ndim or zero_points.ndim:
        raise InvalidArgumentError(
            "lhs scales/zero_points must be all scalar tensors. Given: "
            f"{shape_text(scales.shape)}{shape_text(zero_points.shape)}"
        )


def _check_channels(shape: tuple[int, int], scales: np.ndarray, zero_points: np.ndarray) -> None:
    check_scales(shape, scales, zero_points, 1 if scales.ndim else -1)


def uniform_quantized_dot(
    lhs: np.ndarray,
    rhs: np.ndarray,
    lhs_scales: np.ndarray,
    lhs_zero_points: np.ndarray,
    rhs_scales: np.ndarray,
    rhs_zero_points: np.ndarray,
    output_scales: np.ndarray,
    output_zero_points: np.ndarray,
    *,
    lhs_quantization_axis: int,
    rhs_quantization_axis: int,
    output_quantization_axis: int,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
) -> np.ndarray:
    """UniformQuantizedDot: multiply int8 `lhs` `[m, k]` and `rhs` `[k, n]`: int32 `[m, n]`.

    `rhs` and the output may have a scale and a zero point for each column.
    """
    if lhs_quantization_axis != -1:
        raise InvalidArgumentError("lhs_quantization_axis Attr must be -1 (per-tensor).")
    _check_channel_axis("rhs", rhs_quantization_axis)
    _check_channel_axis("output", output_quantization_axis)
    for name, scales in (("lhs", lhs_scales), ("rhs", rhs_scales), ("output", output_scales)):
        check_positive(f"{name} scales elements must be all positive.", scales)
    _check_matrices(lhs, rhs)
    check_of_whole_tensor(lhs_scales, lhs_zero_points)
    _check_channels(rhs.shape, rhs_scales, rhs_zero_points)
    _check_channels((lhs.shape[0], rhs.shape[1]), output_scales, output_zero_points)
    if output_scales.ndim > rhs_scales.ndim:
        raise InvalidArgumentError(
            "If rhs is per-tensor quantized, output must be also per-tensor quantized. Given rhs "
            f"scales and zero_points of shape {shape_text(rhs_scales.shape)} but given output "
            f"scales and zero_points of shape {shape_text(output_scales.shape)}"
        )
    with np.errstate(over="ignore"):
        multiplier = fixed_point(lhs_scales.astype(np.float64) * rhs_scales / output_scales)
        left = lhs.astype(np.int32) - lhs_zero_points
        right = rhs.astype(np.int32) - rhs_zero_points
    product = integer_product if rhs_scales.ndim else _summed_as_floats
    return rescaled(
        product(left, right),
        multiplier,
        output_zero_points,
        *limits("output_quantization", output_quantization_min_val, output_quantization_max_val),
    )


def uniform_quantized_dot_hybrid(
    lhs: np.ndarray,
    rhs: np.ndarray,
    rhs_scales: np.ndarray,
    rhs_zero_points: np.ndarray,
    *,
    rhs_quantization_axis: int,
) -> np.ndarray:
    """UniformQuantizedDotHybrid: multiply float `lhs` `[m, k]` and int8 `rhs` `[k, n]`: float32.

    Each row of `lhs` is quantized; `rhs` may have a scale and a zero point for each column.
    """
    _check_channel_axis("rhs", rhs_quantization_axis)
    _check_matrices(lhs, rhs)
    _check_channels(rhs.shape, rhs_scales, rhs_zero_points)
    check_positive("rhs scales elements must be all positive.", rhs_scales)
    levels, scales, zero_points = quantized_rows(lhs)
    with np.errstate(over="ignore", invalid="ignore"):
        right = rhs.astype(np.int32) - rhs_zero_points
        product = integer_product(levels - zero_points[:, np.newaxis], right)
        return product.astype(np.float32) * scales[:, np.newaxis] * rhs_scales


KERNELS = (
    KernelDef("UniformQuantizedDot", uniform_quantized_dot, expensive=True),
    KernelDef("UniformQuantizedDotHybrid", uniform_quantized_dot_hybrid, expensive=True),
)
