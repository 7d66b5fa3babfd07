"""Requantization: kernels that convert quantized integers to another range or dtype.

TF: tensorflow/core/kernels/{requantize,requantization_range_op,quantize_down_and_shrink_range}.cc,
quantization_utils.h (RequantizeManyInNewRange)
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.quantization.quantization import min_first, min_first_to_float, quantized_range

Quantized = tuple[np.ndarray, np.ndarray, np.ndarray]  # integers, lowest float, highest float
FIXED_POINT_BITS = 16


def one_float(given: np.ndarray, name: str) -> np.ndarray:
    """Return `given`, one end of a range, as a float32 scalar.

    Raises InvalidArgumentError unless it has one element; `name` is the name in the message.
    """
    if given.size != 1:
        raise InvalidArgumentError(
            f"{name} must be a scalar, but has shape {shape_text(given.shape)}"
        )
    return np.asarray(given, np.float32).reshape(())


def in_range(
    value: np.ndarray,
    old: tuple[np.ndarray, np.ndarray, DataType],
    new: tuple[np.ndarray, np.ndarray, DataType],
) -> np.ndarray:
    """Return the quantized `value` converted from the range `old` to the range `new`.

    Each range is (lowest float, highest float, dtype of the integers). The conversion is by way of
    floats.
    """
    floats = min_first_to_float(value, old[0], old[1], quantized_range(old[2]))
    with np.errstate(invalid="ignore", divide="ignore"):
        return min_first(floats, new[0], new[1], quantized_range(new[2])).astype(new[2].numpy)


def _fixed_point(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, bottom: np.ndarray, top: np.ndarray
) -> np.ndarray:
    """Return int32 of the range `low` … `high` as uint8 of the range `bottom` … `top`.

    The conversion uses the same fixed-point arithmetic as TensorFlow.
    """
    unit = 1 << FIXED_POINT_BITS
    span = float(top) - float(bottom)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        reciprocal = np.float32(0 if span == 0 else 255.0 / span)
        scale = _truncated(255.0 * unit * (float(high) - float(low)) / span) if span else 0
        input_offset = _truncated((low + high) / np.float32(2) * reciprocal * np.float32(unit))
        output_offset = _truncated(np.rint(float(bottom) * 255.0 * unit / span)) if span else 0
    moved = ((value.astype(np.int64) * scale) >> 32) + (input_offset - output_offset)
    return np.clip((moved + unit // 2) >> FIXED_POINT_BITS, 0, 255).astype(np.uint8)


def _truncated(number: float) -> int:
    """Return `number` rounded toward zero and limited to ±2⁶².

    The limit is needed because a client may send infinite ranges.
    """
    return int(np.clip(np.nan_to_num(number), -(1 << 62), 1 << 62))


def requantize(
    value: np.ndarray,
    input_min: np.ndarray,
    input_max: np.ndarray,
    requested_min: np.ndarray,
    requested_max: np.ndarray,
    *,
    out_type: DataType,
) -> Quantized:
    """Requantize: return `value` converted to the dtype `out_type` and the requested range."""
    low, high = one_float(input_min, "input_min"), one_float(input_max, "input_max")
    bottom = one_float(requested_min, "requested_output_min")
    top = one_float(requested_max, "requested_output_max")
    if not bottom <= 0:
        raise InvalidArgumentError(f"requested_output_min must be <= 0, but got {bottom:g}")
    if not top >= bottom:
        raise InvalidArgumentError(
            f"requested_output_max must be >= requested_output_min, but got {top:g} and {bottom:g}"
        )
    if out_type is DataType.QINT8:
        old, new = (low, high, DataType.QINT32), (bottom, top, out_type)
        return in_range(value, old, new), bottom, top
    return _fixed_point(value, low, high, bottom, top), bottom, top


def requantization_range(
    value: np.ndarray,
    input_min: np.ndarray,
    input_max: np.ndarray,
    *,
    Tinput: DataType,  # noqa: N803 # the attribute's name
) -> tuple[np.ndarray, np.ndarray]:
    """RequantizationRange: return the range of the floats that occur in `value`.

    The minimum of the range is at most 0.
    """
    low, high = one_float(input_min, "input_min"), one_float(input_max, "input_max")
    limits = quantized_range(Tinput)
    # If there are no elements, the minimum is the highest integer and the maximum the lowest.
    least, largest = value.min(initial=limits.highest), value.max(initial=limits.lowest)
    ends = min_first_to_float(np.array([least, largest]), low, high, limits)
    # TensorFlow's comparison ignores NaN.
    return np.fmin(np.float32(0), ends[0]), np.asarray(ends[1])


def quantize_down_and_shrink_range(
    value: np.ndarray,
    input_min: np.ndarray,
    input_max: np.ndarray,
    *,
    Tinput: DataType,  # noqa: N803 # the attribute's name
) -> Quantized:
    """QuantizeDownAndShrinkRange: requantize `value` to the range of the floats that occur."""
    low, high = one_float(input_min, "input_min"), one_float(input_max, "input_max")
    bottom, top = requantization_range(value, low, high, Tinput=Tinput)
    return _fixed_point(value, low, high, bottom, top), bottom, top


_TYPES = {"Tinput": (DataType.QINT32,), "out_type": (DataType.QUINT8,)}
KERNELS = (
    KernelDef("QuantizeDownAndShrinkRange", quantize_down_and_shrink_range, _TYPES),
    KernelDef("RequantizationRange", requantization_range),
    KernelDef(
        "Requantize",
        requantize,
        {"Tinput": (DataType.QINT32,), "out_type": (DataType.QUINT8, DataType.QINT8)},
    ),
)
