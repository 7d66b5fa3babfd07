"""Matrix products and convolutions of uniformly quantized tensors."""

from typing import Any

import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

QINT8, QINT32 = DataType.QINT8, DataType.QINT32
_random = np.random.default_rng(7)


def integers(*shape: int) -> np.ndarray:
    return _random.integers(-128, 128, shape).astype(np.int8)


def floats(*shape: int) -> np.ndarray:
    return _random.normal(size=shape).astype(np.float32)


LHS, RHS = integers(3, 5), integers(5, 4)
FLOATS = floats(3, 5)
SCALES = np.array([0.25, 1.5, 0.03, 0.7], np.float32)
ZEROS = np.array([3, -20, 100, 0], np.int32)
CHANNELS, TENSOR = (SCALES, ZEROS), (0.3, -7)


def ends(*names: str, low: int = -(2**31), high: int = 2**31 - 1) -> dict[str, int]:
    return {
        f"{name}_quantization_{end}_val": value
        for name in names
        for end, value in (("min", low), ("max", high))
    }


def axis_of(pair: tuple[Any, Any], axis: int) -> int:
    return axis if np.ndim(pair[0]) else -1


def dot(
    lhs: np.ndarray, rhs: np.ndarray, ranges: tuple[tuple[Any, Any], ...], **changes: Any
) -> Case:
    attrs = {
        "lhs_quantization_axis": -1, "rhs_quantization_axis": axis_of(ranges[1], 1),
        "output_quantization_axis": axis_of(ranges[2], 1), **ends("lhs", "rhs", "output"),
        **changes,
    }  # fmt: skip
    return case(
        "UniformQuantizedDot", lhs, rhs, *(each for pair in ranges for each in pair),
        dtypes=[QINT8, QINT8], Tout=QINT32, **attrs,
    )  # fmt: skip


def hybrid(lhs: np.ndarray, rhs: np.ndarray, pair: tuple[Any, Any], **changes: Any) -> Case:
    attrs = {"rhs_quantization_axis": axis_of(pair, 1), **ends("rhs"), **changes}
    return case(
        "UniformQuantizedDotHybrid", lhs, rhs, *pair, dtypes=[DataType.FLOAT, QINT8],
        Tout=DataType.FLOAT, exact=True, **attrs,
    )  # fmt: skip


def convolution(
    lhs: np.ndarray, rhs: np.ndarray, ranges: tuple[tuple[Any, Any], ...],
    channel: tuple[int, int] = (0, 1), **changes: Any,
) -> Case:  # fmt: skip
    attrs = {
        "padding": "VALID", "lhs_quantization_axis": -1,
        "rhs_quantization_axis": axis_of(ranges[1], channel[0]),
        "output_quantization_axis": axis_of(ranges[2], channel[1]),
        **ends("lhs", "rhs", "output"), **changes,
    }  # fmt: skip
    return case(
        "UniformQuantizedConvolution", lhs, rhs, *(each for pair in ranges for each in pair),
        dtypes=[QINT8, QINT8], Tout=QINT32, **attrs,
    )  # fmt: skip


def hybrid_convolution(
    lhs: np.ndarray, rhs: np.ndarray, pair: tuple[Any, Any], channel: int = 0, **changes: Any
) -> Case:
    attrs = {
        "padding": "VALID", "rhs_quantization_axis": axis_of(pair, channel), **ends("rhs"),
        **changes,
    }  # fmt: skip
    return case(
        "UniformQuantizedConvolutionHybrid", lhs, rhs, *pair, dtypes=[DataType.FLOAT, QINT8],
        Tout=DataType.FLOAT, exact=True, **attrs,
    )  # fmt: skip


IMAGE, KERNEL = integers(2, 3, 7, 6), integers(4, 3, 3, 2)
FLOAT_IMAGE = floats(2, 3, 7, 6)
LAST = pb.UniformQuantizedConvolutionDimensionNumbersAttr(
    input_batch_dimension=0, input_feature_dimension=3, input_spatial_dimensions=(1, 2),
    kernel_output_feature_dimension=3, kernel_input_feature_dimension=2,
    kernel_spatial_dimensions=(0, 1), output_batch_dimension=0, output_feature_dimension=3,
    output_spatial_dimensions=(1, 2),
).SerializeToString()  # fmt: skip
DUPLICATE_SPATIAL = pb.UniformQuantizedConvolutionDimensionNumbersAttr(
    input_spatial_dimensions=(1,),
).SerializeToString()
GEOMETRIES: tuple[dict[str, Any], ...] = (
    {}, {"padding": "SAME"}, {"padding": "SAME", "window_strides": [2, 3]},
    {"padding": "EXPLICIT", "explicit_padding": [1, 2, 0, 3]},
    {"lhs_dilation": [2, 1], "rhs_dilation": [1, 3]},
    {"padding": "SAME", "lhs_dilation": [1, 2], "rhs_dilation": [2, 1], "window_strides": [1, 2]},
)  # fmt: skip
BAD: tuple[dict[str, Any], ...] = (
    {"padding": "FULL"}, {"explicit_padding": [1, 1, 1, 1]}, {"window_strides": [1]},
    {"window_strides": [1, 0]}, {"lhs_dilation": [0, 1]}, {"rhs_dilation": [1, 1, 1]},
    {"padding": "EXPLICIT", "explicit_padding": [1, 2]},
    {"padding": "EXPLICIT", "explicit_padding": [1, 2, -1, 2]},
    {"feature_group_count": 2}, {"feature_group_count": 0}, {"batch_group_count": 0},
    {"batch_group_count": 3}, {"feature_group_count": 3}, {"rhs_dilation": [4, 4]},
    {"dimension_numbers": DUPLICATE_SPATIAL},
)  # fmt: skip

