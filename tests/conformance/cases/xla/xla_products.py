"""XlaDot, XlaDotV2, XlaEinsum, XlaConv and XlaConvV2."""

from typing import Any

import ml_dtypes
import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

_random = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return _random.normal(size=shape).astype(np.float32)


def integers(*shape: int) -> np.ndarray:
    return _random.integers(-9, 9, shape).astype(np.int32)


def dot(lhs: np.ndarray, rhs: np.ndarray, summed: Any, batch: Any = ((), ()), **more: Any) -> Case:
    numbers = pb.DotDimensionNumbers(
        lhs_contracting_dimensions=summed[0], rhs_contracting_dimensions=summed[1],
        lhs_batch_dimensions=batch[0], rhs_batch_dimensions=batch[1],
    )  # fmt: skip
    attrs = {"dimension_numbers": numbers.SerializeToString(), "precision_config": b"", **more}
    op = "XlaDotV2" if "preferred_element_type" in more else "XlaDot"
    return case(op, lhs, rhs, **attrs)


def conv(
    lhs: np.ndarray,
    rhs: np.ndarray,
    numbers: pb.ConvolutionDimensionNumbers | bytes,
    *,
    strides: Any = None,
    padding: Any = None,
    lhs_dilation: Any = None,
    rhs_dilation: Any = None,
    groups: Any = 1,
    **more: Any,
) -> Case:
    rank = lhs.ndim - 2
    ones = [1] * rank

    def vector(given: Any, default: Any) -> np.ndarray:
        return np.array(default if given is None else given, np.int32)

    text = numbers if isinstance(numbers, bytes) else numbers.SerializeToString()
    return case(
        "XlaConvV2" if more else "XlaConv", lhs, rhs, vector(strides, ones),
        vector(padding, [(0, 0)] * rank).reshape(-1, 2) if rank else np.zeros((0, 2), np.int32),
        vector(lhs_dilation, ones), vector(rhs_dilation, ones), np.int32(groups),
        dimension_numbers=text, precision_config=b"", **more,
    )  # fmt: skip


def numbers_of(input_: str, kernel: str, output: str) -> pb.ConvolutionDimensionNumbers:
    """Return dimension numbers from strings such as NHWC, HWIO, NHWC."""
    spatial = [each for each in input_ if each not in "NC"]
    return pb.ConvolutionDimensionNumbers(
        input_batch_dimension=input_.index("N"), input_feature_dimension=input_.index("C"),
        input_spatial_dimensions=[input_.index(each) for each in spatial],
        kernel_output_feature_dimension=kernel.index("O"),
        kernel_input_feature_dimension=kernel.index("I"),
        kernel_spatial_dimensions=[kernel.index(each) for each in spatial],
        output_batch_dimension=output.index("N"), output_feature_dimension=output.index("C"),
        output_spatial_dimensions=[output.index(each) for each in spatial],
    )  # fmt: skip


NHWC = numbers_of("NHWC", "HWIO", "NHWC")
NCHW = numbers_of("NCHW", "OIHW", "NCHW")
MIXED = numbers_of("CHWN", "IHWO", "HWNC")
LINE = numbers_of("NWC", "WIO", "NWC")
VOLUME = numbers_of("NDHWC", "DHWIO", "NDHWC")
A, B = floats(3, 4), floats(4, 5)
IMAGE, KERNEL = floats(2, 7, 6, 4), floats(3, 2, 4, 6)
V2 = {"preferred_element_type": DataType.FLOAT, "batch_group_count": 1}

