"""Kernels of arithmetic on quantized tensors.

A quantized tensor consists of integers and of the range of floats (min, max) that the integers of
its dtype represent. Where a parameter is a tuple (low, high, dtype), it is such a range with the
dtype of the integers.

TF: tensorflow/core/kernels/quantized_{matmul,conv,mul,activation,concat,reshape}_op*.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.array.boxing import box
from runtime.kernels.array.concat_split import concat
from runtime.kernels.array.patches import patches
from runtime.kernels.array.shapes import reshape
from runtime.kernels.math.broadcasting import broadcast_shape
from runtime.kernels.quantization.quantization import min_first_to_float, quantized_range
from runtime.kernels.quantization.requantization import Quantized, in_range, one_float
from runtime.kernels.quantization.rounding import round_half_away


def _as_integer(value: float, low: np.ndarray, high: np.ndarray, data_type: DataType) -> int:
    """Return the integer that represents the float `value` in the range `low` … `high`.

    It is not clamped to the integers of `data_type`.
    """
    limits = quantized_range(data_type)
    if not np.isfinite(high - low):
        raise InvalidArgumentError(f"The range of a quantized tensor must be finite: {low} {high}")
    if low == high:
        return limits.lowest
    steps = float(limits.highest - limits.lowest + 1)
    scale = steps / ((float(high) - float(low)) * (steps / (steps - 1)))
    rounded = round_half_away(np.array([value * scale, float(low) * scale]))
    return int(rounded[0] - rounded[1]) + limits.lowest


def _product_range(
    first: tuple[np.ndarray, np.ndarray, DataType],
    second: tuple[np.ndarray, np.ndarray, DataType],
    out_type: DataType,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the range of floats of a product of two quantized tensors.

    Its quantization step is the product of the quantization steps of the operands.
    """
    level = np.float32(1)
    for low, high, data_type in (first, second):
        limits = quantized_range(data_type)
        level = level * (high - low) / np.float32(limits.highest - limits.lowest)
    limits = quantized_range(out_type)
    return (
        np.asarray(level * np.float32(limits.lowest)),
        np.asarray(level * np.float32(limits.highest)),
    )


def _centred(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, data_type: DataType
) -> np.ndarray:
    """Return the integers `value`, shifted so that 0 represents 0.0: int32."""
    return value.astype(np.int32) - np.int32(_as_integer(0.0, low, high, data_type))


def quantized_matmul(
    first: np.ndarray,
    second: np.ndarray,
    min_a: np.ndarray,
    max_a: np.ndarray,
    min_b: np.ndarray,
    max_b: np.ndarray,
    *,
    T1: DataType,  # noqa: N803 # the attributes' names
    T2: DataType,  # noqa: N803
    Toutput: DataType,  # noqa: N803
    transpose_a: bool,
    transpose_b: bool,
) -> Quantized:
    """QuantizedMatMul: multiply the matrices `first` [m, k] and `second` [k, n] in integers.

    If `transpose_a` (`transpose_b`) is set, `first` (`second`) is transposed before.
    """
    for name, given in (("a", first), ("b", second)):
        if given.ndim != 2:
            raise InvalidArgumentError(f"In[{'ab'.index(name)}] is not a matrix")
    left_range = one_float(min_a, "min_a"), one_float(max_a, "max_a"), T1
    right_range = one_float(min_b, "min_b"), one_float(max_b, "max_b"), T2
    for name, (low, high, _) in (("a", left_range), ("b", right_range)):
        if not high > low:
            raise InvalidArgumentError(f"max_{name} must be larger than min_{name}.")
    left = _centred(first.T if transpose_a else first, *left_range)
    right = _centred(second.T if transpose_b else second, *right_range)
    if left.shape[1] != right.shape[0]:
        raise InvalidArgumentError(
            f"Matrix size-compatible: In[0]: {shape_text(first.shape)}, "
            f"In[1]: {shape_text(second.shape)}"
        )
    check_allocation((left.shape[0], right.shape[1]), np.int32)
    return (left @ right, *_product_range(left_range, right_range, Toutput))


def quantized_conv2d(
    value: np.ndarray,
    kernel: np.ndarray,
    min_input: np.ndarray,
    max_input: np.ndarray,
    min_filter: np.ndarray,
    max_filter: np.ndarray,
    *,
    Tinput: DataType,  # noqa: N803 # the attributes' names
    Tfilter: DataType,  # noqa: N803
    out_type: DataType,
    strides: tuple[int, ...],
    padding: str,
    dilations: tuple[int, ...],
) -> Quantized:
    """QuantizedConv2D: convolve `value` [b, h, w, c] with `kernel` [kh, kw, c, n] in integers."""
    _check_strides_and_dilations(strides, dilations)
    for name, given in (("input", value), ("filter", kernel)):
        if given.ndim != 4:
            raise InvalidArgumentError(f"{name} must be rank 4 but is rank {given.ndim}")
    if value.shape[3] != kernel.shape[2]:
        raise InvalidArgumentError(
            f"input and filter must have the same depth: {value.shape[3]} vs {kernel.shape[2]}"
        )
    if not value.size:
        raise InvalidArgumentError("Invalid input: Shapes dimension cannot be 0.")
    if not math.prod(kernel.shape[:3]):
        raise InvalidArgumentError("filter patch must contain at least one element")
    input_range = one_float(min_input, "min_input"), one_float(max_input, "max_input"), Tinput
    filter_range = one_float(min_filter, "min_filter"), one_float(max_filter, "max_filter"), Tfilter
    zero = _as_integer(0.0, *input_range)
    margin = zero & 0xFF  # one byte, which represents 0.0 only if 0.0 is in the range
    windows = patches(
        value.astype(np.int32) - margin, kernel.shape[:2], strides[1:3], dilations[1:3], padding
    ) + np.int32(margin - zero)
    weights = _centred(kernel, *filter_range).reshape(-1, kernel.shape[3])
    return (windows @ weights, *_product_range(input_range, filter_range, out_type))


