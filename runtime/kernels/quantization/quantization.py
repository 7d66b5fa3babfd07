"""Kernels that convert floats to quantized integers (QuantizeV2) or back (Dequantize).

TF: tensorflow/core/kernels/{quantize_op,dequantize_op}.cc, quantization_utils.h
"""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.quantization.rounding import ROUND_MODES, round_half_away

FLOAT_MAX = np.finfo(np.float32).max


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizedRange:
    """The lowest and highest integer of a quantized dtype."""

    lowest: int
    highest: int

    @property
    def half(self) -> float:
        """The offset that makes the integers non-negative: 0 if the dtype is unsigned."""
        return (self.highest - self.lowest + 1) / 2 if self.lowest < 0 else 0.0


def quantized_range(data_type: DataType) -> QuantizedRange:
    """Return the lowest and highest integer of QINT8, QUINT8, QINT16, QUINT16 or QINT32."""
    limits = np.iinfo(data_type.numpy)
    return QuantizedRange(int(limits.min), int(limits.max))


def quantize_v2(
    value: np.ndarray,
    min_range: np.ndarray,
    max_range: np.ndarray,
    *,
    T: DataType,  # noqa: N803 # the attribute's name
    mode: str,
    round_mode: str,
    narrow_range: bool,
    axis: int,
    ensure_minimum_range: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """QuantizeV2: convert the floats `value` to integers of type `T`.

    Returns (integers, lowest float, highest float); the integers of `T` represent the floats
    between those two.
    """
    if round_mode == "HALF_TO_EVEN" and mode != "SCALED":
        raise InvalidArgumentError(
            f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode}'."
        )
    low = _slices(value, min_range, axis, "min_range")
    high = _slices(value, max_range, axis, "max_range")
    if (high < low).any():
        raise InvalidArgumentError("input_max_range must be larger than input_min_range.")
    if mode == "MIN_FIRST" and low.ndim:
        raise UnimplementedError("MIN_FIRST mode is not implemented for Quantize with axis != -1.")
    limits = quantized_range(T)
    lowest = np.minimum(np.float32(0), low)
    epsilon = np.maximum(1, np.maximum(np.abs(low), np.abs(high))) * np.float32(
        ensure_minimum_range
    )
    highest = np.maximum(np.float32(0), np.maximum(high, lowest + epsilon))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if mode == "SCALED":
            floats, lowest, highest = _scaled(
                value, lowest, highest, limits, narrow_range, round_mode
            )
        elif mode == "MIN_FIRST":
            floats = min_first(value, lowest, highest, limits)
        else:
            floats = _min_combined(value, lowest, highest, limits)
        result = floats.astype(T.numpy)
    shape = () if axis == -1 or min_range.size == 1 else min_range.shape
    return result, lowest.reshape(shape), highest.reshape(shape)


def _slices(value: np.ndarray, given: np.ndarray, axis: int, name: str) -> np.ndarray:
    """Return `given`, the input `min_range` or `max_range`, reshaped to broadcast with `value`.

    The result is a scalar if `axis` is −1, which means one range for the whole tensor; else it
    varies along `axis` only. Raises InvalidArgumentError if `axis` is not a dimension of `value`,
    or if `given` has another number of elements than `value.shape[axis]`, or than 1 for `axis` −1.
    """
    if axis == -1:
        if given.size != 1:
            raise InvalidArgumentError(
                f"If axis is not specified, {name} must contain a single float element, but it "
                f"contains {given.size} elements"
            )
        return np.asarray(given, np.float32).reshape(())
    if axis < -1:
        raise InvalidArgumentError(f"axis should be at least -1, got {axis}")
    if axis >= value.ndim:
        raise InvalidArgumentError(
            "Axis is on a zero-based index, so its value must always be less than number of "
            f"input's dims, but given axis value was {axis} and input's dims was {value.ndim}"
        )
    if given.shape != (value.shape[axis],):
        found = (
            f"is a 1-D tensor of size {given.size} and input's axis dimension is of size "
            f"{value.shape[axis]}"
            if given.ndim == 1
            else f"dims are {given.ndim}"
        )
        raise InvalidArgumentError(
            f"If axis is specified, {name} must be a 1-D tensor whose size matches the axis "
            f"dimension of the input and output tensors, but {name} {found}"
        )
    return given.reshape(() if given.size == 1 else (-1, *(1,) * (value.ndim - axis - 1)))


