"""Uniform quantization: an integer represents the float (integer - zero point) · scale.

Scales (float32) and zero points (int32) are scalars, or vectors `[n]` with one element for each
index along the quantization axis, whose size is n. The axis is -1 if they are scalars.

TF: tensorflow/core/kernels/uniform_quant_ops/uniform_{quantize,dequantize,requantize}_op.cc,
uniform_quantized_{add,clip_by_value}_op.cc, math_utils.h, tensor_utils.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text

_MAX_INT32, _MIN_INT32 = 2**31 - 1, -(2**31)
_FRACTION_BITS = 31  # of a fixed-point multiplier
_MAX_SHIFT = 30


def check_scales(
    shape: tuple[int, ...], scales: np.ndarray, zero_points: np.ndarray, axis: int
) -> None:
    """Raise InvalidArgumentError unless scales and zero points fit a tensor of `shape`."""
    texts = shape_text(scales.shape), shape_text(zero_points.shape)
    if scales.shape != zero_points.shape:
        raise InvalidArgumentError(
            "scales and zero_points shape must be same, but given scales shape "
            f"{texts[0]} and zero_points shape {texts[1]}"
        )
    if not -1 <= axis < len(shape):
        raise InvalidArgumentError(
            f"quantization_axis must be -1 or in range [0, input.rank), but given {axis}"
        )
    if axis == -1 and scales.ndim:
        raise InvalidArgumentError(
            "If quantization_axis is -1, scales and zero_points must be scalar tensors, but given "
            f"scales shape {texts[0]} and zero_points shape {texts[1]}"
        )
    if axis >= 0 and scales.shape != (shape[axis],):
        raise InvalidArgumentError(
            "If quantization_axis is not -1, scales and zero_points must be a tensor of rank 1 and "
            "the size must be equal to the input.dim_size(quantization_axis), but given "
            f"quantization_axis {axis}, scales shape {texts[0]} and zero_points shape {texts[1]}"
        )


def check_positive(message: str, *scales: np.ndarray) -> None:
    """Raise InvalidArgumentError with `message` unless all scales are positive."""
    if not all(np.all(each > 0) for each in scales):
        raise InvalidArgumentError(message)


def _check_attr_axis(name: str, axis: int) -> None:
    if axis < -1:
        raise InvalidArgumentError(f"{name} must be >= -1, given: {axis}")


def limits(name: str, low: int, high: int) -> tuple[np.int32, np.int32]:
    """Return the attributes `name`_min_val and `name`_max_val as int32.

    Raises InvalidArgumentError if one does not fit.
    """
    for end, value in (("min", low), ("max", high)):
        if not _MIN_INT32 <= value <= _MAX_INT32:
            raise InvalidArgumentError(
                f"Attr {name}_{end}_val has value {value} out of range for an int32"
            )
    return np.int32(low), np.int32(high)


def along(values: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """Return the scalar or vector `values` shaped to broadcast along `axis` of `rank` axes."""
    if not values.ndim:
        return values
    return values.reshape([-1 if each == axis else 1 for each in range(rank)])


def wrapped(value: np.ndarray) -> np.ndarray:
    """Return int64 as int32; as in TensorFlow, a number that does not fit wraps around."""
    return np.asarray(value, np.int64).astype(np.int32)


def as_cast(value: np.ndarray) -> np.ndarray:
    """Return integers as int32; those of 32 bits lose their low bits by way of float32.

    TensorFlow's qint32 has no other conversion than to float (Eigen's FixedPointTypes.h).
    """
    if value.dtype != np.int32:
        return value.astype(np.int32)
    with np.errstate(invalid="ignore"):
        return value.astype(np.float32).astype(np.int32)


def affine_quantized(
    value: np.ndarray, inverse: np.ndarray, zero_point: np.ndarray, low: np.int32, high: np.int32
) -> np.ndarray:
    """Return floor(value · inverse + 0.5) + zero_point, at most `high`, at least `low`: int32."""
    with np.errstate(all="ignore"):
        levels = np.floor(value * inverse + np.float32(0.5)).astype(np.int32)
        return np.maximum(np.minimum(levels + zero_point, high), low)


def fixed_point(multiplier: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (fraction, shift), int64 of the shape of `multiplier`, float64.

    The multiplier is fraction · 2**(shift - 31), with 31 significant bits.

    Raises InvalidArgumentError unless it is positive and finite.
    """
    odd = ~(np.isfinite(multiplier) & (multiplier > 0))
    if odd.any():
        given = np.ravel(multiplier)[np.flatnonzero(odd)[0]]
        raise InvalidArgumentError(
            f"double_multiplier must be a poisitive finite number. Given {given:g}"
        )
    part, exponent = np.frexp(multiplier)
    fraction = np.floor(part * (1 << _FRACTION_BITS) + 0.5).astype(np.int64)
    shift = np.asarray(exponent, np.int64)
    is_one = fraction == 1 << _FRACTION_BITS
    fraction, shift = np.where(is_one, fraction // 2, fraction), shift + is_one
    is_tiny, is_huge = shift < -_FRACTION_BITS, shift > _MAX_SHIFT
    fraction = np.where(is_tiny, 0, np.where(is_huge, _MAX_INT32, fraction))
    return fraction, np.where(is_tiny, 0, np.where(is_huge, _MAX_SHIFT, shift))


def rescaled(
    centred: np.ndarray,
    multiplier: tuple[np.ndarray, np.ndarray],
    zero_point: np.ndarray | np.int32,
    low: np.int32,
    high: np.int32,
) -> np.ndarray:
    """Return integers · multiplier + zero_point, at most `high`, at least `low`: int32.

    `multiplier` is a result of `fixed_point`. The product is rounded to the nearest integer, a half
    up.
    """
    fraction, shift = multiplier
    places = _FRACTION_BITS - shift
    product: np.ndarray = np.asarray(centred.astype(np.int64) * fraction)
    product += np.left_shift(np.int64(1), places - 1)
    product >>= places
    np.clip(product, _MIN_INT32, _MAX_INT32, out=product)
    result = wrapped(product + zero_point)
    return np.maximum(np.minimum(result, high), low)


def uniform_quantize(
    input: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray,
    *,
    Tout: DataType,  # noqa: N803 # the attribute's name
    quantization_axis: int,
    quantization_min_val: int,
    quantization_max_val: int,
) -> np.ndarray:
    """UniformQuantize: return the integers of `Tout` that represent the floats `input`."""
    _check_attr_axis("quantization_axis", quantization_axis)
    check_scales(input.shape, scales, zero_points, quantization_axis)
    with np.errstate(divide="ignore"):
        inverse = np.asarray(np.float32(1) / scales)
    levels = affine_quantized(
        input,
        along(inverse, quantization_axis, input.ndim),
        along(zero_points, quantization_axis, input.ndim),
        *limits("quantization", quantization_min_val, quantization_max_val),
    )
    return levels.astype(Tout.numpy)


def uniform_dequantize(
    input: np.ndarray, scales: np.ndarray, zero_points: np.ndarray, *, quantization_axis: int
) -> np.ndarray:
    """UniformDequantize: return the float32 that the integers `input` represent."""
    check_scales(input.shape, scales, zero_points, quantization_axis)
    check_positive("rhs scales elements must be all positive.", scales)
    zero = along(zero_points, quantization_axis, input.ndim)
    with np.errstate(over="ignore"):
        centred = (input.astype(np.int32) - zero).astype(np.float32)
        return centred * along(scales, quantization_axis, input.ndim)


def _requantized(
    value: np.ndarray,
    scale: np.ndarray,
    zero_point: np.ndarray,
    output_scale: np.ndarray,
    output_zero_point: np.ndarray | np.int32,
    low: np.int32,
    high: np.int32,
) -> np.ndarray:
    """Return `value` of one scale as integers of another, int32; all broadcast to `value`."""
    with np.errstate(over="ignore"):
        multiplier = fixed_point(scale.astype(np.float64) / output_scale)
        centred = as_cast(value).astype(np.int64) - zero_point
    return rescaled(centred, multiplier, output_zero_point, low, high)


def uniform_requantize(
    input: np.ndarray,
    input_scales: np.ndarray,
    input_zero_points: np.ndarray,
    output_scales: np.ndarray,
    output_zero_points: np.ndarray,
    *,
    Tout: DataType,  # noqa: N803 # the attribute's name
    input_quantization_axis: int,
    output_quantization_axis: int,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
) -> np.ndarray:
    """UniformRequantize: return integers of other scales that represent the same floats."""
    axes = input_quantization_axis, output_quantization_axis
    for name, axis in zip(("input", "output"), axes, strict=True):
        _check_attr_axis(f"{name}_quantization_axis", axis)
    if min(axes) >= 0 and axes[0] != axes[1]:
        raise InvalidArgumentError(
            "If input and output is both per-axis quantized, the quantization axis must be same."
        )
    check_scales(input.shape, input_scales, input_zero_points, axes[0])
    check_scales(input.shape, output_scales, output_zero_points, axes[1])
    check_positive(
        "input/output scales elements must be all positive.", input_scales, output_scales
    )
    result = _requantized(
        input,
        along(input_scales, axes[0], input.ndim),
        along(input_zero_points, axes[0], input.ndim),
        along(output_scales, axes[1], input.ndim),
        along(output_zero_points, axes[1], input.ndim),
        *limits("output_quantization", output_quantization_min_val, output_quantization_max_val),
    )
    return result.astype(Tout.numpy)


def _sum_shape(lhs: np.ndarray, rhs: np.ndarray) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(lhs.shape, rhs.shape)
    except ValueError:
        raise InvalidArgumentError(
            f"Cannot Add tensors of shapes: {shape_text(lhs.shape)}{shape_text(rhs.shape)}"
        ) from None


def _check_axes(
    name: str, operand: np.ndarray, axis: int, shape: tuple[int, ...], output_axis: int
) -> None:
    if min(axis, output_axis) >= 0 and operand.ndim - axis != len(shape) - output_axis:
        raise InvalidArgumentError(
            f"If {name} and output is both per-axis quantized, the quantization axis must match."
        )


def _scales_for(
    operand: np.ndarray, output_scales: np.ndarray, output_axis: int, rank: int
) -> np.ndarray:
    """Return the scales to which an operand of a sum of `rank` is converted.

    As in TensorFlow, an operand of size 1 along the output's axis gets the output's first scale.
    """
    axis = output_axis - (rank - operand.ndim)
    if output_axis >= 0 and axis >= 0 and operand.shape[axis] == 1:
        return output_scales[:1]
    return along(output_scales, output_axis, rank)


def uniform_quantized_add(
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
    """UniformQuantizedAdd: return the sum of two tensors that broadcast, of int32."""
    axes = lhs_quantization_axis, rhs_quantization_axis, output_quantization_axis
    if min(axes) < -1:
        raise InvalidArgumentError(
            "lhs, rhs and output quantization_axis must be -1 or within [0, dims)"
        )
    check_scales(lhs.shape, lhs_scales, lhs_zero_points, axes[0])
    check_scales(rhs.shape, rhs_scales, rhs_zero_points, axes[1])
    shape = _sum_shape(lhs, rhs)
    check_scales(shape, output_scales, output_zero_points, axes[2])
    _check_axes("lhs", lhs, axes[0], shape, axes[2])
    _check_axes("rhs", rhs, axes[1], shape, axes[2])
    message = "lhs/rhs/output scales elements must be all positive."
    check_positive(message, lhs_scales, rhs_scales, output_scales)
    check_allocation(shape, np.int64)
    total = along(output_zero_points, axes[2], len(shape)).astype(np.int64)
    for value, scales, zero_points, axis in (
        (lhs, lhs_scales, lhs_zero_points, axes[0]),
        (rhs, rhs_scales, rhs_zero_points, axes[1]),
    ):
        operand = _requantized(
            value,
            along(scales, axis, value.ndim),
            along(zero_points, axis, value.ndim),
            _scales_for(value, output_scales, axes[2], len(shape)),
            np.int32(0),
            np.int32(_MIN_INT32),
            np.int32(_MAX_INT32),
        )
        total = total + as_cast(operand)
    result = wrapped(total)
    low, high = limits(
        "output_quantization", output_quantization_min_val, output_quantization_max_val
    )
    return np.where(result < low, low, np.where(result > high, high, result))


def uniform_quantized_clip_by_value(
    operand: np.ndarray,
    min: np.ndarray,
    max: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray,
    *,
    quantization_axis: int,
) -> np.ndarray:
    """UniformQuantizedClipByValue: return `operand`, at least `min` and at most `max`, of int32.

    The limits have the shape of the scales.
    """
    check_scales(operand.shape, scales, zero_points, quantization_axis)
    for name, limit in (("min", min), ("max", max)):
        if limit.shape != scales.shape:
            raise InvalidArgumentError(
                f"Input {name} shape must be same as scales/zero_points. Given {name} of shape "
                f"{shape_text(limit.shape)} and scales/zero_points of shape "
                f"{shape_text(scales.shape)}"
            )
    low = along(min, quantization_axis, operand.ndim)
    return np.minimum(np.maximum(operand, low), along(max, quantization_axis, operand.ndim))


KERNELS = (
    KernelDef("UniformDequantize", uniform_dequantize),
    KernelDef("UniformQuantize", uniform_quantize),
    KernelDef("UniformQuantizedAdd", uniform_quantized_add),
    KernelDef("UniformQuantizedClipByValue", uniform_quantized_clip_by_value),
    KernelDef("UniformRequantize", uniform_requantize),
)
