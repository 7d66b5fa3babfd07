"""Cast between all types, Bitcast, ToBool."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

TYPES = (
    DataType.HALF, DataType.BFLOAT16, DataType.FLOAT, DataType.DOUBLE,
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
    DataType.BOOL, DataType.COMPLEX64, DataType.COMPLEX128,
)  # fmt: skip
NARROW = (
    (DataType.FLOAT, DataType.FLOAT8_E5M2),
    (DataType.FLOAT, DataType.FLOAT8_E4M3FN),
    (DataType.INT32, DataType.INT4),
    (DataType.INT32, DataType.UINT4),
)
VALUES = np.array([[0, 1, 2.5], [-1.75, 100, 7]])
NAN, INF = np.nan, np.inf
OUT_OF_RANGE = np.array([NAN, INF, -INF, 5.5] * 3)
TRUNCATED = np.array([1.01171875, 1.0013427734375, -1.01171875, 0.3, 1 / 3, 60000, NAN, INF])
COMPLEX = np.array([1.5 + 2j, 2j, 0, NAN])
BITS = np.array([[1, 2], [3, -4]], np.int32)


def values_of(data_type: DataType) -> np.ndarray:
    values = (
        VALUES if data_type.is_floating or data_type.name.startswith("COMPLEX") else abs(VALUES)
    )
    return values.astype(data_type.numpy)


CASES: tuple[Case, ...] = (
    *(
        case("Cast", values_of(source), DstT=target, name=f"{source.name}_{target.name}")
        for source in TYPES
        for target in TYPES
    ),
    *(
        case("Cast", np.array([0, 1, 2.6, 3, 6]).astype(wide.numpy), DstT=narrow)
        for wide, narrow in NARROW
    ),
    *(
        case("Cast", np.array([0, 1, 2, 6]).astype(narrow.numpy), DstT=wide)
        for wide, narrow in NARROW
    ),
    case("Cast", np.array([7, 8, -9], np.int32), DstT=DataType.INT4),
    *(
        case("Cast", OUT_OF_RANGE.astype(source), DstT=target)
        for source in (np.float32, np.float64, np.float16)
        for target in (DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64)
    ),
    *(case("Cast", COMPLEX, DstT=target) for target in (DataType.FLOAT, DataType.BOOL)),
    *(
        case("Cast", np.array([NAN, INF, 0.25, 0]).astype(t), DstT=DataType.BOOL)
        for t in (np.float32, ml_dtypes.bfloat16)
    ),
    *(
        case("Cast", TRUNCATED.astype(source), DstT=target, Truncate=truncate)
        for source in (np.float32, np.float64)
        for target in (DataType.HALF, DataType.BFLOAT16, DataType.FLOAT, DataType.FLOAT8_E5M2)
        for truncate in (False, True)
    ),
    *(
        case("Cast", np.array([300, -1, 70000, 1 << 20], np.int32), DstT=target)
        for target in (
            DataType.INT8,
            DataType.UINT8,
            DataType.INT16,
            DataType.UINT16,
            DataType.UINT64,
        )
    ),
    case("Cast", np.float32(2.5), DstT=DataType.INT32),
    case("Cast", np.zeros((0, 2), np.float32), DstT=DataType.INT32),
    case("Cast", np.array([b"1"], object), DstT=DataType.STRING, name="string_string"),
    case("Cast", np.array([b"1"], object), DstT=DataType.FLOAT, name="string_float", message=True),
    case(
        "Cast", np.array([1], np.float32), DstT=DataType.STRING, name="float_string", message=True
    ),
    case("Cast", np.array([7], np.int8), DstT=DataType.INT32, dtypes=[DataType.QINT8]),
    case("Cast", np.array([7.5], np.float32), DstT=DataType.QINT8),
    *(
        case("Bitcast", array, type=target)
        for array, target in (
            (BITS, DataType.FLOAT),
            (BITS, DataType.UINT8),
            (BITS, DataType.INT64),
            (BITS, DataType.COMPLEX64),
            (BITS, DataType.QINT32),
            (BITS.T, DataType.INT16),
            (np.int32(1), DataType.INT16),
            (np.float32(1), DataType.INT32),
            (np.zeros((0, 2), np.int16), DataType.INT32),
            (np.zeros((0,), np.int32), DataType.INT16),
            (np.array([1j], np.complex64), DataType.DOUBLE),
            (np.array([1, 2, 3], np.int16), DataType.INT32),
            (np.int16(1), DataType.INT32),
            (np.zeros((2, 0), np.int16), DataType.INT32),
        )
    ),
    *(
        case("ToBool", value)
        for value in (
            np.float32(0),
            np.float32(2),
            np.float32(NAN),
            np.array([0], np.float32),
            np.zeros(0, np.float32),
            np.zeros((2, 0), np.int32),
            np.int64(0),
            np.uint8(3),
            np.array(False),
            np.array(True),
            np.array(b"", object),
            np.array(b"0", object),
            np.array([b""], object),
        )
    ),
    *(
        case(
            "Cast",
            np.array([1.01171875, -0.3, 1 / 3, 6e4, np.inf, np.nan]).astype(source),
            DstT=target,
            Truncate=True,
            name=f"truncated_{source}_{target.name}",
        )
        for source, targets in (
            ("float64", (DataType.COMPLEX64, DataType.COMPLEX128)),
            ("complex64", (DataType.HALF, DataType.BFLOAT16)),
            ("complex128", (DataType.HALF, DataType.BFLOAT16, DataType.FLOAT, DataType.COMPLEX64)),
        )
        for target in targets
    ),
)