def _check_strides_and_dilations(strides: tuple[int, ...], dilations: tuple[int, ...]) -> None:
    """Raise InvalidArgumentError if TensorFlow does not support these strides or dilations."""
    for name, given in (("strides", strides), ("dilations", dilations)):
        if len(given) != 4:
            raise InvalidArgumentError(f"Sliding window {name} field must specify 4 dimensions")
        if min(given[1:3]) <= 0:
            raise InvalidArgumentError(f"{name} must be > 0, but got {given}")
        if given[0] != 1 or given[3] != 1:
            raise InvalidArgumentError(
                f"Current implementation does not yet support {name} in the batch and depth "
                "dimensions."
            )
    if strides[1] != strides[2]:
        raise InvalidArgumentError(
            "Current implementation only supports equal length strides in the row and column "
            "dimensions."
        )
    if dilations != (1, 1, 1, 1):
        raise InvalidArgumentError(
            "Current implementation only supports dilated rate as 1 in the row and column "
            "dimensions."
        )


def quantized_mul(
    first: np.ndarray,
    second: np.ndarray,
    min_x: np.ndarray,
    max_x: np.ndarray,
    min_y: np.ndarray,
    max_y: np.ndarray,
    *,
    T1: DataType,  # noqa: N803 # the attributes' names
    T2: DataType,  # noqa: N803
    Toutput: DataType,  # noqa: N803
) -> Quantized:
    """QuantizedMul: return the product of two tensors that broadcast."""
    left_range = one_float(min_x, "min_x"), one_float(max_x, "max_x"), T1
    right_range = one_float(min_y, "min_y"), one_float(max_y, "max_y"), T2
    for name, other, (low, high, _) in (("x", "a", left_range), ("y", "b", right_range)):
        if not high > low:  # the message has TensorFlow's names
            raise InvalidArgumentError(f"max_{name} must be larger than min_{other}.")
    check_allocation(broadcast_shape(first, second), np.int32)
    product = _centred(first, *left_range) * _centred(second, *right_range)
    return (product, *_product_range(left_range, right_range, Toutput))


_ADD_HEADROOM, _BIAS_HEADROOM = 1 << 14, 1 << 17  # range of a sum / range of the operands


