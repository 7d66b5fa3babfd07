"""AsString and StringToNumber."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import case

REALS = np.array([1.5, -2e10, 1e-9, np.nan, -np.nan, np.inf, -np.inf, -0.0, 1.1])
VALUES = [
    REALS.astype(np.float32),
    REALS,
    np.array([1.1, -2.0], np.float16),
    np.array([1.1, -2.0], ml_dtypes.bfloat16),
    np.array([1 + 2j, -0.5j], np.complex64),
    np.array([1.5 - 2j], np.complex128),
    np.array([[1, -5]], np.int8),
    np.array([3, -5], np.int16),
    np.array(7, np.int32),
    np.array([2**62, -1], np.int64),
    np.array([200], np.uint8),
    np.array([65535], np.uint16),
    np.array([2**32 - 1], np.uint32),
    np.array([2**64 - 1], np.uint64),
    np.array([True, False]),
    np.array(["a", "é"], object),
    np.empty((0, 2), np.float32),
]
FORMATS: list[dict[str, object]] = [
    {},
    {"precision": 3},
    {"scientific": True},
    {"shortest": True},
    {"shortest": True, "precision": 3},
    {"scientific": True, "precision": 2},
    {"scientific": True, "shortest": True},
    {"width": 8},
    *({"width": 8, "fill": fill} for fill in ("0", "-", "+", " ", "x", "ab")),
]

TEXTS = [
    *("1", "-3", " 4 ", "1.5", "1e3", "0x10", "inf", "-Infinity", "nan", "", "abc", "1 2", "+5"),
    *("99999999999999999999", "2147483648", "1_000", "1e400", "1e-400", "-0", "1.", "٣", "-1"),
    *(".5", "0x1p3", "infinit", "1e", "\t7\n", "1e39", "0.1", "--1", "+", "0x", "3.4028236e38"),
]
NUMBERS = (
    DataType.FLOAT,
    DataType.DOUBLE,
    DataType.INT32,
    DataType.INT64,
    DataType.UINT32,
    DataType.UINT64,
)

CASES = (
    *(
        case("StringToNumber", text, out_type=number, message=True)
        for number in NUMBERS
        for text in TEXTS
    ),
    case("StringToNumber", [["1", "2"], ["3", "4"]]),
    case("StringToNumber", np.empty((0, 2), object), out_type=DataType.INT64),
    *(case("AsString", value, message=True, **options) for options in FORMATS for value in VALUES),
    case("AsString", ["abcdef", "b"], precision=2, width=5),
    case("AsString", ["abcdef", "b"], precision=2, scientific=True),
    case("AsString", ["abcdef", "b"], precision=2, width=0),
    *(case("AsString", [b"ab\0cd", b"\0"], width=width) for width in (-1, 0, 4)),
    case("AsString", ["abcdef", "b"], precision=0, width=5, fill="-"),
)
