"""Requantize, RequantizationRange and QuantizeDownAndShrinkRange."""

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

QUINT8, QINT32 = DataType.QUINT8, DataType.QINT32
WIDE = (np.arange(-6, 6) * 150_000_000).astype(np.int32).reshape(3, 4)
RANGES = ((-3.0, 5.0), (0.0, 6.0), (-1.0, 0.0))

CASES = (
    *(
        case("Requantize", WIDE, low, high, *wanted, dtypes=[QINT32], out_type=QUINT8)
        for low, high in RANGES
        for wanted in ((-1.0, 1.0), (0.0, 6.0), (-2.0, 0.0), (1.0, 2.0), (0.0, -1.0))
    ),
    *(
        case(op, WIDE, low, high, dtypes=[QINT32], **attrs)
        for op, attrs in (
            ("RequantizationRange", {}), ("QuantizeDownAndShrinkRange", {"out_type": QUINT8}),
        )
        for low, high in RANGES
    ),
    case("Requantize", WIDE, -3.0, 5.0, -1.0, 4.0, dtypes=[QINT32], out_type=DataType.QINT8),
)  # fmt: skip