def _per_slice(value: np.ndarray, given: np.ndarray, axis: int, name: str) -> np.ndarray:
    """Return `given`, an end of the range of Dequantize, shaped to broadcast with `value`.

    Raises InvalidArgumentError if `given` does not have one element for each index of `axis`.
    """
    if axis == -1:
        if given.size != 1:
            raise InvalidArgumentError(
                f"`{name}` must be a scalar but has shape {shape_text(given.shape)}"
            )
        return np.asarray(given, np.float32).reshape(())
    if axis < 0 or axis >= value.ndim:
        raise InvalidArgumentError(
            f"Axis must be less than input dimension({value.ndim}), got {axis}"
        )
    if given.shape != (value.shape[axis],):
        raise InvalidArgumentError(
            f"{name} has incorrect size, expected {value.shape[axis]} was {given.size}"
        )
    return given.reshape(-1, *(1,) * (value.ndim - axis - 1))


def _scaled(
    value: np.ndarray,
    lowest: np.ndarray,
    highest: np.ndarray,
    limits: QuantizedRange,
    narrow_range: bool,
    round_mode: str,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    low, high = np.float32(limits.lowest + narrow_range), np.float32(limits.highest)
    from_low = np.where(low * lowest > 0, low / lowest, FLOAT_MAX)
    from_high = np.where(high * highest > 0, high / highest, FLOAT_MAX)
    scale = np.minimum(from_low, from_high).astype(np.float32)
    lowest, highest = low / scale, high / scale
    clipped = np.maximum(np.minimum(value, highest), lowest)
    return ROUND_MODES[round_mode](clipped * scale), np.asarray(lowest), np.asarray(highest)


def min_first(
    value: np.ndarray, lowest: np.ndarray, highest: np.ndarray, limits: QuantizedRange
) -> np.ndarray:
    """Return the integers, as float64, that represent the floats `value` in mode MIN_FIRST.

    `value` and the minimum `lowest` are scaled and rounded separately, then subtracted.
    """
    steps = float(limits.highest - limits.lowest + 1)
    span = (highest.astype(np.float64) - lowest) * (steps / (steps - 1))
    scale = np.float32(np.where(span == 0, 0.0, steps / span))
    lowest_scaled = round_half_away(lowest * scale)
    shifted = round_half_away(value * scale) - (lowest_scaled - np.float64(limits.lowest))
    # As in TensorFlow, rounded to float32. The largest float32 below 2³¹ is 2³¹ − 128.
    highest_float = min(float(limits.highest), 2.0**31 - 128)
    return np.clip(shifted.astype(np.float32).astype(np.float64), limits.lowest, highest_float)


def _min_combined(
    value: np.ndarray, lowest: np.ndarray, highest: np.ndarray, limits: QuantizedRange
) -> np.ndarray:
    scale = np.float32((limits.highest - limits.lowest) / (highest - lowest))
    offset = (np.maximum(np.minimum(value, highest), lowest) - lowest) * scale
    if limits.lowest < 0:
        return round_half_away(offset - np.float32(limits.half))
    return np.trunc(offset + np.float32(0.5))


def dequantize(
    value: np.ndarray,
    min_range: np.ndarray,
    max_range: np.ndarray,
    *,
    T: DataType,  # noqa: N803 # the attribute's name
    mode: str,
    narrow_range: bool,
    axis: int,
    dtype: DataType,
) -> np.ndarray:
    """Dequantize: return the floats that the integers `value` of type `T` represent."""
    low = _per_slice(value, min_range, axis, "min_range")
    high = _per_slice(value, max_range, axis, "max_range")
    if dtype is DataType.BFLOAT16 and mode != "MIN_COMBINED":
        raise InvalidArgumentError(
            f"When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '{mode}'"
        )
    limits = quantized_range(T)
    floats = value.astype(np.float32)
    if mode == "SCALED":
        result = floats * _dequantize_scale(low, high, limits, narrow_range)
    elif mode == "MIN_FIRST":
        result = min_first_to_float(value, low, high, limits)
    else:
        scale = np.float32((high - low) / np.float32(limits.highest - limits.lowest))
        result = (floats + np.float32(limits.half)) * scale + low
    return np.asarray(result, dtype.numpy)


def _dequantize_scale(
    low: np.ndarray, high: np.ndarray, limits: QuantizedRange, narrow_range: bool
) -> np.ndarray:
    from_high = high / np.float32(limits.highest)
    if limits.lowest == 0:
        return from_high
    return np.maximum(low / np.float32(limits.lowest + narrow_range), from_high)


def min_first_to_float(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, limits: QuantizedRange
) -> np.ndarray:
    """Return the floats that the integers `value` represent in mode MIN_FIRST.

    The minimum `low` is rounded to a whole number of quantization steps.
    """
    scale = np.float32((high.astype(np.float64) - low) / (limits.highest - limits.lowest))
    with np.errstate(invalid="ignore", divide="ignore"):
        rounded = np.where(high == low, low, round_half_away(low / scale) * scale)
    offset = rounded.astype(np.float32) - np.float32(limits.lowest) * scale
    return np.asarray(value.astype(np.float32) * scale + offset)


KERNELS = (
    KernelDef("Dequantize", dequantize),
    KernelDef("QuantizeV2", quantize_v2),
)
