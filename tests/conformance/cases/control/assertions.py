"""Assert, Print and StringFormat: the text form of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case

FLOATS = np.array([1.1, 1e10, 123456789.0, 1e-7, -0.0, np.nan, np.inf, 1e5, 1e8, 0.0001])
VALUES = [
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.array(["a\x01'é\"b\n\t\\", "c"], object),
    2.5,
    np.zeros(0, np.float32),
    np.zeros((2, 0), np.int64),
    True,
    FLOATS.astype(np.float32),
    FLOATS,
    np.zeros((2, 2, 2), np.uint8),
    np.array([1.5, 0.1], np.float16),
    np.array([1 + 2j], np.complex64),
    np.zeros((5, 2), np.int16),
    np.zeros((3, 0, 2), np.float64),
]
UNWRITTEN = (
    DataType.COMPLEX64,
    DataType.COMPLEX128,
    DataType.QINT32,
    DataType.FLOAT8_E4M3FNUZ,
    DataType.FLOAT8_E5M2FNUZ,
)


def unwritten(op: str, data_type: DataType, shape: tuple[int, ...]) -> Case:
    """Types whose elements are written as question marks, in one line."""
    values = np.zeros(shape, data_type.numpy)
    name = f"{op}_{data_type.name.lower()}_of_rank_{len(shape)}"
    if op == "Assert":
        given = {"dtypes": (DataType.BOOL, data_type)}
        return case(op, False, [values], summarize=3, message=True, name=name, **given)
    return case(op, [values], template="<{}>", placeholder="{}", dtypes=(data_type,), name=name)


def variants(op: str, made: str, packed: bool, **attrs: Any) -> Case:
    """Lists and maps of tensors as text."""
    graph = Graph()
    inputs = (
        (np.zeros(2, np.int32), np.zeros(0, np.int32)) if made == "TensorListFromTensor" else ()
    )
    value = graph.add(made, *inputs)[0]
    if packed:
        value = graph.add("Pack", [value, value])[0]
    text = graph.add(op, [value] if op == "StringFormat" else value, **attrs)[0]
    step = Step({}, (text[0],))
    return Case(f"{op}_{made}{'_packed' * packed}", graph.graph_def, (step,))


CASES = (
    *(
        case("Assert", False, VALUES, summarize=summarize, message=True)
        for summarize in (-1, 1, 3, 4, 5, 100)
    ),
    case("Assert", False, [1], message=True),
    case("Assert", True, [1]),
    case("Assert", [True], [1], message=True),
    *(
        case("StringFormat", [value], template="<{}>", placeholder="{}", summarize=summarize)
        for value in [
            *VALUES,
            np.arange(16, dtype=np.int32).reshape(2, 2, 2, 2),
            np.zeros((7, 2, 7), np.float32),
        ]
        for summarize in (-1, 1, 3)
    ),
    case("StringFormat", [1, 2.5], template="%t and %t", placeholder="%t"),
    case("StringFormat", [1], template="%s %s"),
    case("StringFormat", [1], template="nothing"),
    case("Print", 3, [4, "x"], message="m", first_n=1, summarize=2),
    case("PrintV2", "text", output_stream="stderr"),
    *(case("PrintV2", text, message=True) for text in (["text"], ["a", "b"], [["a"]], [])),
    *(
        unwritten(op, data_type, shape)
        for op in ("Assert", "StringFormat")
        for data_type in UNWRITTEN
        for shape in ((), (3,), (2, 2))
    ),
    *(
        variants(op, made, packed, **attrs)
        for op, attrs in {
            "AsString": {},
            "StringFormat": {"template": "<{}>", "placeholder": "{}"},
        }.items()
        for made in ("TensorListFromTensor", "EmptyTensorMap")
        for packed in (False, True)
    ),
)