CASES = (
    dot(A, B, ([1], [0])),
    dot(A, B.T.copy(), ([1], [1])),
    dot(A, A, ([0, 1], [0, 1])),
    dot(A, B, ((), ())),
    dot(floats(2, 3, 4), floats(4, 2, 5), ([2], [0]), ([0], [1])),
    dot(floats(2, 3, 4, 5), floats(5, 3, 2, 4), ([2, 3], [3, 0]), ([1], [1])),
    dot(integers(3, 4), integers(4, 2), ([1], [0])),
    dot(A.astype(np.float16), B.astype(np.float16), ([1], [0]), tolerance=2e-3),
    dot(A.astype(np.complex64) * 1j, B.astype(np.complex64), ([1], [0])),
    dot(A[:, :0], B[:0], ([1], [0])),
    dot(A, B, ([1], [1])),
    dot(A, B, ([1, 1], [0, 0])),
    dot(A, B, ([1], ())),
    dot(A, B, ([1], [0]), preferred_element_type=DataType.FLOAT),
    dot(integers(3, 4).astype(np.int8), integers(4, 2).astype(np.int8), ([1], [0]),
        preferred_element_type=DataType.INT32),
    dot(A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16), ([1], [0]),
        preferred_element_type=DataType.FLOAT),
    *(
        dot(9 * lhs, 9 * rhs, ([1], [0]), preferred_element_type=kind)
        for lhs, rhs, kind in (
            (A, B, DataType.INT32), (A.astype(np.float64), B.astype(np.float64), DataType.INT16),
            (A.astype(np.complex64) * (1 + 1j), B.astype(np.complex64), DataType.FLOAT),
            (integers(3, 4), integers(4, 2), DataType.DOUBLE),
        )
    ),
    case("XlaEinsum", A, B, equation="ab,bc->ac"),
    case("XlaEinsum", A, B, equation="ab,bc->ca"),
    case("XlaEinsum", floats(2, 3, 4), floats(2, 4, 5), equation="zab,zbc->zac"),
    case("XlaEinsum", A, floats(3), equation="ab,a->b"),
    case("XlaEinsum", floats(2, 3), floats(4, 5), equation="ab,cd->abcd"),
    case("XlaEinsum", A, floats(3, 5), equation="ab,ac->bc"),
    case("XlaEinsum", A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16),
         equation="ab,bc->ac", tolerance=2e-2),
    conv(IMAGE, KERNEL, NHWC),
    conv(IMAGE, KERNEL, NHWC, strides=[2, 1], padding=[(1, 1), (0, 1)]),
    conv(IMAGE, KERNEL, NHWC, padding=[(2, 3), (-1, -2)]),
    conv(IMAGE, KERNEL, NHWC, lhs_dilation=[2, 3], padding=[(1, 2), (2, 2)]),
    conv(IMAGE, KERNEL, NHWC, rhs_dilation=[2, 3], strides=[1, 2]),
    conv(IMAGE, KERNEL, NHWC, lhs_dilation=[2, 1], rhs_dilation=[3, 2], padding=[(3, 1), (0, -1)]),
    conv(IMAGE, floats(3, 2, 2, 6), NHWC, groups=2),
    conv(IMAGE, floats(3, 2, 1, 8), NHWC, groups=4, padding=[(1, 1), (1, 0)]),
    conv(IMAGE.transpose(0, 3, 1, 2).copy(), KERNEL.transpose(3, 2, 0, 1).copy(), NCHW),
    conv(IMAGE.transpose(3, 1, 2, 0).copy(), KERNEL.transpose(2, 0, 1, 3).copy(), MIXED,
         strides=[2, 2]),
    conv(floats(2, 9, 3), floats(4, 3, 5), LINE, padding=[(3, 0)], rhs_dilation=[2]),
    conv(floats(1, 4, 5, 4, 2), floats(2, 3, 2, 2, 3), VOLUME, strides=[2, 1, 1]),
    conv(IMAGE[:0], KERNEL, NHWC),
    conv(IMAGE, KERNEL, NHWC, **V2),
    conv(IMAGE.astype(ml_dtypes.bfloat16), KERNEL.astype(ml_dtypes.bfloat16), NHWC,
         **V2),
    conv(integers(2, 5, 5, 4), integers(2, 2, 4, 3), NHWC, preferred_element_type=DataType.INT32,
         batch_group_count=1),
    conv(floats(4, 6, 5, 3), floats(2, 2, 3, 8), NHWC,
         preferred_element_type=DataType.FLOAT, batch_group_count=2),
    conv(floats(4, 6, 5, 3), floats(2, 2, 3, 8), NHWC,
         preferred_element_type=DataType.FLOAT, batch_group_count=4),
)  # fmt: skip
