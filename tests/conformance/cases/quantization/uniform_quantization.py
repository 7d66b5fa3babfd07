"""Uniform quantization, per tensor and per axis."""

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

QINT8, QUINT8, QINT32 = DataType.QINT8, DataType.QUINT8, DataType.QINT32
FLOAT = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11.3) * np.float32(0.83)
SMALL = (np.arange(24) * 11 - 128).astype(np.int8).reshape(2, 3, 4)
WIDE = ((np.arange(24) - 12) * 90_000_007).astype(np.int32).reshape(2, 3, 4)
SCALES = np.array([0.25, 1.5, 0.03], np.float32)
ZEROS = np.array([3, -20, 100], np.int32)
ALL = {"quantization_min_val": -128, "quantization_max_val": 127}
BY_AXIS = {"quantization_axis": 1}
VALUES = {SMALL.dtype: (SMALL, QINT8), WIDE.dtype: (WIDE, QINT32)}


def output(low: int = -128, high: int = 127, axis: int = -1) -> dict[str, int]:
    return {
        "output_quantization_min_val": low,
        "output_quantization_max_val": high,
        "output_quantization_axis": axis,
    }


def quantize(value: Any, scales: Any, zeros: Any, to: DataType = QINT8, **attrs: Any) -> Case:
    return case("UniformQuantize", value, scales, zeros, Tout=to, **{**ALL, **attrs})


def dequantize(value: Any, kind: DataType, scales: Any, zeros: Any, **attrs: Any) -> Case:
    return case(
        "UniformDequantize", value, scales, zeros, dtypes=[kind], Tout=DataType.FLOAT,
        **{**ALL, **attrs},
    )  # fmt: skip


def requantize(
    value: np.ndarray, first: tuple[Any, Any], second: tuple[Any, Any], axes: tuple[int, int],
    limits: tuple[int, int] = (-128, 127),
) -> Case:  # fmt: skip
    return case(
        "UniformRequantize", value, *first, *second, dtypes=[VALUES[value.dtype][1]], Tout=QINT8,
        input_quantization_axis=axes[0], input_quantization_min_val=-128,
        input_quantization_max_val=127, **output(*limits, axes[1]),
    )  # fmt: skip


def add(
    lhs: np.ndarray, rhs: np.ndarray, ranges: tuple[tuple[Any, Any], ...], axes: tuple[int, ...],
    limits: tuple[int, int] = (-(2**31), 2**31 - 1), message: bool = False,
) -> Case:  # fmt: skip
    attrs = {
        f"{name}_quantization_{end}_val": value
        for name in ("lhs", "rhs")
        for end, value in (("min", -(2**31)), ("max", 2**31 - 1))
    }
    return case(
        "UniformQuantizedAdd", lhs, rhs, *(each for pair in ranges for each in pair),
        dtypes=[QINT32, QINT32], lhs_quantization_axis=axes[0], rhs_quantization_axis=axes[1],
        message=message, **attrs, **output(*limits, axes[2]),
    )  # fmt: skip


def clip(value: np.ndarray, low: Any, high: Any, scales: Any, zeros: Any, axis: int) -> Case:
    return case(
        "UniformQuantizedClipByValue", value, np.asarray(low, np.int32),
        np.asarray(high, np.int32), scales, zeros, dtypes=[QINT32] * 3, quantization_axis=axis,
        **ALL, message=True,
    )  # fmt: skip


TENSOR, CHANNELS = (0.5, 3), (SCALES, ZEROS)
BAD = ((0.5, ZEROS, -1), (SCALES, ZEROS, -1), (0.5, 3, 1), (SCALES, ZEROS, 0), (0.5, 3, 3),
       (0.5, 3, -2))  # fmt: skip

