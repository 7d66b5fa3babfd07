"""Fake quantization: kernels that round floats as if they were quantized, and the gradients.

The floats are rounded to the quantization steps of integers with 2 to 16 bits.

TF: tensorflow/core/kernels/fake_quant_ops{.cc,_functor.h}
"""

from __future__ import annotations

import dataclasses

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.math.element_blocks import in_blocks

HALF = np.float32(0.5)


@dataclasses.dataclass(frozen=True, slots=True)
class NudgedRange:
    """A range of floats in which zero is exactly one of the quantization steps.

    `scale` is the size of one quantization step.
    """

    low: np.ndarray
    high: np.ndarray
    scale: np.ndarray
    inverse: np.ndarray | None = None  # 1 / scale, or None if TensorFlow divides by scale

    def apply(self, value: np.ndarray) -> np.ndarray:
        """Return `value` clamped to the range and rounded to a quantization step."""
        is_scalar = not np.ndim(self.low)
        rounded = _rounded if is_scalar else _rounded.__wrapped__  # type: ignore[attr-defined]
        return rounded(value, low=self.low, high=self.high, scale=self.scale, inverse=self.inverse)

    def inside(self, value: np.ndarray) -> np.ndarray:
        """Return which elements of `value` are in the range and need no clamping: bool."""
        return (value >= self.low) & (value <= self.high)


@in_blocks(2)
def _rounded(
    value: np.ndarray,
    *,
    low: np.ndarray,
    high: np.ndarray,
    scale: np.ndarray,
    inverse: np.ndarray | None,
) -> np.ndarray:
    steps = np.minimum(value, high)
    np.maximum(steps, low, out=steps)
    steps -= low
    if inverse is None:
        steps /= scale
        steps -= np.floor(-low / scale + HALF)
    else:
        steps *= inverse
        steps -= np.floor(-low * inverse + HALF)
    steps += HALF
    np.floor(steps, out=steps)
    steps *= scale
    return steps


def _nudge(
    low: np.ndarray, high: np.ndarray, num_bits: int, narrow_range: bool, divided: bool = False
) -> NudgedRange:
    """Return the range `low` … `high`, shifted so that zero is one of the quantization steps.

    If `divided` is set, the range divides by the scale, otherwise it multiplies by 1 / scale.
    TensorFlow does both, in different ops, and they round differently.
    """
    lowest, highest = np.float32(1 if narrow_range else 0), np.float32((1 << num_bits) - 1)
    scale = (high - low) / (highest - lowest)
    zero = lowest - low / scale
    nudged = np.where(
        zero < lowest, lowest, np.where(zero > highest, highest, np.floor(zero + HALF))
    )
    nudged = nudged.astype(np.float32)
    inverse = None if divided else np.asarray((highest - lowest) / (high - low))
    return NudgedRange(
        (lowest - nudged) * scale, (highest - nudged) * scale, np.asarray(scale), inverse
    )


def fake_quant_args(
    value: np.ndarray, *, min: float, max: float, num_bits: int, narrow_range: bool
) -> np.ndarray:
    """FakeQuantWithMinMaxArgs: clamp `value` to the range `min` … `max`, then round it.

    It is rounded to the quantization steps of an integer with `num_bits` bits.
    """
    return _args_range(min, max, num_bits, narrow_range).apply(value)


def fake_quant_args_gradient(
    gradients: np.ndarray,
    value: np.ndarray,
    *,
    min: float,
    max: float,
    num_bits: int,
    narrow_range: bool,
) -> np.ndarray:
    """FakeQuantWithMinMaxArgsGradient: return the gradient with respect to the input.

    It is 0 for each element that was clamped, and passes unchanged for all others.
    """
    _check_same_size(gradients, value)
    nudged = _args_range(min, max, num_bits, narrow_range)
    with np.errstate(invalid="ignore"):  # infinity · 0 is NaN, as in TensorFlow
        return np.asarray(gradients * nudged.inside(value).astype(np.float32))


def _args_range(low: float, high: float, num_bits: int, narrow_range: bool) -> NudgedRange:
    _check_bits(num_bits)
    if not low < high:  # also true for NaN
        raise InvalidArgumentError(f"min has to be smaller than max, was: {low:g} >= {high:g}")
    return _nudge(np.array(low, np.float32), np.array(high, np.float32), num_bits, narrow_range)


def _check_bits(num_bits: int) -> None:
    if not 2 <= num_bits <= 16:
        raise InvalidArgumentError(f"num_bits must be between 2 and 16, inclusive, was: {num_bits}")


def _check_same_size(gradients: np.ndarray, value: np.ndarray) -> None:
    if gradients.shape != value.shape:
        raise InvalidArgumentError("gradient and input must be the same size")


