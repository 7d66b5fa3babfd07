"""QuantizeV2 and Dequantize."""

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case

VALUES = np.float32([[-3, -1.5, -0.5, 0, 0.2], [0.5, 1.5, 2.5, 3, 7]])
QUANTIZED = (
    DataType.QINT8, DataType.QUINT8, DataType.QINT16, DataType.QUINT16, DataType.QINT32,
)  # fmt: skip
INTEGERS = np.array([[0, 1, 2, 50, 127], [3, 100, 64, 7, 11]])


def dequantize(kind: DataType, low: float, high: float, **attrs: object) -> Case:
    values = INTEGERS.astype(kind.numpy)
    return case("Dequantize", values, low, high, dtypes=[kind], **attrs)


def dequantize_slices() -> Case:
    """Return a case with a placeholder of known rank, which TensorFlow requires with an axis."""
    graph = Graph()
    value = graph.placeholder(DataType.QINT8, "input_0", (2, 5))
    ranges = np.float32([-1, -2]), np.float32([1, 2])
    output, _ = graph.add("Dequantize", value, *ranges, mode="SCALED", axis=0, name="result")[0]
    feeds = {"input_0:0": INTEGERS.astype(np.int8)}
    return Case("Dequantize_slices", graph.graph_def, (Step(feeds, (output,)),))


CASES = (
    *(
        case("QuantizeV2", VALUES, low, high, T=kind, mode=mode, round_mode=rounding)
        for kind in QUANTIZED
        for mode, rounding in (
            ("MIN_COMBINED", "HALF_AWAY_FROM_ZERO"), ("MIN_FIRST", "HALF_AWAY_FROM_ZERO"),
            ("SCALED", "HALF_AWAY_FROM_ZERO"), ("SCALED", "HALF_TO_EVEN"),
        )
        for low, high in ((-3.0, 3.0), (0.0, 6.0), (1.0, 1.0), (-1.0, 0.0))
        if kind is not DataType.QINT32
    ),
    *(
        case("QuantizeV2", VALUES, -3.0, 3.0, T=kind, mode="SCALED", narrow_range=True)
        for kind in QUANTIZED[:4]
    ),
    case("QuantizeV2", VALUES, 3.0, -3.0, T=DataType.QINT8, message=True),
    case("QuantizeV2", VALUES, -3.0, 3.0, T=DataType.QINT8, ensure_minimum_range=0.5),
    *(
        case(
            "QuantizeV2", VALUES, np.float32([-3, 0]), np.float32([1, 6]), T=kind, mode="SCALED",
            axis=0,
        )
        for kind in QUANTIZED[:4]
    ),
    *(
        dequantize(kind, low, high, mode=mode)
        for kind in QUANTIZED
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")
        for low, high in ((-3.0, 3.0), (0.0, 6.0), (1.0, 1.0))
        if (kind, mode) != (DataType.QINT32, "MIN_FIRST")
    ),
    dequantize(DataType.QINT8, -3.0, 3.0, mode="SCALED", narrow_range=True),
    dequantize(DataType.QINT8, -3.0, 3.0, mode="SCALED", dtype=DataType.BFLOAT16),
    dequantize(DataType.QUINT8, -3.0, 3.0, mode="MIN_COMBINED", dtype=DataType.BFLOAT16),
    dequantize_slices(),
)  # fmt: skip