CASES = (
    *(
        quantize(FLOAT, scales, zeros, to, quantization_axis=axis)
        for to in (QINT8, QUINT8, QINT32)
        for scales, zeros, axis in ((0.25, 3, -1), (SCALES, ZEROS, 1), (SCALES[:2], ZEROS[:2], 0))
    ),
    quantize(np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 0.5, 1.5, -0.5], np.float32), 1.0, 7,
             QINT32, quantization_min_val=-(2**31), quantization_max_val=2**31 - 1),
    quantize(FLOAT, 0.1, 0, quantization_min_val=-5, quantization_max_val=300),
    quantize(FLOAT, 0.1, 0, quantization_min_val=5, quantization_max_val=-5),
    quantize(FLOAT, 0.0, 0), quantize(FLOAT, -1.0, 0), quantize(FLOAT[:0], 1.0, 0),
    quantize(np.float32(3), 1.0, 0),
    *(quantize(FLOAT, *each[:2], quantization_axis=each[2], message=True) for each in BAD),
    *(
        dequantize(value, kind, scales, zeros, quantization_axis=axis)
        for value, kind in ((SMALL, QINT8), (SMALL.view(np.uint8), QUINT8), (WIDE, QINT32))
        for scales, zeros, axis in ((0.25, 3, -1), (SCALES, ZEROS, 1))
    ),
    dequantize(np.array([2**31 - 1, -(2**31)], np.int32), QINT32, 2.0, -5),
    dequantize(SMALL, QINT8, 0.0, 0), dequantize(SMALL, QINT8, -1.0, 0),
    *(dequantize(SMALL, QINT8, *each[:2], quantization_axis=each[2], message=True) for each in BAD),
    *(
        requantize(value, first, second, (1 if first is CHANNELS else -1,
                                          1 if second is CHANNELS else -1), limits)
        for value in (SMALL, WIDE)
        for first in (TENSOR, CHANNELS)
        for second in (TENSOR, CHANNELS)
        for limits in ((-128, 127), (-20, 50))
    ),
    requantize(WIDE, (1e-30, 0), (1e30, 0), (-1, -1)),
    requantize(SMALL, (1e20, 0), (1e-15, 5), (-1, -1)),
    requantize(SMALL, (np.float32(np.inf), 0), (1.0, 0), (-1, -1)),
    requantize(SMALL, (-1.0, 0), (1.0, 0), (-1, -1)),
    requantize(SMALL, CHANNELS, (SCALES[:2], ZEROS[:2]), (1, 0)),
    requantize(SMALL, TENSOR, (SCALES[:2], ZEROS[:2]), (-1, 1)),
    *(
        add(WIDE // 7, other, (TENSOR, (0.3, -4), (0.7, 9)), (-1, -1, -1), limits)
        for other in (WIDE, WIDE[0], WIDE[:, :1], np.int32(12345))
        for limits in ((-(2**31), 2**31 - 1), (-1000, 20_000_000))
    ),
    add(WIDE, WIDE[::-1], (CHANNELS, CHANNELS, CHANNELS), (1, 1, 1)),
    add(WIDE, WIDE[0], (CHANNELS, CHANNELS, CHANNELS), (1, 0, 1)),
    add(WIDE, WIDE[::-1], (CHANNELS, TENSOR, CHANNELS), (1, -1, 1)),
    add(WIDE, WIDE[::-1], (CHANNELS, CHANNELS, TENSOR), (1, 1, -1)),
    add(WIDE, WIDE[:, :1], (CHANNELS, TENSOR, CHANNELS), (1, -1, 1)),
    add(WIDE[:, :1], WIDE, ((SCALES[1:2], ZEROS[1:2]), CHANNELS, CHANNELS), (1, 1, 1)),
    add(WIDE, WIDE[:, :2], (TENSOR,) * 3, (-1, -1, -1)),
    add(WIDE, WIDE, (CHANNELS, (SCALES[:2], ZEROS[:2]), CHANNELS), (1, 0, 1)),
    add(WIDE, WIDE, ((-1.0, 3), TENSOR, TENSOR), (-1, -1, -1)),
    add(WIDE, WIDE, (TENSOR,) * 3, (-2, -1, -1)),
    clip(WIDE, -100_000_000, 300_000_000, 0.5, 0, -1),
    clip(WIDE, 5, -5, 0.5, 0, -1),
    clip(WIDE, [-1000, 0, 5], [2000, 7, 90_000_000], SCALES, ZEROS, 1),
    clip(WIDE, 1, [2000, 7, 90_000_000], SCALES, ZEROS, 1),
    clip(WIDE, [1, 2, 3], 4, SCALES, ZEROS, 1),
    clip(WIDE, 1, 4, SCALES, ZEROS, 1),
)  # fmt: skip
