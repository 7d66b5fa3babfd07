"""DecodeCSV: quotes, missing fields, selected columns, invalid input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

INT32, STRING = DataType.INT32, DataType.STRING
EMPTY_STRING = np.empty(0, object)
TWO_STRINGS = (np.array([b"d"], object), np.array([b"e"], object))
LINES = [
    "a,b",
    '"a","b"',
    '"a,1",b',
    '"a""q",b',
    ",b",
    "a,",
    ",",
    "",
    "a",
    "a,b,c",
    "a,b\n",
    "\na,b",
    "a\n,b",
    'a"x,b',
    '"a"x,b',
    '"a,b',
    '"a",',
    '"",b',
    'a,"b"\n',
    "é, ü ",
    '"a\nb",c',
    '"',
    'a,"',
    '"a""",b',
    '""""",b',
]
NUMBERS = (
    np.array([7], np.int32),
    np.array([8], np.int64),
    np.array([0.5], np.float32),
    np.array([0.25], np.float64),
)


def csv(records: Any, defaults: Sequence[np.ndarray], **attrs: Any) -> Case:
    kinds = tuple(STRING if d.dtype == object else DataType[_NAMES[d.dtype.name]] for d in defaults)
    return case("DecodeCSV", records, list(defaults), OUT_TYPE=kinds, message=True, **attrs)


_NAMES = {"int32": "INT32", "int64": "INT64", "float32": "FLOAT", "float64": "DOUBLE"}

CASES = (
    *(csv([line], TWO_STRINGS) for line in LINES),
    *(csv([line], TWO_STRINGS, use_quote_delim=False) for line in LINES),
    *(csv(line, (EMPTY_STRING, TWO_STRINGS[1])) for line in ("a,b", ",b", "a,")),
    csv([["1,2,3,4", ",,,"], ["-1, 5 ,1e3,nan", "9,9,9,9"]], NUMBERS),
    *(
        csv([line], NUMBERS)
        for line in ("x,1,1,1", "1,x,1,1", "1,1,x,1", "1,1,1,x", "3000000000,,,")
    ),
    csv(["1;NA;2"], NUMBERS[:1] * 3, field_delim=";", na_value="NA"),
    csv(["1,2,3,4", "5,,7,"], NUMBERS[:1] * 2, select_cols=(1, 3)),
    csv(["1,2,3,4"], NUMBERS[:1] * 2, select_cols=(1, 9)),
    csv(np.empty((0, 2), object), TWO_STRINGS),
    csv(["1,2"], (np.int32(3), np.array(4, np.int32))),
)
