"""QuantizedMaxPool and QuantizedAvgPool."""

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

IMAGE = (np.arange(70) * 37 % 256).astype(np.uint8).reshape(1, 5, 7, 2)
# Contains windows with means of −1.5, 0.5 and −128.
SIGNED = np.array([[[-1, -128], [-2, -128]], [[-1, -128], [-2, 127]]], np.int8)[np.newaxis]

CASES = tuple(
    case(op, value, -1.0, 2.0, dtypes=[DataType.QUINT8], ksize=[1, *size, 1], padding=padding,
         strides=[1, *stride, 1])
    for op in ("QuantizedMaxPool", "QuantizedAvgPool")
    for padding in ("SAME", "VALID")
    for value, size, stride in (
        (IMAGE, (2, 2), (2, 2)), (IMAGE, (3, 2), (1, 2)), (IMAGE, (5, 7), (1, 1)),
        (IMAGE[0], (2, 2), (1, 1)),
    )
) + tuple(
    case(op, SIGNED, -1.0, 2.0, dtypes=[DataType.QINT8], ksize=[1, 2, 2, 1], padding="SAME",
         strides=[1, 1, 1, 1], name=f"{op}_signed")
    for op in ("QuantizedMaxPool", "QuantizedAvgPool")
)  # fmt: skip
