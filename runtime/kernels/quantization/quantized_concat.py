"""QuantizedConcatV2, as TensorFlow computes it with oneDNN on a CPU.

TF: tensorflow/core/kernels/mkl/mkl_concat_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.array.concat_split import concat
from runtime.kernels.quantization.requantization import Quantized, in_range

_NEARLY = 1e-6  # ranges that differ by no more are the same
_JOINED_RANK = 4  # of the tensors that oneDNN joins without looking at their range


def _scalars(name: str, given: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    for place, each in enumerate(given):
        if np.ndim(each):
            raise InvalidArgumentError(
                f"`{name}[{place}]` must be rank 0 but is rank {np.ndim(each)}"
            )
    return [np.asarray(each) for each in given]


def _common_range(
    lows: list[np.ndarray], highs: list[np.ndarray], data_type: DataType
) -> tuple[np.ndarray, np.ndarray]:
    """Return the range of the result: symmetric for qint8, from 0 for quint8."""
    bottom, top = min(lows), max(highs)
    if data_type is DataType.QUINT8:
        return np.asarray(np.float32(0)), top
    largest = np.asarray(max(abs(bottom), abs(top)), np.float32)
    return -largest, largest


def quantized_concat_v2(
    *values_axis_mins_maxes: np.ndarray,
    N: int,  # noqa: N803 # the attributes' names
    T: DataType,  # noqa: N803
) -> Quantized:
    """QuantizedConcatV2: convert the inputs to one common range, then concatenate them.

    Tensors of rank 4 that have the same range keep it.
    """
    values, axis = values_axis_mins_maxes[:N], values_axis_mins_maxes[N]
    lows = _scalars("input_mins", values_axis_mins_maxes[N + 1 : 2 * N + 1])
    highs = _scalars("input_maxes", values_axis_mins_maxes[2 * N + 1 :])
    if np.ndim(axis):
        raise InvalidArgumentError(
            "Concat dim tensor should be a scalar integer, "
            f"but got shape {shape_text(np.shape(axis))}"
        )
    is_same = all(abs(each - lows[0]) <= _NEARLY for each in lows) and all(
        abs(each - highs[0]) <= _NEARLY for each in highs
    )
    if is_same and np.ndim(values[0]) == _JOINED_RANK:
        return concat(axis, *values), lows[0], highs[0]
    bottom, top = _common_range(lows, highs, T)
    parts = [
        value
        if low == bottom and high == top
        else in_range(np.asarray(value), (low, high, T), (bottom, top, T))
        for value, low, high in zip(values, lows, highs, strict=True)
    ]
    return concat(axis, *parts), bottom, top


KERNELS = (
    KernelDef("QuantizedConcatV2", quantized_concat_v2, {"T": (DataType.QINT8, DataType.QUINT8)}),
)
