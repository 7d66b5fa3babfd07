"""Pooling of 8-bit quantised images; the range of floats that they stand for is passed on.

TF: tensorflow/core/kernels/quantized_pooling_ops.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.patches import patches
from runtime.kernels.requantization import Quantized, one_float


def quantized_max_pool(
    value: np.ndarray,
    min_input: np.ndarray,
    max_input: np.ndarray,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
) -> Quantized:
    """QuantizedMaxPool: the largest of each window [kh, kw] of [b, h, w, c]."""
    # Counted from the lowest value, the zeros that pad the margins never win.
    lowest = np.iinfo(value.dtype).min
    above = _windows(value.astype(np.int32) - lowest, ksize, strides, padding).max(-2)
    largest = (above + lowest).astype(value.dtype)
    return largest, one_float(min_input, "min_input"), one_float(max_input, "max_input")


def quantized_avg_pool(
    value: np.ndarray,
    min_input: np.ndarray,
    max_input: np.ndarray,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
) -> Quantized:
    """QuantizedAvgPool: the mean of each window, without the margins."""
    totals = _windows(value.astype(np.int32), ksize, strides, padding).sum(-2)
    counts = _windows(np.ones(value.shape, np.int32), ksize, strides, padding).sum(-2)
    # Signed images are oneDNN's: it rounds to the nearest, a half to even.
    means = totals // counts if value.dtype.kind == "u" else np.rint(totals / counts)
    means = means.astype(value.dtype)
    return means, one_float(min_input, "min_input"), one_float(max_input, "max_input")


def _windows(
    value: np.ndarray, ksize: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> np.ndarray:
    """[b, rows, columns, kh·kw, c]."""
    if value.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional, got {shape_text(value.shape)}")
    if len(ksize) == 4 and ksize[3] != 1 and (ksize[1], ksize[2]) != (1, 1):
        raise UnimplementedError(
            "MaxPooling supports exactly one of pooling across depth or pooling across "
            "width/height."
        )
    if len(ksize) != 4 or len(strides) != 4 or min(*ksize, *strides) < 1:
        raise InvalidArgumentError(
            f"ksize and strides must be 4 positive numbers, got {ksize} and {strides}"
        )
    if (ksize[0], ksize[3], strides[0], strides[3]) != (1, 1, 1, 1):
        raise UnimplementedError("Pooling is not yet supported on the batch or depth dimension.")
    found = patches(value, ksize[1:3], strides[1:3], (1, 1), padding)
    return found.reshape(*found.shape[:3], ksize[1] * ksize[2], value.shape[3])


_TYPES = {"T": (DataType.QUINT8, DataType.QINT8)}
KERNELS = (
    KernelDef("QuantizedAvgPool", quantized_avg_pool, _TYPES),
    KernelDef("QuantizedMaxPool", quantized_max_pool, _TYPES),
)
