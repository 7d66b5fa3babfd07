"""Comparisons, boolean logic, Select."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case

REAL = (
    np.float16, ml_dtypes.bfloat16, np.float32, np.float64,
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
ORDER = ("Greater", "GreaterEqual", "Less", "LessEqual")
EQUALITY = ("Equal", "NotEqual")
LOGIC = ("LogicalAnd", "LogicalOr")
BOOLS = np.array([[True], [False]]), np.array([True, False])
SPECIAL = np.array([1, np.nan, np.inf, -0.0, np.nan], np.float32)
OTHER = np.array([np.nan, np.nan, np.inf, 0.0, 1], np.float32)
STRINGS = np.array([b"a", b"b"], object)
TWO, THREE = np.ones(2, np.float32), np.ones(3, np.float32)
MATRIX = np.array([[1, 2], [3, 4]], np.float32)
CHOICE = np.array([True, False])


def choose_resource(condition: bool) -> Case:
    """Select one of two resource variables, then read it."""
    graph = Graph()
    chosen = graph.placeholder(DataType.BOOL, "condition")
    handles = []
    targets = []
    for index in range(2):
        attrs = {"dtype": DataType.INT32, "shape": (), "shared_name": f"v{index}"}
        handle = graph.add("VarHandleOp", **attrs)[0]
        graph.add("AssignVariableOp", handle, np.int32(index + 5), name=f"assign{index}")
        targets.append(f"assign{index}")
        handles.append(handle)
    picked = graph.add("SelectV2", chosen, *handles, name="picked")[0]
    value = graph.add("ReadVariableOp", picked, name="result", dtype=DataType.INT32)[0]
    feeds = {"condition:0": np.array(condition)}
    steps = (Step({}, (), targets), Step(feeds, (value[0],)))
    return Case(f"SelectV2_resource_{condition}", graph.graph_def, steps)


def selects() -> list[Case]:
    other = MATRIX * 10
    scalars = np.float32(1), np.float32(2)
    return [
        case("Select", CHOICE, MATRIX, other),
        case("Select", np.array(True), TWO, TWO * 3),
        case("Select", np.array([[True, False], [False, True]]), MATRIX, other),
        case("Select", CHOICE, STRINGS, STRINGS[::-1].copy()),
        case("Select", np.array(False), *scalars),
        case("Select", np.array([True]), TWO, TWO),
        case("Select", CHOICE, TWO, THREE),
        case("Select", np.array([CHOICE]), TWO, TWO),
        case("Select", CHOICE, *scalars),
        case("Select", np.array([True, False, True]), MATRIX, other),
        case("Select", np.array(True), TWO, THREE),
        case(
            "Select", np.zeros(0, bool), np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32)
        ),
        case("SelectV2", CHOICE, np.float32(1), np.array([[1], [2]], np.float32)),
        case("SelectV2", np.array(True), *scalars),
        case("SelectV2", CHOICE, np.array(b"x", object), STRINGS),
        case("SelectV2", np.array(False), np.array(b"x", object), np.array(b"y", object)),
        case("SelectV2", CHOICE, THREE, np.float32(1), message=True),
        case("SelectV2", CHOICE, TWO, THREE, message=True),
        case("SelectV2", np.array(True), THREE, TWO, message=True),
    ]


CASES: tuple[Case, ...] = (
    *(
        case(op, np.array([1, 2, 3], t), np.array([[2], [3]], t), name=f"{op}_{np.dtype(t)}")
        for op in ORDER + EQUALITY
        for t in REAL
    ),
    *(case(op, SPECIAL, OTHER, name=f"{op}_special") for op in ORDER + EQUALITY),
    *(case(op, *BOOLS, name=f"{op}_bool") for op in LOGIC + EQUALITY),
    *(
        case(op, np.array([1 + 2j, 3], t), np.array([1 + 2j, 3j], t), name=f"{op}_{np.dtype(t)}")
        for op in EQUALITY
        for t in (np.complex64, np.complex128)
    ),
    *(case(op, STRINGS, np.array(b"a", object), name=f"{op}_string") for op in EQUALITY),
    *(
        case(op, np.array([1, 2], np.int8), np.array([1, 3], np.int8), dtypes=[DataType.QINT8] * 2)
        for op in EQUALITY
    ),
    *(case(op, np.float32(2), np.float32(2), name=f"{op}_scalars") for op in ORDER + EQUALITY),
    *(case(op, TWO, THREE, name=f"{op}_shapes", message=True) for op in ORDER + EQUALITY),
    *(case(op, TWO, THREE, incompatible_shape_error=False, name=f"{op}_any") for op in EQUALITY),
    case("LogicalAnd", CHOICE, np.array([True] * 3), message=True),
    case("LogicalNot", CHOICE),
    case("LogicalNot", np.array(True)),
    case("ApproximateEqual", np.array([1, 2], np.float32), np.array([1.000001, 2.1], np.float32)),
    case("ApproximateEqual", np.array([1, 2.0]), np.array([1.000001, 2.1])),
    case("ApproximateEqual", TWO, THREE, message=True),
    case(
        "ApproximateEqual", np.array([1], np.int32), np.array([1], np.int32), name="Approximate_int"
    ),
    *selects(),
    *(choose_resource(condition) for condition in (True, False)),
)