def fake_quant_vars(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, *, num_bits: int, narrow_range: bool
) -> np.ndarray:
    """FakeQuantWithMinMaxVars: clamp `value` to `low` … `high`, which are scalars, then round it.

    The range 0 to 0 gives zeros.
    """
    _check_bits(num_bits)
    for name, given in (("min", low), ("max", high)):
        if given.ndim:
            raise InvalidArgumentError(f"`{name}` must be rank 0 but is rank {given.ndim}")
    return _with_range_inputs(value, low, high, num_bits, narrow_range)


def fake_quant_per_channel(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, *, num_bits: int, narrow_range: bool
) -> np.ndarray:
    """FakeQuantWithMinMaxVarsPerChannel: clamp each channel of `value` to its range, then round it.

    The channels are the indices of the last dimension; `low` and `high` have one element for each.
    """
    _check_bits(num_bits)
    _check_channels(value, low, high)
    return _with_range_inputs(value, low, high, num_bits, narrow_range)


def _check_channels(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    for name, given in (("min", low), ("max", high)):
        if given.ndim != 1:
            raise InvalidArgumentError(f"`{name}` must be rank 1 but is rank {given.ndim}")
        if not value.ndim or given.shape != value.shape[-1:]:
            raise InvalidArgumentError(
                f"{name} has incorrect size, expected "
                f"{value.shape[-1] if value.ndim else shape_text(value.shape)} was {given.size}"
            )


def _with_range_inputs(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, num_bits: int, narrow_range: bool
) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        divided = not low.ndim  # the op with a range per channel multiplies by 1 / scale
        rounded = _nudge(low, high, num_bits, narrow_range, divided).apply(value)
    return np.where((low == 0) & (high == 0), np.float32(0), rounded)


def fake_quant_vars_gradient(
    gradients: np.ndarray,
    value: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    *,
    num_bits: int,
    narrow_range: bool,
) -> tuple[np.ndarray, ...]:
    """FakeQuantWithMinMaxVarsGradient: return the gradients with respect to the three inputs.

    These are the value, the minimum and the maximum of FakeQuantWithMinMaxVars.
    """
    _check_bits(num_bits)
    _check_same_size(gradients, value)
    for name, given in (("min", low), ("max", high)):
        if given.ndim:
            raise InvalidArgumentError(f"`{name}` must be rank 0 but is rank {given.ndim}")
    return _gradients(gradients, value, low, high, num_bits, narrow_range, None)


def fake_quant_per_channel_gradient(
    gradients: np.ndarray,
    value: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    *,
    num_bits: int,
    narrow_range: bool,
) -> tuple[np.ndarray, ...]:
    """FakeQuantWithMinMaxVarsPerChannelGradient: return the gradients with respect to three inputs.

    These are the value, the minimums and the maximums of FakeQuantWithMinMaxVarsPerChannel.
    """
    _check_bits(num_bits)
    _check_same_size(gradients, value)
    _check_channels(value, low, high)
    others = tuple(range(value.ndim - 1))
    return _gradients(gradients, value, low, high, num_bits, narrow_range, others)


def _gradients(
    gradients: np.ndarray,
    value: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    num_bits: int,
    narrow_range: bool,
    summed: tuple[int, ...] | None,
) -> tuple[np.ndarray, ...]:
    with np.errstate(invalid="ignore", divide="ignore"):
        nudged = _nudge(low, high, num_bits, narrow_range)
        flat = (low == 0) & (high == 0)  # such a range lets the whole gradient pass
        inside = nudged.inside(value) | flat
        # As in TensorFlow, the gradient is multiplied by 0 or 1; infinity · 0 gives NaN.
        passed, *parts = (
            gradients * counted.astype(np.float32)
            for counted in (inside, value < nudged.low, value > nudged.high)
        )
        sums = (np.sum(each, summed, dtype=np.float32) for each in parts)
        return (np.asarray(passed), *(np.where(flat, np.float32(0), each) for each in sums))


KERNELS = (
    KernelDef("FakeQuantWithMinMaxArgs", fake_quant_args),
    KernelDef("FakeQuantWithMinMaxArgsGradient", fake_quant_args_gradient),
    KernelDef("FakeQuantWithMinMaxVars", fake_quant_vars),
    KernelDef("FakeQuantWithMinMaxVarsGradient", fake_quant_vars_gradient),
    KernelDef("FakeQuantWithMinMaxVarsPerChannel", fake_quant_per_channel),
    KernelDef("FakeQuantWithMinMaxVarsPerChannelGradient", fake_quant_per_channel_gradient),
)
