"""Kernels that pool 8-bit quantized images.

The range of floats that the integers represent does not change.

TF: tensorflow/core/kernels/quantized_pooling_ops.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.kernels.array.patches import patches
from runtime.kernels.nn.pooling import check_strides, max_pool, pooled_dimensions
from runtime.kernels.quantization.requantization import Quantized, one_float


def quantized_max_pool(
    value: np.ndarray,
    min_input: np.ndarray,
    max_input: np.ndarray,
    *,
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
) -> Quantized:
    """QuantizedMaxPool: return the maximum of each window of `value` [b, h, w, c].

    The windows are spatial or over depth.
    """
    largest = max_pool(
        value,
        ksize=ksize,
        strides=strides,
        padding=padding,
        explicit_paddings=(),
        data_format="NHWC",
    )
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
    """QuantizedAvgPool: return the mean of each window of `value` [b, h, w, c].

    The mean is over the elements of the image; padding is not counted.
    """
    totals = _windows(value.astype(np.int32), ksize, strides, padding).sum(-2)
    counts = _windows(np.ones(value.shape, np.int32), ksize, strides, padding).sum(-2)
    # In TensorFlow, oneDNN computes signed images; it rounds halves to even.
    means = totals // counts if value.dtype.kind == "u" else np.rint(totals / counts)
    means = means.astype(value.dtype)
    return means, one_float(min_input, "min_input"), one_float(max_input, "max_input")


def _windows(
    value: np.ndarray, ksize: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> np.ndarray:
    """Return the elements of all windows, `[b, rows, columns, kh·kw, c]`."""
    check_strides(strides, "NHWC")
    if min(ksize[1:3], default=1) <= 0:
        raise InvalidArgumentError(f"Sliding window ksize must be positive, got {ksize}")
    pooled_dimensions(value.shape, ksize, strides, padding, (), "NHWC")
    if ksize[3] != 1:
        raise UnimplementedError("Non-spatial pooling is not yet supported. Volunteers? :)")
    found = patches(value, ksize[1:3], strides[1:3], (1, 1), padding)
    return found.reshape(*found.shape[:3], ksize[1] * ksize[2], value.shape[3])


_TYPES = {"T": (DataType.QUINT8, DataType.QINT8)}
KERNELS = (
    KernelDef("QuantizedAvgPool", quantized_avg_pool, _TYPES),
    KernelDef("QuantizedMaxPool", quantized_max_pool, _TYPES),
)
