"""QuantizedConcatV2. An int64 axis is left out: TensorFlow's kernel sets no output then."""

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

A = (np.arange(12) * 21).astype(np.uint8).reshape(3, 4)
SIGNED = (np.arange(12) * 21 - 128).astype(np.int8).reshape(3, 4)
VOLUME = (np.arange(16) * 15).astype(np.uint8).reshape(1, 2, 2, 4)


def concat(values: list[Any], axis: Any, mins: list[Any], maxes: list[Any]) -> Case:
    kind = DataType.QINT8 if values[0].dtype == np.int8 else DataType.QUINT8
    return case(
        "QuantizedConcatV2", values, np.asarray(axis), mins, maxes, dtypes=[kind] * len(values)
    )  # fmt: skip


CASES = (
    *(
        concat([value, value[::-1]], np.int32(axis), [-1.0, low], [1.0, high])
        for value in (A, SIGNED, VOLUME, VOLUME.view(np.int8), A[0])
        for axis in (0, -1, 1)
        for low, high in ((-1.0, 1.0), (-3.0, 2.0), (0.5, 3.0))
    ),
    concat([VOLUME] * 2, np.int32(0), [-1.0, -1.0000005], [2.0] * 2),
    concat([VOLUME] * 2, np.int32(0), [-1.0, -1.000002], [2.0] * 2),
    concat([VOLUME, VOLUME[:0]], np.int32(0), [-1.0] * 2, [2.0] * 2),
    concat([A, A, A], np.int32(0), [-1.0, 0.0, -4.0], [1.0, 7.0, 0.0]),
    concat([A, A[:, :2]], np.int32(0), [-1.0] * 2, [1.0] * 2),
    concat([A, A[:, :2]], np.int32(1), [-1.0, 1.0], [1.0, 2.0]),
    concat([A, A], np.int32(2), [-1.0] * 2, [1.0] * 2),
    concat([A, A], np.array([0], np.int32), [-1.0] * 2, [1.0] * 2),
    concat([A, A[:0]], np.int32(0), [-1.0] * 2, [1.0] * 2),
    concat([A, A], np.int32(0), [-1.0] * 2, [1.0, [2.0, 3.0]]),
    concat([A, np.uint8(3)], np.int32(0), [-1.0] * 2, [1.0] * 2),
)  # fmt: skip
