"""Arithmetic on quantised tensors."""

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

QUINT8 = DataType.QUINT8
A = (np.arange(12) * 21).astype(np.uint8).reshape(3, 4)
B = (np.arange(8) * 31 + 3).astype(np.uint8).reshape(4, 2)
IMAGE = (np.arange(50) * 5).astype(np.uint8).reshape(1, 5, 5, 2)
FILTER = (np.arange(24) * 10).astype(np.uint8).reshape(2, 2, 2, 3)
RANGES = ((-3.0, 5.0), (0.0, 6.0), (-1.0, 0.0))
PAIR = [QUINT8, QUINT8]

CASES = (
    *(
        case("QuantizedMatMul", A.T if ta else A, B.T if tb else B, low, high, -1.0, 2.0,
             dtypes=PAIR, transpose_a=ta, transpose_b=tb)
        for low, high in RANGES
        for ta, tb in ((False, False), (True, True))
    ),
    case("QuantizedMatMul", A, A, -1.0, 1.0, -1.0, 2.0, dtypes=PAIR),
    *(
        case("QuantizedConv2D", IMAGE, FILTER, low, high, -1.0, 2.0, dtypes=PAIR,
             strides=[1, stride, stride, 1], padding=padding)
        for low, high in RANGES
        for padding in ("SAME", "VALID")
        for stride in (1, 2)
    ),
    *(
        case("QuantizedMul", A, other, low, high, -1.0, 2.0, dtypes=PAIR)
        for low, high in RANGES
        for other in (A, A[0], np.uint8(200))
    ),
    *(
        case(op, A, low, high, dtypes=[QUINT8])
        for op in ("QuantizedRelu", "QuantizedRelu6")
        for low, high in (*RANGES, (-10.0, 20.0))
    ),
    *(
        case("QuantizedAdd", A, other, low, high, *second, dtypes=PAIR, Toutput=DataType.QINT32)
        for low, high in RANGES
        for second in ((-1.0, 2.0), (0.0, 7.0), (-20.0, -7.0))
        for other in (A, A[0], np.uint8(200))
    ),
    case("QuantizedAdd", A, A[0, :2], -1.0, 1.0, -1.0, 2.0, dtypes=PAIR, Toutput=DataType.QINT32),
    *(
        case("QuantizedBiasAdd", A, A[1], low, high, *second, dtypes=PAIR, out_type=DataType.QINT32)
        for low, high in RANGES
        for second in ((-1.0, 2.0), (0.0, 7.0), (-20.0, -7.0))
    ),
    case("QuantizedBiasAdd", A, A[0, :2], -1.0, 1.0, -1.0, 2.0, dtypes=PAIR,
         out_type=DataType.QINT32),
    case("QuantizedReshape", A, [4, 3], -1.0, 2.0, dtypes=[QUINT8]),
    case("QuantizedReshape", A, [5, 3], -1.0, 2.0, dtypes=[QUINT8]),
    *(
        case("QuantizedConcat", dim, [A, A], [-1.0, low], [1.0, high],
             dtypes=[DataType.INT32, QUINT8, QUINT8])
        for dim in (0, 1)
        for low, high in ((-1.0, 1.0), (0.0, 6.0), (-2.0, 0.5))
    ),
)  # fmt: skip