CASES = (
    *(
        dot(LHS, RHS, (TENSOR, rhs, out), **limits)
        for rhs, out in ((TENSOR, TENSOR), (CHANNELS, TENSOR), (CHANNELS, CHANNELS))
        for limits in ({}, ends("output", low=-100, high=2000))
    ),
    dot(LHS, RHS, ((0.5, 2**30), (0.5, -(2**30)), (0.7, 2**30))),
    dot(LHS, RHS, ((0.5, 3001), (0.5, -2003), (0.7, 5))),
    dot(LHS[:, :0], RHS[:0], (TENSOR,) * 3), dot(LHS[:0], RHS, (TENSOR,) * 3),
    dot(LHS, RHS, (TENSOR, TENSOR, CHANNELS)), dot(LHS, RHS.T, (TENSOR,) * 3),
    dot(LHS, RHS[0], (TENSOR,) * 3), dot(LHS, RHS, (CHANNELS, TENSOR, TENSOR)),
    dot(LHS, RHS, ((0.0, 1), TENSOR, TENSOR)), dot(LHS, RHS, (TENSOR, (-1.0, 1), TENSOR)),
    dot(LHS, RHS, (TENSOR, TENSOR, (-1.0, 1))), dot(LHS, RHS, (TENSOR, (0.5, ZEROS), TENSOR)),
    dot(LHS, RHS, (TENSOR,) * 3, lhs_quantization_axis=0),
    dot(LHS, RHS, (TENSOR,) * 3, rhs_quantization_axis=0),
    dot(LHS, RHS, (TENSOR,) * 3, output_quantization_axis=0),
    *(hybrid(value, RHS, pair) for value in (FLOATS, FLOATS + 5, FLOATS * 0, FLOATS - 9)
      for pair in (TENSOR, CHANNELS)),
    hybrid(np.array([[1, np.inf, 0, 0, 1], [1, 2, 3, 4, 1e-42], [1e-42] * 5], np.float32), RHS,
           TENSOR),
    hybrid(FLOATS[:, :0], RHS[:0], TENSOR), hybrid(FLOATS, RHS.T, TENSOR),
    hybrid(FLOATS, RHS, (0.0, 1)), hybrid(FLOATS, RHS, TENSOR, rhs_quantization_axis=0),
    *(
        convolution(IMAGE, KERNEL, (TENSOR, rhs, out), **geometry)
        for rhs, out in ((TENSOR, TENSOR), (CHANNELS, TENSOR), (CHANNELS, CHANNELS))
        for geometry in GEOMETRIES
    ),
    *(hybrid_convolution(FLOAT_IMAGE, KERNEL, pair, **geometry)
      for pair in (TENSOR, CHANNELS) for geometry in GEOMETRIES),
    convolution(integers(2, 7, 6, 3), integers(3, 2, 3, 4), (TENSOR, CHANNELS, CHANNELS), (3, 3),
                dimension_numbers=LAST, padding="SAME"),
    hybrid_convolution(floats(2, 7, 6, 3), integers(3, 2, 3, 4), CHANNELS, 3,
                       dimension_numbers=LAST, padding="SAME"),
    convolution(integers(2, 6, 5), integers(4, 3, 2), (TENSOR, CHANNELS, TENSOR),
                feature_group_count=2),
    convolution(integers(4, 3, 5), integers(4, 3, 2), (TENSOR, CHANNELS, TENSOR),
                batch_group_count=2),
    hybrid_convolution(floats(2, 6, 5), integers(4, 3, 2), CHANNELS, feature_group_count=2),
    hybrid_convolution(floats(4, 3, 5), integers(4, 3, 2), CHANNELS, batch_group_count=2),
    convolution(integers(4, 4, 5), integers(4, 2, 2), (TENSOR, CHANNELS, TENSOR),
                batch_group_count=4, feature_group_count=2),
    convolution(IMAGE, KERNEL, ((0.5, 300), TENSOR, TENSOR), padding="SAME"),
    convolution(IMAGE[:0], KERNEL, (TENSOR,) * 3),
    convolution(IMAGE[:, :, :2], KERNEL, (TENSOR,) * 3),
    convolution(IMAGE[:, :, :0], KERNEL, (TENSOR,) * 3, padding="SAME"),
    convolution(integers(1, 2, 5, 4, 3), integers(3, 2, 2, 2, 2), (TENSOR,) * 3, padding="SAME"),
    *(convolution(IMAGE, KERNEL, (TENSOR,) * 3, **bad) for bad in BAD),
    convolution(IMAGE, KERNEL, (TENSOR, TENSOR, CHANNELS)),
    convolution(IMAGE, KERNEL, (CHANNELS, TENSOR, TENSOR)),
    convolution(IMAGE, KERNEL, (TENSOR,) * 3, rhs_quantization_axis=1),
    convolution(IMAGE, KERNEL, (TENSOR,) * 3, output_quantization_axis=0),
    convolution(IMAGE, KERNEL[0], (TENSOR,) * 3),
    convolution(IMAGE[0, 0], KERNEL[0, 0], (TENSOR,) * 3),
)  # fmt: skip
