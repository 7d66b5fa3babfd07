"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.memory_needs import patches_need
from runtime.kernels.memory_sizes import (
    broadcast_elements,
    elements,
    itemsize,
    shape_of,
    size_of,
    volume,
)
from runtime.kernels.nn.pooling_memory import POOLINGS
from runtime.kernels.quantization.uniform_convolution_layout import layout_of

V = TensorValue
Ints = Sequence[int]
WIDE, DOUBLE = 4, 8  # bytes: int32, and float64 or int64


def _of_each(bytes_each: int) -> MemoryNeed:
    """Return the bound of a kernel that needs `bytes_each` for each element of its first input."""

    def need(value: V, *others: V) -> int:
        return elements(value) * bytes_each + 4 * size_of(*others)

    return need


def _mat_mul(
    first: V, second: V, *ranges: V, transpose_a: bool, transpose_b: bool
) -> int:  # fmt: skip
    rows, columns = shape_of(first)[int(transpose_a)], shape_of(second)[int(not transpose_b)]
    return 2 * rows * columns * WIDE + 3 * WIDE * elements(first, second)


def _conv(value: V, kernel: V, *ranges: V, strides: Ints, dilations: Ints, padding: str) -> int:
    height, width, _, depth = shape_of(kernel)
    sizes, steps, rates = (height, width), strides[1:3], dilations[1:3]
    windows = patches_need(shape_of(value), WIDE, sizes, steps, rates, padding)
    results = windows // max(height * width * shape_of(value)[3], 1) * depth
    return 3 * windows + 2 * results + WIDE * (2 * elements(value) + 3 * elements(kernel))


def _broadcast(first: V, second: V, *ranges: V) -> int:
    return broadcast_elements(first, second) * 5 * DOUBLE + 3 * DOUBLE * elements(first, second)


def _bias(x: V, bias: V, *ranges: V) -> int:
    return elements(x) * 10 * DOUBLE + elements(bias) * 10 * DOUBLE


def _first(value: V) -> float:
    array: np.ndarray = np.asarray(value)
    return float(array.item(0))


def _concat(concat_dim: V, *values_mins_maxes: V) -> int:
    count = len(values_mins_maxes) // 3
    values, ranges = values_mins_maxes[:count], values_mins_maxes[count:]
    ends = [{_first(each) for each in part} for part in (ranges[:count], ranges[count:])]
    is_same = len(ends[0]) == len(ends[1]) == 1 and min(ends[0]) <= 0
    # values of other ranges are converted, through float64
    return size_of(*values) + (0 if is_same else elements(*values) * 6 * DOUBLE)


def _concat_v2(*values_axis_mins_maxes: V, N: int) -> int:  # the attribute's name
    values = values_axis_mins_maxes[:N]
    return size_of(*values) + elements(*values) * 6 * DOUBLE


def _avg_pool(value: V, *ranges: V, ksize: Ints, strides: Ints, padding: str) -> int:
    windows = patches_need(shape_of(value), WIDE, ksize[1:3], strides[1:3], (1, 1), padding)
    results = windows // max(math.prod(ksize[1:3]), 1) * 2
    return 3 * windows + 6 * results + 3 * WIDE * elements(value)


def _max_pool(value: V, *ranges: V, ksize: Ints, strides: Ints, padding: str) -> int:
    return POOLINGS["MaxPool"](
        value, ksize=ksize, strides=strides, padding=padding, explicit_paddings=(),
        data_format="NHWC",
    )  # fmt: skip


def _dequantize(value: V, min_range: V, max_range: V, *, dtype: DataType) -> int:
    return elements(value) * (6 * WIDE + dtype.numpy.itemsize) + itemsize(value)


def _uniform(value: V, *others: V) -> int:
    # rescaling takes int64; so do the multipliers of the scales
    return elements(value) * 10 * DOUBLE + 30 * size_of(*others)


def _uniform_sum(lhs: V, rhs: V, *others: V) -> int:
    sums = broadcast_elements(lhs, rhs) * 10 * DOUBLE
    return sums + 10 * DOUBLE * elements(lhs, rhs) + 30 * size_of(*others)


def _uniform_product(lhs: V, rhs: V, *others: V) -> int:
    results = shape_of(lhs)[0] * shape_of(rhs)[1]
    return results * 20 * DOUBLE + 6 * DOUBLE * elements(lhs, rhs) + 30 * size_of(*others)


def _uniform_convolution(
    lhs: V, rhs: V, *others: V, window_strides: Ints, padding: str, explicit_padding: Ints,
    lhs_dilation: Ints, rhs_dilation: Ints, batch_group_count: int, feature_group_count: int,
    dimension_numbers: str,
) -> int:  # fmt: skip
    layout = layout_of(
        shape_of(lhs), shape_of(rhs), window_strides=window_strides, padding=padding,
        explicit_padding=explicit_padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
        batch_group_count=batch_group_count, feature_group_count=feature_group_count,
        dimension_numbers=dimension_numbers,
    )  # fmt: skip
    places = volume(layout.output_sizes)
    weights = elements(rhs) // max(layout.output_features, 1)
    windows = places * weights * (WIDE + 2 * DOUBLE)  # of one example
    sums = volume(layout.output_shape) * 8 * DOUBLE + places * layout.output_features * 3 * DOUBLE
    examples = shape_of(lhs)[layout.lhs_order[0]] * shape_of(lhs)[layout.lhs_order[1]]
    padded = examples * volume(layout.padded_sizes) * WIDE
    given = elements(lhs) * 8 * WIDE + elements(rhs) * 6 * WIDE + 30 * size_of(*others)
    return windows + sums + padded + given


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "Dequantize": _dequantize,
    "QuantizeV2": _of_each(10 * DOUBLE),
    "QuantizedMatMul": _mat_mul,
    "QuantizedConv2D": _conv,
    "QuantizedMul": _broadcast,
    "QuantizedAdd": _broadcast,
    "QuantizedBiasAdd": _bias,
    "QuantizedConcat": _concat,
    "QuantizedConcatV2": _concat_v2,
    "QuantizedAvgPool": _avg_pool,
    "QuantizedMaxPool": _max_pool,
    "UniformDequantize": _of_each(4 * WIDE),
    "UniformQuantize": _of_each(6 * WIDE),
    "UniformQuantizedAdd": _uniform_sum,
    "UniformQuantizedClipByValue": _of_each(3 * WIDE),
    "UniformRequantize": _uniform,
    **dict.fromkeys(("UniformQuantizedDot", "UniformQuantizedDotHybrid"), _uniform_product),
    **dict.fromkeys(
        ("UniformQuantizedConvolution", "UniformQuantizedConvolutionHybrid"), _uniform_convolution
    ),
    **dict.fromkeys(("QuantizeDownAndShrinkRange", "Requantize"), _of_each(10 * DOUBLE)),
}

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(("QuantizedReshape", "RequantizationRange"), 1),
    **dict.fromkeys(("QuantizedRelu", "QuantizedRelu6"), 3),
    **dict.fromkeys(
        (
            "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient",
            "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsGradient",
            "FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannelGradient",
            "QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3",
            "QuantizeAndDequantizeV4", "QuantizeAndDequantizeV4Grad",
        ),
        8,
    ),
}  # fmt: skip