def _sum_range(
    first: tuple[np.ndarray, np.ndarray, DataType],
    second: tuple[np.ndarray, np.ndarray, DataType],
    headroom: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a symmetric range, `headroom` times as large as the largest operand."""
    ends = [end for low, high, _ in (first, second) for end in (-low, high)]
    top = np.asarray(max(ends) * np.float32(headroom), np.float32)
    return -top, top


def quantized_add(
    x: np.ndarray,
    y: np.ndarray,
    min_x: np.ndarray,
    max_x: np.ndarray,
    min_y: np.ndarray,
    max_y: np.ndarray,
    *,
    T1: DataType,  # noqa: N803 # the attributes' names
    T2: DataType,  # noqa: N803
    Toutput: DataType,  # noqa: N803
) -> Quantized:
    """QuantizedAdd: return the sum of two tensors that broadcast.

    The quantization step of an operand is rounded to a whole number of quantization steps of the
    sum.
    """
    first = one_float(min_x, "min_x"), one_float(max_x, "max_x"), T1
    second = one_float(min_y, "min_y"), one_float(max_y, "max_y"), T2
    for name, (bottom, top, _) in (("x", first), ("y", second)):
        if not top > bottom:
            raise InvalidArgumentError(f"max_{name} must be larger than min_{name}.")
    low, high = _sum_range(first, second, _ADD_HEADROOM)
    shape = broadcast_shape(x, y)
    if not (x.size and y.size):
        raise InvalidArgumentError("Must have some elements to add")
    check_allocation(shape, np.int64)
    total = np.zeros(shape, np.int64)
    for value, (bottom, top, data_type) in ((x, first), (y, second)):
        # One number is converted exactly. Of several, each is converted as start + number ·
        # (one - start), where start and one are the conversions of 0 and 1, rounded.
        known = value.ravel() if value.size == 1 else np.array([0, 1])
        ends = min_first_to_float(known, bottom, top, quantized_range(data_type))
        start, *after = (_as_integer(float(each), low, high, Toutput) for each in ends)
        total += start + sum(value.astype(np.int64) * (one - start) for one in after)
    return total.astype(Toutput.numpy), low, high


def quantized_bias_add(
    x: np.ndarray,
    bias: np.ndarray,
    min_input: np.ndarray,
    max_input: np.ndarray,
    min_bias: np.ndarray,
    max_bias: np.ndarray,
    *,
    T1: DataType,  # noqa: N803 # the attributes' names
    T2: DataType,  # noqa: N803
    out_type: DataType,
) -> Quantized:
    """QuantizedBiasAdd: return the sum of `x` and the vector `bias` along the last dimension."""
    if not x.ndim or bias.shape != x.shape[-1:]:
        raise InvalidArgumentError(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{shape_text(bias.shape)} vs. {shape_text(x.shape)}"
        )
    first = one_float(min_input, "min_input"), one_float(max_input, "max_input"), T1
    second = one_float(min_bias, "min_bias"), one_float(max_bias, "max_bias"), T2
    if not bias.size:
        raise InvalidArgumentError("Must provide at least 1 bias")
    low, high = _sum_range(first, second, _BIAS_HEADROOM)
    total = in_range(x, first, (low, high, out_type))
    return total + in_range(bias, second, (low, high, out_type)), low, high


def _clamped(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, data_type: DataType, top: float | None
) -> Quantized:
    """Return `value` clamped to the integers that represent 0.0 and `top`.

    There is no upper limit if `top` is None. The range is returned unchanged.
    """
    low, high = one_float(low, "min_features"), one_float(high, "max_features")
    limits = quantized_range(data_type)
    edges = [0.0] if top is None else [0.0, top]
    bounds = [
        min(max(_as_integer(edge, low, high, data_type), limits.lowest), limits.highest)
        for edge in edges
    ]
    one = value.dtype.type
    result = np.maximum(value, one(bounds[0]))
    if top is not None:
        result = np.minimum(result, one(bounds[1]))
    return result, low, high


def quantized_relu(
    features: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    *,
    Tinput: DataType,  # noqa: N803 # the attribute's name
) -> Quantized:
    """QuantizedRelu: return the maximum of `features` and 0.0."""
    return _clamped(features, low, high, Tinput, None)


def quantized_relu6(
    features: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    *,
    Tinput: DataType,  # noqa: N803 # the attribute's name
) -> Quantized:
    """QuantizedRelu6: return `features` clamped to [0.0, 6.0]."""
    return _clamped(features, low, high, Tinput, 6.0)


def quantized_reshape(
    tensor: np.ndarray, shape: np.ndarray, input_min: np.ndarray, input_max: np.ndarray
) -> Quantized:
    """QuantizedReshape: return `tensor` with another shape, and the unchanged range."""
    return (
        box(reshape(tensor, shape)),
        one_float(input_min, "input_min"),
        one_float(input_max, "input_max"),
    )


def quantized_concat(
    concat_dim: np.ndarray,
    *values_mins_maxes: np.ndarray,
    T: DataType,  # noqa: N803 # the attribute's name
) -> Quantized:
    """QuantizedConcat: convert the inputs to one common range, then concatenate them."""
    if concat_dim.ndim:
        raise InvalidArgumentError(
            "Concat dim tensor should be a scalar integer, "
            f"but got shape {shape_text(concat_dim.shape)}"
        )
    count = len(values_mins_maxes) // 3
    values = values_mins_maxes[:count]
    if int(concat_dim) < 0:  # unlike in Concat
        raise InvalidArgumentError(
            "ConcatOp : Expected concatenating dimensions in the range "
            f"[0, {values[0].ndim}), but got {int(concat_dim)}"
        )
    lows = [one_float(each, "input_mins") for each in values_mins_maxes[count : 2 * count]]
    highs = [one_float(each, "input_maxes") for each in values_mins_maxes[2 * count :]]
    bottom = np.float32(min(0.0, *(float(low) for low in lows)))
    top = np.float32(max(float(high) for high in highs))
    common = (np.asarray(bottom), np.asarray(top), T)
    parts = [
        value if low == bottom and high == top else in_range(value, (low, high, T), common)
        for value, low, high in zip(values, lows, highs, strict=True)
    ]
    return concat(concat_dim, *parts), common[0], common[1]


KERNELS = (
    KernelDef("QuantizedAdd", quantized_add),
    KernelDef("QuantizedBiasAdd", quantized_bias_add),
    KernelDef("QuantizedConcat", quantized_concat),
    KernelDef("QuantizedConv2D", quantized_conv2d, expensive=True),
    KernelDef("QuantizedMatMul", quantized_matmul, expensive=True),
    KernelDef("QuantizedMul", quantized_mul),
    KernelDef("QuantizedRelu", quantized_relu),
    KernelDef("QuantizedRelu6", quantized_relu6),
    KernelDef("QuantizedReshape", quantized_reshape),
)
