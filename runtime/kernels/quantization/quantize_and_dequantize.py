"""Kernels that round floats to values that a quantized integer can represent.

TF: tensorflow/core/kernels/quantize_and_dequantize_op.{h,cc}
"""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.kernels.quantization.rounding import ROUND_MODES


def quantize_and_dequantize(
    value: np.ndarray,
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    input_min: float,
    input_max: float,
) -> np.ndarray:
    """QuantizeAndDequantize: round `value` to floats that `num_bits` bits can represent.

    The range is `input_min` … `input_max` if `range_given`, otherwise the range of `value`.
    """
    _check_bits(num_bits, signed_input)
    low, high = value.dtype.type(input_min), value.dtype.type(input_max)
    if range_given and not low <= high:  # also if one is NaN
        raise InvalidArgumentError(
            f"Invalid range: input_min {input_min:g} > input_max {input_max:g}"
        )
    if not range_given:
        low, high = value.min(initial=np.inf), value.max(initial=-np.inf)
    steps = _QuantizedSteps(signed_input, num_bits, False, "HALF_TO_EVEN", range_given)
    return steps.apply(value, low, high)


def quantize_and_dequantize_v2(
    value: np.ndarray,
    input_min: np.ndarray,
    input_max: np.ndarray,
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int,
) -> np.ndarray:
    """QuantizeAndDequantizeV2: round `value` to floats that `num_bits` bits can represent.

    The range is `input_min` … `input_max` if `range_given`, otherwise the range of `value`. If
    `axis` is not −1, each of its indices has a range.
    """
    _check_bits(num_bits, signed_input)
    if range_given and axis == -1:
        for name, given in (("min", input_min), ("max", input_max)):
            if np.ndim(given):
                raise InvalidArgumentError(f"input_{name} must be a scalar.")
    low, high = _range(value, input_min, input_max, range_given, axis)
    steps = _QuantizedSteps(signed_input, num_bits, narrow_range, round_mode, range_given)
    return steps.apply(value, low, high)


def quantize_and_dequantize_v3(
    value: np.ndarray,
    input_min: np.ndarray,
    input_max: np.ndarray,
    num_bits: np.ndarray,
    *,
    signed_input: bool,
    range_given: bool,
    narrow_range: bool,
    axis: int,
) -> np.ndarray:
    """QuantizeAndDequantizeV3: do the same as QuantizeAndDequantizeV2; `num_bits` is an input."""
    if num_bits.ndim:
        raise InvalidArgumentError(
            "Invalid shape. The `num_bits` tensor should be a scalar. "
            f"Got dimensions: {num_bits.ndim}"
        )
    bits = int(num_bits.item())
    _check_bits(bits, signed_input)
    low, high = _range(value, input_min, input_max, range_given, axis)
    steps = _QuantizedSteps(signed_input, bits, narrow_range, "HALF_TO_EVEN", range_given)
    return steps.apply(value, low, high)


def _check_bits(num_bits: int, signed_input: bool) -> None:
    if not 0 < num_bits < (62 if signed_input else 63):
        raise InvalidArgumentError(
            f"num_bits is out of range: {num_bits} with signed_input_ {int(signed_input)}"
        )


def quantize_and_dequantize_v4_grad(
    gradients: np.ndarray,
    input: np.ndarray,
    input_min: np.ndarray,
    input_max: np.ndarray,
    *,
    axis: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """QuantizeAndDequantizeV4Grad: return the gradients with respect to the three inputs.

    The gradient passes unchanged for each element of `input` within the range, and is 0 for all
    others. The gradients with respect to the two ends of the range are zeros.
    """
    if gradients.shape != input.shape:
        raise InvalidArgumentError("gradient and input must be the same size")
    if axis < -1 or axis >= input.ndim:
        raise InvalidArgumentError(
            f"Axis should be -1 or 0 or a positive value less than {input.ndim}"
            f"but given axis value was {axis}"
        )
    low, high = np.asarray(input_min), np.asarray(input_max)
    for name, given in (("min", low), ("max", high)):
        if given.ndim > 1:
            raise InvalidArgumentError(
                f"Input {name} tensor must have dimension 0 or 1. Received {given.ndim}."
            )
    if axis < 0:
        for name, given in (("min", low), ("max", high)):
            if given.ndim:
                raise InvalidArgumentError(f"input_{name} must be a scalar if axis is unspecified")
    if axis >= 0:
        for name, given in (("min", low), ("max", high)):
            if given.ndim != 1:
                raise InvalidArgumentError(
                    f"Shape must be rank 1 for input_{name}_tensor when the axis is specified"
                )
            if given.size != input.shape[axis]:
                raise InvalidArgumentError(
                    f"{name} has incorrect size, expected {input.shape[axis]} was {given.size}"
                )
        around = (-1, *(1,) * (input.ndim - 1 - axis))
        low, high = low.reshape(around), high.reshape(around)
    inside = (input >= low) & (input <= high)
    with np.errstate(invalid="ignore"):
        passed = gradients * inside  # 0 · infinity is NaN
    return passed, np.zeros_like(input_min), np.zeros_like(input_max)


def _range(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, range_given: bool, axis: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (lowest, highest), shaped to broadcast with `value`.

    They are `low` and `high` if `range_given`, otherwise they are computed from `value`. Raises
    InvalidArgumentError if a shape does not fit or `low` > `high`.
    """
    if axis < -1 or axis >= value.ndim:
        raise InvalidArgumentError(
            f"Axis requested is larger than input dimensions. Axis: {axis} "
            f"Input Dimensions: {value.ndim}"
        )
    if not range_given:
        others = None if axis == -1 else tuple(d for d in range(value.ndim) if d != axis)
        if not value.size:
            return np.asarray(value.dtype.type(0)), np.asarray(value.dtype.type(0))
        return value.min(others, keepdims=axis != -1), value.max(others, keepdims=axis != -1)
    slices = 1 if axis == -1 else value.shape[axis]
    for name, given in (("min", low), ("max", high)):
        if given.size != slices:
            raise InvalidArgumentError(
                f"input_{name} has incorrect size, expected {slices} was {given.size}"
            )
    if (low > high).any():
        bad = int((low > high).argmax())
        raise InvalidArgumentError(
            f"Invalid range: input_min {low.ravel()[bad]:g} > input_max {high.ravel()[bad]:g}"
        )
    sizes = () if axis == -1 else (-1, *(1,) * (value.ndim - axis - 1))
    return low.reshape(sizes), high.reshape(sizes)


@dataclasses.dataclass(frozen=True, slots=True)
class _QuantizedSteps:
    """The quantization steps of an integer with `num_bits` bits, to which floats are rounded.

    If `clamps` is set, floats are first clamped to the range.
    """

    signed: bool
    num_bits: int
    narrow: bool
    round_mode: str
    clamps: bool

    def apply(self, value: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return `value` rounded to a quantization step.

        The quantization steps are the smallest with which both `low` and `high` can be represented.
        """
        one = value.dtype.type
        bits = self.num_bits - self.signed
        lowest = one(-(1 << bits) + self.narrow if self.signed else 0)
        highest = one((1 << bits) - 1)
        largest = np.finfo(value.dtype).max
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            from_low = np.where(lowest * low > 0, lowest / low, largest)
            from_high = np.where(highest * high > 0, highest / high, largest)
            by_low = from_low < from_high
            scale = np.where(by_low, from_low, from_high).astype(value.dtype)
            step = np.where(by_low, low / lowest, high / highest).astype(value.dtype)
            if self.clamps:
                bottom = np.where(by_low, low, lowest * step)
                top = np.where(by_low, highest * step, high)
                value = np.maximum(np.minimum(value, top), bottom)
            return np.asarray(ROUND_MODES[self.round_mode](value * scale) * step, one)


KERNELS = (
    KernelDef("QuantizeAndDequantize", quantize_and_dequantize),
    KernelDef("QuantizeAndDequantizeV2", quantize_and_dequantize_v2),
    KernelDef("QuantizeAndDequantizeV3", quantize_and_dequantize_v3),
    KernelDef("QuantizeAndDequantizeV4", quantize_and_dequantize_v2),
    KernelDef("QuantizeAndDequantizeV4Grad", quantize_and_dequantize_v4_grad),
)
